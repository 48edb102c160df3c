"""fairseq: its habits, and every way in which a folder can be wrong."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from cli_tools import works
from import_tools import Change, Hostile, copy_of, outputs, refused, spoil

HERE = Path(__file__).parent
POINT = "checkpoint_best.pt"
SAID = {
    "fairseq_lstm": "Luong's system with the score general, as Luong et al. 2015 have it; outputs begin with </s>",
    "fairseq_lstm_plain": "the classic encoder-decoder, the top layer's state entering the next step beside the word",
    "fairseq_transformer": "but for tensor2tensor's wavelengths of positions, counted from 2; outputs begin with </s>",
    "fairseq_transformer_pre": "but for tensor2tensor's wavelengths of positions, counted from 2; outputs begin with",
}


@pytest.mark.parametrize("name", list(SAID))
def test_it_says_what_differs_from_the_papers_system(name: str, tmp_path: Path) -> None:
    said = works("import", HERE / name, "--out", tmp_path / "out").errors
    assert "imported from fairseq" in said
    assert SAID[name] in said


def as_args(content: dict[str, Any]) -> None:
    """As fairseq up to 0.9 wrote it: all options in one Namespace."""
    config = content.pop("cfg")
    content["args"] = argparse.Namespace(**vars(config["model"]), **config["task"])


def nested(content: dict[str, Any]) -> None:
    """As a model that is configured by hydra has it: a side's options under its name."""
    own = vars(content["cfg"]["model"])
    values: dict[str, Any] = {"_name": "transformer", "encoder": {}, "decoder": {}}
    for name, value in own.items():
        side, _, rest = name.partition("_")
        (values[side] if side in ("encoder", "decoder") else values).update({rest if side in values else name: value})
    content["cfg"]["model"] = values


@pytest.mark.parametrize("change", [as_args, nested])
def test_options_as_other_versions_write_them(change: Change, tmp_path: Path) -> None:
    folder = copy_of("fairseq_transformer", tmp_path)
    spoil(folder / POINT, change)
    assert outputs(folder, tmp_path / "one") == outputs(HERE / "fairseq_transformer", tmp_path / "two")


def test_a_checkpoint_of_another_name_can_be_named(tmp_path: Path) -> None:
    folder = copy_of("fairseq_lstm", tmp_path)
    expected = outputs(folder, tmp_path / "one")
    (folder / POINT).rename(folder / "average.pt")
    assert outputs(folder, tmp_path / "two") == expected
    shutil.copy(folder / "average.pt", folder / "other.pt")
    assert "2 files *.pt and none is called checkpoint_best.pt; name the one" in refused(folder, tmp_path / "out")
    assert outputs(folder / "other.pt", tmp_path / "three") == expected


def option(**values: Any) -> Change:
    return lambda content: vars(content["cfg"]["model"]).update(values)


PROJECTION = "decoder.attention.input_proj.weight"
LSTM: list[tuple[Change, str]] = [
    (option(encoder_layers=1), "encoder_layers 1 and decoder_layers 2 must be equal"),
    (option(encoder_hidden_size="7"), "encoder_hidden_size is '7', expected a whole number from 1 to 1048576"),
    (option(encoder_bidirectional=False), "encoder.lstm.weight_ih_l1 is [28, 14], expected [28, 7]"),
    (option(decoder_attention="2"), "decoder_attention is '2', expected"),
    (option(decoder_attention="0"), "unknown tensors decoder.attention.input_proj.weight"),
    (option(share_decoder_input_output_embed=True), "decoder_out_embed_dim 9 and decoder_embed_dim must be equal"),
    (option(decoder_out_embed_dim=12), "decoder.fc_out.weight is"),
    (lambda content: content["cfg"].pop("task"), "source_lang is None, expected a language, such as en"),
    (lambda content: content["cfg"]["task"].update(source_lang="../en"), "source_lang is '../en', expected a language"),
    (lambda content: content["cfg"]["task"].update(source_lang="fr"), "dict.fr.txt: missing"),
    (lambda content: content.pop("cfg"), "holds no options (neither args nor cfg), as fairseq writes them"),
    (lambda content: content.update(cfg=3), "holds no options (neither args nor cfg), as fairseq writes them"),
    (lambda content: content.update(model=3), "expected tensors by name, got something else"),
    (
        lambda content: content["model"].pop("encoder.lstm.weight_ih_l0"),
        "is neither fairseq's lstm nor",
    ),
    (lambda content: content["model"].pop(PROJECTION), f"the tensor {PROJECTION} is missing"),
    (
        lambda content: content["model"].update({PROJECTION: torch.ones(3, 3)}),
        f"{PROJECTION} is [3, 3], expected",
    ),
    (lambda content: content["model"][PROJECTION].fill_(torch.nan), f"{PROJECTION} holds values that are no numbers"),
    (lambda content: content["model"].update(more=torch.ones(1)), "unknown tensors more"),
]


@pytest.mark.parametrize(("change", "line"), LSTM, ids=[line for _, line in LSTM])
def test_bad_content_is_one_line(change: Change, line: str, tmp_path: Path) -> None:
    folder = copy_of("fairseq_lstm", tmp_path)
    spoil(folder / POINT, change)
    assert line in refused(folder, tmp_path / "out")


TRANSFORMER: list[tuple[Change, str]] = [
    (option(encoder_learned_pos=True), "encoder_learned_pos True; only False can be imported"),
    (option(layernorm_embedding=True), "layernorm_embedding True; only False can be imported"),
    (option(decoder_normalize_before=True), "decoder_normalize_before True; only False can be imported"),
    (option(activation_fn="linear"), "activation_fn is 'linear', expected relu or gelu or gelu_accurate or swish"),
    (option(decoder_attention_heads=4), "encoder_attention_heads 2 and decoder_attention_heads 4 must be equal"),
    (option(encoder_embed_dim=15, decoder_embed_dim=15), "encoder_embed_dim is 15, expected an even number"),
]


@pytest.mark.parametrize(("change", "line"), TRANSFORMER, ids=[line for _, line in TRANSFORMER])
def test_a_transformer_that_mirada_has_not_is_one_line(change: Change, line: str, tmp_path: Path) -> None:
    folder = copy_of("fairseq_transformer", tmp_path)
    spoil(folder / POINT, change)
    assert line in refused(folder, tmp_path / "out")


FILES: list[tuple[str, bytes | None, str]] = [
    ("dict.en.txt", None, "dict.en.txt: missing"),
    ("dict.en.txt", b"a 1\n", "encoder.embed_tokens.weight is"),
    ("dict.es.txt", b"a 1\nb\n", "dict.es.txt:2: 'b', expected a word, a blank and its count"),
    ("dict.es.txt", b"a 1\na 2\n", "its vocabulary holds a word twice, or what is no word"),
    ("dict.es.txt", b"\xff 1\n", "dict.es.txt: not UTF-8"),
    (POINT, b"", "damaged or not a file of torch.save"),
]


@pytest.mark.parametrize(("name", "content", "line"), FILES)
def test_bad_files_are_one_line(name: str, content: bytes | None, line: str, tmp_path: Path) -> None:
    folder = copy_of("fairseq_lstm", tmp_path)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    assert line in refused(folder, tmp_path / "out")


def test_a_pickle_that_runs_a_program_is_not_run(tmp_path: Path) -> None:
    folder = copy_of("fairseq_lstm", tmp_path)
    torch.save({"cfg": Hostile(), "model": {}}, folder / POINT)
    assert "holds the Python object" in refused(folder, tmp_path / "out")
    assert not Path("/tmp/never").exists()
