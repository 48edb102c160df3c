"""Marian as Hugging Face holds it: its habits, and every way in which a folder can be wrong."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from cli_tools import refusal, works
from mirada.data.vocabulary import BOS, PAD
from mirada.translator import load

FOLDER = Path(__file__).parent / "marian"
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy that may be spoilt."""
    return shutil.copytree(FOLDER, tmp_path / "marian")


def spoil(path: Path, change: Change) -> None:
    """Change a file of JSON or of tensors."""
    if path.suffix == ".json":
        content = json.loads(path.read_text(encoding="utf-8"))
        change(content)
        path.write_text(json.dumps(content), encoding="utf-8")
    else:
        tensors = load_file(path)
        change(tensors)
        save_file(tensors, path)


def refused(folder: Path) -> str:
    """Import what cannot be imported: one line, and nothing is written."""
    out = folder.parent / "out"
    before = sorted(folder.parent.iterdir())
    line = refusal("import", folder, "--out", out)
    assert sorted(folder.parent.iterdir()) == before
    return line


def outputs(folder: Path, out: Path) -> list[float]:
    """Scores of a few pairs by an imported folder."""
    works("import", folder, "--out", out)
    found = load(out, device="cpu").score(["Tom sees the cat", "a house"], ["Tom ve el gato", "casa"])
    return [log_p for one in found for log_p in one.token_log_probabilities]


def test_it_says_what_differs_from_the_papers_system(tmp_path: Path) -> None:
    said = works("import", FOLDER, "--out", tmp_path / "out").errors
    assert "imported from Marian (Hugging Face)" in said
    assert "but for swish in the feed-forward layers and a first token that is <pad>" in said
    assert "each source must begin with the language it is to become, such as >>spa<< (2 in vocab.json)" in said


def test_texts_are_cut_as_sentencepiece_cuts_them(tmp_path: Path) -> None:
    """Blanks, wide letters, ligatures, combining marks, control characters, special tokens' names."""
    works("import", FOLDER, "--out", tmp_path / "out")
    tokenizer = load(tmp_path / "out", device="cpu").source_tokenizer
    strange = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))["strange"]
    for line, tokens in strange.items():
        if "</s>" in line or "日本" in line or "“" in line:  # see the two tests below
            continue
        found = [tokenizer.token(i) for i in tokenizer.encode([line])[0]]
        assert [token.replace("▁>>", ">>") for token in found] == tokens[:-1], line


def test_special_tokens_names_are_text(tmp_path: Path) -> None:
    """Hugging Face reads `</s>` of a text as the end; here no text can name one."""
    works("import", FOLDER, "--out", tmp_path / "out")
    tokenizer = load(tmp_path / "out", device="cpu").source_tokenizer
    assert {PAD, BOS, 3}.isdisjoint(tokenizer.encode(["</s> <pad> <s>"])[0])


def test_a_character_that_only_the_vocabulary_knows_is_found(tmp_path: Path) -> None:
    """日 is no piece of source.spm, but has an entry. (Marian finds it when it stands between known ones.)"""
    works("import", FOLDER, "--out", tmp_path / "out")
    tokenizer = load(tmp_path / "out", device="cpu").source_tokenizer
    assert [tokenizer.token(i) for i in tokenizer.encode(["日"])[0]] == ["▁", "日"]


def test_old_folders_hold_a_pickle_of_tensors(copied: Path, tmp_path: Path) -> None:
    expected = outputs(FOLDER, tmp_path / "one")
    torch.save(load_file(copied / "model.safetensors"), copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    assert outputs(copied, tmp_path / "two") == expected


def test_embeddings_that_are_not_scaled(copied: Path, tmp_path: Path) -> None:
    """E without √d is (E/√d) √d: the same as scaled ones that are so much larger, but for the output layer's."""
    spoil(copied / "config.json", lambda config: config.update(scale_embedding=False))
    works("import", copied, "--out", tmp_path / "out")
    one, other = load(tmp_path / "out", device="cpu").model, load_file(FOLDER / "model.safetensors")
    assert not one.output.weight.equal(one.embedding.weight)
    assert torch.allclose(one.source_embedding.weight.norm() * 4, one.output.weight.norm(), rtol=1e-4)
    assert one.output.weight.norm() >= other["model.shared.weight"].norm()


def test_vocabularies_of_their_own(copied: Path, tmp_path: Path) -> None:
    """Two embeddings and two vocabularies with the same numbers as the shared one: the same model."""

    def separate(tensors: dict[str, Any]) -> None:
        shared = tensors.pop("model.shared.weight")
        tensors["model.encoder.embed_tokens.weight"] = shared
        tensors["model.decoder.embed_tokens.weight"] = shared.clone()

    spoil(copied / "config.json", lambda config: config.update(share_encoder_decoder_embeddings=False))
    spoil(copied / "model.safetensors", separate)
    shutil.copy(copied / "vocab.json", copied / "target_vocab.json")
    assert outputs(copied, tmp_path / "two") == outputs(FOLDER, tmp_path / "one")
    model = load(tmp_path / "two", device="cpu").model
    assert model.source_embedding is not model.embedding


def pop(name: str) -> Change:
    return lambda content: content.pop(name)


def put(**values: Any) -> Change:
    return lambda content: content.update(values)


Q = "model.encoder.layers.1.self_attn.q_proj.weight"
BAD: list[tuple[str, Change, str]] = [
    ("config.json", put(model_type="bart"), "model_type 'bart', expected 'marian'"),
    ("config.json", put(normalize_before=True), "normalize_before True; only False can be imported"),
    ("config.json", put(d_model="16"), "d_model is '16', expected a whole number from 1 to 1048576"),
    ("config.json", put(d_model=1 << 40), "expected a whole number from 1 to 1048576"),
    ("config.json", put(d_model=32), "model.shared.weight is [198, 16], expected [198, 32]"),
    ("config.json", put(encoder_attention_heads=1), "encoder_attention_heads 1 and decoder_attention_heads 2 must be"),
    ("config.json", put(activation_function="tanh"), "activation_function 'tanh', expected relu, gelu, swish, silu"),
    ("config.json", put(encoder_layers=3), "the tensor model.encoder.layers.2.self_attn.q_proj.weight is missing"),
    ("config.json", put(encoder_layers=1), "unknown tensors model.encoder.layers.1.fc1.bias"),
    ("config.json", put(pad_token_id=None), "<pad> is None, but vocab.json has 198 entries"),
    ("config.json", put(decoder_start_token_id=9999), "<s> is 9999, but vocab.json has 198 entries"),
    ("config.json", put(vocab_size=10**12), "model.shared.weight is [198, 16], expected [1000000000000, 16]"),
    ("vocab.json", pop("日"), "its entries are not numbered from 0 without a gap"),
    ("vocab.json", put(neu=198), "198 embeddings, but the vocabulary has 199 entries"),
    ("model.safetensors", pop(Q), f"the tensor {Q} is missing"),
    ("model.safetensors", lambda found: found.update({"more": torch.ones(1)}), "unknown tensors more"),
    ("model.safetensors", lambda found: found.update({Q: found[Q][:, :8].clone()}), "is [16, 8], expected [16, 16]"),
    ("model.safetensors", lambda found: found[Q].fill_(torch.nan), "holds values that are no numbers"),
    ("model.safetensors", lambda found: found.update({Q: found[Q].int()}), "is torch.int32, torch.strided; expected"),
    (
        "model.safetensors",
        lambda found: found.update({"model.encoder.embed_positions.weight": torch.ones(64, 16)}),
        "model.encoder.embed_positions.weight are not sinusoids; learned positions are not known",
    ),
    ("model.safetensors", lambda found: found.update({"lm_head.weight": torch.ones(198, 16)}), "differs from model."),
]


@pytest.mark.parametrize(("name", "change", "line"), BAD, ids=[line for _, _, line in BAD])
def test_bad_content_is_one_line(copied: Path, name: str, change: Change, line: str) -> None:
    spoil(copied / name, change)
    assert line in refused(copied)


def broken_files() -> Iterator[tuple[str, bytes | None, str]]:
    """Whole files that are missing or something else."""
    spm = (FOLDER / "source.spm").read_bytes()
    yield "source.spm", None, "source.spm: missing"
    yield "source.spm", b"", "not a SentencePiece model (it holds no pieces)"
    yield "source.spm", b"\xff" * 50, "not a SentencePiece model (damaged or cut off)"
    yield "source.spm", spm[:-9000], "not a SentencePiece model (damaged or cut off)"
    yield "vocab.json", b"[1]", "not a JSON object"
    yield "vocab.json", b"{", "not JSON"
    yield "config.json", b"\xff", "not JSON"
    yield "model.safetensors", None, "neither model.safetensors nor pytorch_model.bin is there"
    yield "model.safetensors", b"\x00" * 30, "damaged or not a safetensors file"


@pytest.mark.parametrize(("name", "content", "line"), list(broken_files()))
def test_bad_files_are_one_line(copied: Path, name: str, content: bytes | None, line: str) -> None:
    (copied / name).unlink()
    if content is not None:
        (copied / name).write_bytes(content)
    assert line in refused(copied)


@pytest.mark.parametrize("name", ["source.spm", "vocab.json"])
def test_a_file_far_too_large_is_not_even_opened(copied: Path, name: str) -> None:
    os.truncate(copied / name, 1 << 30)  # with holes: it takes no room
    assert f"{name}: 1,073,741,824 bytes; such a file has at most " in refused(copied)


def test_a_tokeniser_of_another_model(copied: Path) -> None:
    names = json.loads((copied / "vocab.json").read_text(encoding="utf-8"))
    other = {name if len(name) < 2 or name[0] in "<>" else f"x{name}": number for name, number in names.items()}
    (copied / "vocab.json").write_text(json.dumps(other), encoding="utf-8")
    assert "pieces are not in the vocabulary; it is of another model" in refused(copied)


def test_a_table_of_characters_that_leads_outside(copied: Path) -> None:
    """The library that reads it would panic, in a thread of its own."""
    content = bytearray((copied / "source.spm").read_bytes())
    place = content.index(b"nmt_nfkc") + 8 + 16
    content[place : place + 400] = b"\x7f" * 400
    (copied / "source.spm").write_bytes(bytes(content))
    assert "its table of characters is damaged" in refused(copied)


def test_a_spoilt_table_in_a_model_folder(tmp_path: Path) -> None:
    """The same table, when it is read again with the model."""
    works("import", FOLDER, "--out", tmp_path / "out")
    content = json.loads((tmp_path / "out" / "source.json").read_text(encoding="utf-8"))
    table = content["normalizer"]["normalizers"][0]
    table["precompiled_charsmap"] = base64.b64encode(bytes([0, 4, 0, 0]) + b"\x7f" * 1030).decode()
    (tmp_path / "out" / "source.json").write_text(json.dumps(content), encoding="utf-8")
    assert "source.json: not made by mirada for unigram" in refusal("translate", tmp_path / "out")


def test_a_number_that_stands_for_many(copied: Path) -> None:
    """A file of a few bytes that says it holds terabytes."""
    spoil(copied / "config.json", put(d_model=1 << 20))
    torch.save({"model.shared.weight": torch.ones(1).expand(198, 1 << 20)}, copied / "pytorch_model.bin")
    (copied / "model.safetensors").unlink()
    assert "model.shared.weight is larger than the file that holds it" in refused(copied)


class Hostile:
    """What a pickle does when it is read carelessly."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (eval, ("open('/tmp/never', 'w')",))


def test_a_pickle_that_runs_a_program_is_not_run(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Hostile()}, copied / "pytorch_model.bin")
    line = refused(copied)
    assert "holds the Python object" in line
    assert "eval" in line
    assert not Path("/tmp/never").exists()


def test_what_is_no_model_at_all(tmp_path: Path) -> None:
    assert "no such folder or file" in refusal("import", tmp_path / "none", "--out", tmp_path / "out")
    assert "no model that can be imported is there" in refusal("import", tmp_path, "--out", tmp_path / "out")


def test_what_is_there_already_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    assert "is there already" in refusal("import", FOLDER, "--out", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]
