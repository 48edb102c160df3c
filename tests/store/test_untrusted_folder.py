"""A model folder may come from anywhere: it loads as it was written, or is refused by one clear line.

Never a traceback, never a program run, never memory or time beyond what the files themselves take.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save, save_file

import tiny
from cli_tools import mirada, one_line, refusal, works
from mirada.errors import TrainingError
from mirada.files import locked, write_atomic
from mirada.store import checkpoint
from mirada.store.checkpoint import CONFIG, RESUME, TOKENIZERS, WEIGHTS, Archive, read_archive, write_archive
from training_tools import SMALL, different, trains, weights, write_data

GIVEN = "the red fox\n\na cat\n"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid folder, not to be changed."""
    return tiny.write_folder(tmp_path_factory.mktemp("good") / "m", "luong")


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    """A copy of it, to spoil."""
    return Path(shutil.copytree(good, tmp_path / "m"))


def refused(folder: Path) -> str:
    """What `translate` says against a folder, after the folder's own name."""
    line = refusal("translate", folder, "--device", "cpu", given=GIVEN)
    assert line.startswith(f"{folder}")
    return line.removeprefix(f"{folder}/")


def loads(folder: Path) -> list[str]:
    return works("translate", folder, "--device", "cpu", given=GIVEN).lines


@contextmanager
def quick_and_small(seconds: float = 20.0, megabytes: float = 100.0) -> Iterator[None]:
    """Neither time nor memory of the size that was asked for (peaks of this process; kilobytes on Linux)."""
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.monotonic() - begun < seconds
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1000 < megabytes


# Weights


def test_cut_anywhere(folder):
    content = (folder / WEIGHTS).read_bytes()
    places = {*range(0, len(content), len(content) // 60), *range(12), len(content) - 1}
    for place in sorted(places):
        (folder / WEIGHTS).write_bytes(content[:place])
        assert refused(folder).startswith(f"{WEIGHTS}: damaged or not a safetensors file (")


def test_a_bit_flipped_anywhere(folder):
    """Every byte of the first hundred, then every 197th: found by the checksum or by the format."""
    content = (folder / WEIGHTS).read_bytes()
    expected = read_archive(folder / WEIGHTS)
    for number, place in enumerate([*range(100), *range(100, len(content), 197)]):
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << number % 8
        (folder / WEIGHTS).write_bytes(spoilt)
        ran = mirada("translate", folder, "--device", "cpu", given=GIVEN)
        if ran.code == 0:  # a bit of the note, such as a measure's last digit: the weights are the same
            assert different(read_archive(folder / WEIGHTS).tensors, expected.tensors) == []
        else:
            assert ran.code == 2
            assert one_line(ran.errors).startswith(f"{folder / WEIGHTS}: ")


@pytest.mark.parametrize("length", [0, 1, 7, 10**6, 10**8 + 1, 10**9, 1 << 31, 1 << 60, (1 << 64) - 1])
def test_a_header_of_any_length(folder, length):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(length.to_bytes(8, "little") + content[8:])
    with quick_and_small():
        assert refused(folder).startswith(f"{WEIGHTS}: damaged or not a safetensors file (")


def header_of(content: bytes) -> tuple[dict[str, Any], bytes]:
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 0]},
        {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [1], "data_offsets": [0, 1 << 62]},
        {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
        {"dtype": "F31", "shape": [1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": "all", "data_offsets": [0, 4]},
        None,
        [],
    ],
    ids=str,
)
def test_a_header_that_lies(folder, entry):
    header, data = header_of((folder / WEIGHTS).read_bytes())
    name = next(name for name in header if name != "__metadata__")
    text = json.dumps({**header, name: entry}).encode()
    (folder / WEIGHTS).write_bytes(len(text).to_bytes(8, "little") + text + data)
    with quick_and_small():
        assert refused(folder).startswith(f"{WEIGHTS}: damaged or not a safetensors file (")


def rewrite(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the weights, with a checksum that is right: what somebody who knows the format can do."""
    archive = read_archive(folder / WEIGHTS)
    change(archive.tensors)
    write_archive(folder / WEIGHTS, archive)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_are_taken_as_they_are(folder, kind):
    """Half and double precision load as single: the same numbers, as far as half has them."""
    own = read_archive(folder / WEIGHTS).tensors
    rewrite(folder, lambda tensors: tensors.update({name: value.to(kind) for name, value in tensors.items()}))
    assert len(loads(folder)) == 3
    found = checkpoint.weights_of(checkpoint.load_model(folder, torch.device("cpu")).model)
    assert all(torch.equal(found[name], value.to(kind).float()) for name, value in own.items())


@pytest.mark.parametrize(
    ("tensor", "said"),
    [
        (torch.zeros(60, dtype=torch.int64), "weights output.bias are torch.int64, expected floating point"),
        (torch.zeros(60, dtype=torch.bool), "weights output.bias are torch.bool, expected floating point"),
        (torch.zeros(60, dtype=torch.uint8), "weights output.bias are torch.uint8, expected floating point"),
        (torch.zeros(60, dtype=torch.complex64), "weights output.bias are torch.complex64, expected floating point"),
        (torch.zeros(61), "weights output.bias are [61], options and vocabularies need [60]; "),
        (torch.zeros(()), "weights output.bias are [], options and vocabularies need [60]; "),
        (torch.zeros(1, 60), "weights output.bias are [1, 60], options and vocabularies need [60]; "),
        (torch.full((60,), torch.nan), "weights output.bias hold values that are no numbers (NaN or infinite)"),
        (torch.full((60,), -torch.inf), "weights output.bias hold values that are no numbers (NaN or infinite)"),
        (torch.full((60,), 1e300, dtype=torch.float64), "weights output.bias hold values that are no numbers (NaN or"),
    ],
    ids=lambda value: str(getattr(value, "dtype", ""))[6:],
)
def test_weights_that_do_not_fit(folder, tensor, said):
    rewrite(folder, lambda tensors: tensors.update({"output.bias": tensor}))
    assert refused(folder).startswith(f"{WEIGHTS}: {said}")


def test_a_file_far_too_large_is_not_even_opened(folder):
    """Ten gigabytes that are not there (a sparse file)."""
    with (folder / WEIGHTS).open("r+b") as stream:
        stream.truncate(10_000_000_000)
    with quick_and_small(seconds=5):
        said = r"model.safetensors: 10,000,000,000 bytes, but the options need [\d,]+ at most; it is of another model"
        assert re.fullmatch(said, refused(folder))


class Program:
    """A pickle that writes a file when it is read."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, *TOKENIZERS])
def test_no_program_runs(folder, tmp_path, name):
    """Pickles, plain or in PyTorch's own file, and YAML that makes objects: none is unpacked."""
    torch.save({"output.bias": Program(tmp_path / "ran")}, tmp_path / "saved")
    yaml_program = f"!!python/object/apply:pathlib.Path.touch [!!python/object/apply:pathlib.Path [{tmp_path / 'ran'}]]"
    for content in (
        pickle.dumps(Program(tmp_path / "ran")),
        (tmp_path / "saved").read_bytes(),
        f"model_dir: {yaml_program}\n".encode(),
    ):
        (folder / name).write_bytes(content)
        assert refused(folder).startswith(name)
    assert not (tmp_path / "ran").exists()
    pickle.loads(pickle.dumps(Program(tmp_path / "ran")))  # or this test would show nothing
    assert (tmp_path / "ran").exists()


def test_a_note_of_any_kind(folder):
    """Measures are for people: what is none is left out; what is no JSON is refused."""
    archive = read_archive(folder / WEIGHTS)
    for note in ({}, {"metrics": 3}, {"metrics": {"loss": "x"}}, {"tokenizers": []}, {"tokenizers": {"../x": "y"}}):
        write_archive(folder / WEIGHTS, Archive(archive.tensors, note))
        assert len(loads(folder)) == 3
    tensors = load_file(folder / WEIGHTS)
    for text in ("", "{", "[]", "[" * 100_000, "1" * 10_000):
        header = {"format": "1", "checksum": checkpoint.checksum(tensors), "note": text}
        save_file(tensors, folder / WEIGHTS, metadata=header)
        assert refused(folder) == f"{WEIGHTS}: the metadata in its header is damaged"


def test_a_newer_version(folder):
    tensors = load_file(folder / WEIGHTS)
    header = {"format": "3", "checksum": checkpoint.checksum(tensors), "note": "{}"}
    (folder / WEIGHTS).write_bytes(save(tensors, metadata=header))
    said = "format 3, this mirada reads formats up to 2; use the version that wrote it"
    assert refused(folder) == f"{WEIGHTS}: {said}"


# Options


def options(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    change(values)
    (folder / CONFIG).write_text(yaml.safe_dump(values), encoding="utf-8")


@pytest.mark.parametrize(
    ("block", "name", "value"),
    [
        *(("model", name, 10**9) for name in ("hidden_size", "embedding_dim", "attention_size", "encoder_hidden_size")),
        *(("model", name, 10**6) for name in ("enc_layers", "dec_layers")),
        ("model", "hidden_size", 10**400),
        *(("search", name, 10**9) for name in ("beam_size", "n_best", "max_output_length", "max_input_length")),
        *(("search", name, 10**9) for name in ("min_output_length", "max_length_ratio", "no_repeat_ngram_size")),
        ("data", "vocab_size", 10**12),
        ("training", "batch_size", 10**12),
        ("training", "seed", 1 << 64),
    ],
)
def test_absurd_sizes_are_refused(folder, block, name, value):
    options(folder, lambda values: values[block].update({name: value}))
    with quick_and_small(seconds=5, megabytes=20):
        said = rf"{re.escape(CONFIG)}: {block}\.{name}: input should be less than (or equal to )?\d+ \(got \d+…?\)"
        assert re.fullmatch(said, refused(folder)[:200])


@pytest.mark.parametrize(
    "sizes",
    [
        {"hidden_size": 65_536, "attention_size": 65_536, "tied_softmax": False},
        {"enc_layers": 256, "dec_layers": 256},
        {"decoder": "bahdanau", "embedding_dim": 65_536, "tied_softmax": False, "readout": "deep"},
        {"decoder": "transformer", "score": None, "embedding_dim": 65_536, "ff_size": 65_536, "enc_layers": 256},
    ],
    ids=str,
)
def test_the_largest_sizes_take_no_memory_without_their_weights(folder, sizes):
    """Hundreds of gigabytes of weights that are not in the file."""
    options(folder, lambda values: values["model"].update(sizes))
    with quick_and_small():
        assert refused(folder).startswith(f"{WEIGHTS}: ")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: v["model"].update(heads=3), "unknown option 'model.heads'; did you mean 'num_heads'?"),
        (lambda v: v.update(version=2), "unknown option 'version'"),
        (lambda v: v["model"].update(decoder="mamba"), "model.decoder: input should be 'classic', 'bahdanau', 'luong'"),
        (lambda v: v["model"].update(hidden_size="wide"), "model.hidden_size: input should be a valid integer, unable"),
        (
            lambda v: v["model"].update(hidden_size=[12]),
            "model.hidden_size: input should be a valid integer (got [1",
        ),
        (lambda v: v["model"].update(dropout=float("nan")), "model.dropout: input should be a finite number (got nan)"),
        (lambda v: v.update(model=3), "model: input should be a valid dictionary or instance of ModelConfig (got 3)"),
        (
            lambda v: v.update(search=None),
            "search: input should be a valid dictionary or instance of SearchConfig",
        ),
        (lambda v: v["search"].update(n_best=9), "n_best 9 is larger than beam_size 3; n_best must be 1 to beam_size"),
    ],
)
def test_options_that_are_none(folder, change, said):
    options(folder, change)
    assert refused(folder).startswith(f"{CONFIG}: {said}")


def test_options_that_are_missing_are_the_defaults_and_must_fit_the_weights(folder):
    options(folder, lambda values: values["search"].clear())
    assert len(loads(folder)) == 3
    options(folder, lambda values: values["model"].pop("rnn_type"))  # lstm, which it is
    assert len(loads(folder)) == 3
    options(folder, lambda values: values["model"].pop("tied_softmax"))
    assert refused(folder) == f"{WEIGHTS}: lacks weights output.weight; it does not belong to this config.yaml"
    options(folder, lambda values: values.pop("data"))
    said = "source.json: the options call its kind '', expected bpe, unigram, word, char, features"
    assert refused(folder) == said


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {k: v}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, ":2: not valid YAML (an alias (*name); write the value out)"),
        (MERGES, ":2: not valid YAML (an alias (*name); write the value out)"),
        ("data: &a\n  src: *a\n", ":2: not valid YAML (an alias (*name); write the value out)"),
        ("model: {decoder: luong, decoder: classic}\n", ":1: not valid YAML ('decoder' stands twice)"),
        ("model: !!python/object:os.system x\n", ":1: not valid YAML (could not determine a constructor for the tag"),
        ("[" * 100_000, ":1: not valid YAML (nested too deep for options)"),
        ("a: {" * 25_000, ":1: not valid YAML (nested too deep for options)"),
        (f"model: {{hidden_size: 0x{'f' * 9000}}}\n", ": model.hidden_size: "),
        (f"model: {{decoder: 0x{'f' * 9000}}}\n", ": model.decoder: input should be 'classic', 'bahdanau', 'luong' or"),
        (f"model: {{hidden_size: {'9' * 5000}}}\n", ": not valid YAML (a value cannot be read: Exceeds the limit"),
        ("model_dir: 2024-99-99\n", ": not valid YAML (a value cannot be read: month must be in 1..12)"),
        ("model_dir: !!timestamp x\n", ": not valid YAML (a value cannot be read: "),
        ("model_dir: !!bool x\n", ": not valid YAML (a value cannot be read: 'x')"),
        ("model_dir: !!binary x\n", ":1: not valid YAML (failed to decode base64 data: "),
        ("? [a]\n: b\n", ":1: not valid YAML (found unhashable key)"),
        ("a: 1\n---\nb: 2\n", ":2: not valid YAML (but found another document)"),
        ("model_dir: \0\n", ": not valid YAML (unreadable)"),
        ("x" * 100_001, ": more than 100,000 bytes, which no file of options has"),
        ("- luong\n", ": expected a mapping of options, got list"),
        ('training: {early_stopping_metric: "a\\nb"}\n', ": early_stopping_metric a\\nb is not computed; use loss, or"),
    ],
    ids=lambda value: value[:20],
)
def test_yaml_that_is_meant_to_hurt(folder, text, said):
    (folder / CONFIG).write_text(text, encoding="utf-8")
    with quick_and_small():
        assert refused(folder).startswith(f"{CONFIG}{said}")


def test_a_message_stays_a_line_whatever_is_in_the_file(folder):
    for key in ("x" * 90_000, "a\x1b[2Jb", "a\r\nb\u2028c"):
        options(folder, lambda values, key=key: values["model"].update({key: 1}))
        line = refused(folder)
        assert len(line) < 1100
        assert line.isprintable()
        shutil.copy(folder / CONFIG, folder / "last.yaml")
        options(folder, lambda values, key=key: values["model"].pop(key))


# Tokenisers


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_cut_anywhere(folder, name):
    content = (folder / name).read_bytes().rstrip()
    for place in [*range(0, len(content), len(content) // 50), len(content) - 1]:
        (folder / name).write_bytes(content[:place])
        assert refused(folder).startswith(f"{name}: not a tokeniser file (")


def tokenizer(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "source.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


SLOW = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
MORE = {"id": 60, "content": "x", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
OTHERS = "not made by mirada for bpe; its normalisation, splitting or settings are others"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(pre_tokenizer=SLOW), OTHERS),
        (lambda c: c.update(pre_tokenizer=None), OTHERS),
        (lambda c: c.update(normalizer={"type": "Lowercase"}), OTHERS),
        (lambda c: c.update(normalizer=None), OTHERS),
        (lambda c: c.update(truncation=TRUNCATION), OTHERS),
        (lambda c: c.update(padding=PADDING), OTHERS),
        (lambda c: c.update(added_tokens=[{**MORE, "special": True}]), OTHERS),
        (lambda c: c.update(decoder={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}), OTHERS),
        (lambda c: c["model"].update(dropout=0.5), OTHERS),
        (lambda c: c["model"].update(unk_token=None), OTHERS),
        (lambda c: c["model"].update(byte_fallback=True), OTHERS),
        (lambda c: c["model"].update(continuing_subword_prefix="##"), OTHERS),
        (lambda c: c["model"].update(continuing_subword_prefix="ñ" * 9), OTHERS),
        (lambda c: c["model"].update(end_of_word_suffix="x"), OTHERS),
        (lambda c: c["model"]["vocab"].update(z=10**9), "its entries are not numbered from 0 without a gap"),
        (lambda c: c["model"]["vocab"].update(a=5), "its entries are not numbered from 0 without a gap"),
        (lambda c: c["model"]["vocab"].update({"a\nb": 60}), "one of its entries holds a line end"),
        (lambda c: c.update(model=WORDS), "a tokeniser of the kind WordLevel, but the options say bpe"),
    ],
)
def test_a_tokenizer_that_mirada_would_not_make(folder, change, said):
    """Patterns that take for ever, padding, chance, entries beyond the embedding: nothing of it is used."""
    tokenizer(folder, change)
    with quick_and_small():
        assert refused(folder) == f"source.json: {said}"


TRUNCATION = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
PADDING = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 1, "pad_type_id": 0}
PADDING |= {"pad_token": "<pad>"}
WORDS = {"type": "WordLevel", "vocab": {"<unk>": 0, "<pad>": 1, "<s>": 2, "</s>": 3}, "unk_token": "<unk>"}


def test_a_tokenizer_far_too_large(folder):
    with (folder / "source.json").open("r+b") as stream:
        stream.truncate(10_000_000_000)
    with quick_and_small(seconds=5):
        said = "source.json: 10,000,000,000 bytes, more than any tokeniser has (at most 268,435,456)"
        assert refused(folder) == said


def test_a_bit_flipped_anywhere_in_a_tokenizer_of_a_training(tmp_path):
    """Weights know by their hashes the tokenisers that they were trained with."""
    trains(tmp_path / "m", write_data(tmp_path), {"max-updates": 1})
    path = tmp_path / "m" / "source.json"
    content = path.read_bytes()
    for number, place in enumerate(range(0, len(content), 29)):
        spoilt = bytearray(content)
        spoilt[place] ^= 1 << number % 7
        path.write_bytes(spoilt)
        assert refused(tmp_path / "m").startswith("source.json: ")


# Files that are none


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, *TOKENIZERS])
def test_links_are_followed_as_model_stores_make_them(folder, tmp_path, name):
    """A link to a whole file is as good as the file; one to nothing is a missing file; reading never writes."""
    expected = loads(folder)
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").stat()
    assert loads(folder) == expected
    assert (tmp_path / "elsewhere").stat().st_mtime_ns == before.st_mtime_ns
    (tmp_path / "elsewhere").unlink()
    assert "missing" in refusal("translate", folder, given=GIVEN)


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, *TOKENIZERS])
def test_folders_pipes_and_devices_are_no_files(folder, name):
    """A pipe would wait for ever, a device never end: neither is opened."""
    (folder / name).unlink()
    for make in (Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero"), lambda path: path.symlink_to(path)):
        make(folder / name)
        with quick_and_small(seconds=5):
            assert "missing" in refusal("translate", folder, given=GIVEN) or name == CONFIG
        (folder / name).rmdir() if (folder / name).is_dir() else (folder / name).unlink()


@contextmanager
def nobody() -> Iterator[None]:
    """Without the rights of root, who may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, *TOKENIZERS, ""])
def test_without_the_right_to_read(good, name):
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        folder = Path(shutil.copytree(good, Path(place) / "m"))
        (folder / name).chmod(0)
        with nobody():
            line = refusal("translate", folder, "--device", "cpu", given=GIVEN)
        assert line.startswith(f"{folder}")
        assert "ermission denied" in line
        folder.chmod(0o755)


# Trainings in a folder from elsewhere


def test_nothing_outside_is_written_through_links(tmp_path):
    """The lock, and the files under their provisional names, are never written through a link that was put there."""
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".model.safetensors.new").symlink_to(victim)
    (tmp_path / "m" / "model.safetensors").symlink_to(victim)
    write_atomic(tmp_path / "m" / "model.safetensors", b"new")
    assert (tmp_path / "m" / "model.safetensors").read_bytes() == b"new"
    assert not (tmp_path / "m" / "model.safetensors").is_symlink()
    (tmp_path / "m" / ".lock").symlink_to(victim)
    message = rf"^{re.escape(str(tmp_path))}/m/\.lock: cannot be opened \(.*\); may this folder be written\?$"
    with pytest.raises(TrainingError, match=message), locked(tmp_path / "m"):
        pass
    assert victim.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("harm", ["cut", "flip", "shape", "more", "less", "random", "adam", "progress"])
def test_a_saved_state_that_is_spoilt_or_forged(harm, tmp_path):
    data = write_data(tmp_path)
    trains(tmp_path / "m", data, {"max-updates": 2})
    path = tmp_path / "m" / RESUME
    content, (tensors, note) = path.read_bytes(), read_archive(path)
    changes: dict[str, dict[str, torch.Tensor]] = {
        "shape": {"model.output.bias": torch.zeros(3)},
        "more": {"model.more": torch.zeros(3)},
        "random": {"random": torch.zeros(3, dtype=torch.uint8)},
        "adam": {"optimizer.0.exp_avg": torch.zeros(3)},
    }
    if harm in ("cut", "flip"):
        spoilt = bytearray(content)
        spoilt[-1] ^= 1
        path.write_bytes(spoilt if harm == "flip" else content[:-100])
    elif harm == "less":
        write_archive(path, Archive({k: v for k, v in tensors.items() if k != "model.output.bias"}, note))
    elif harm == "progress":
        write_archive(path, Archive(tensors, {"progress": {**note["progress"], "epoch": "x"}}))
    else:
        write_archive(path, Archive({**tensors, **changes[harm]}, note))
    flags = [part for name, value in (SMALL | data).items() for part in (f"--{name}", str(value))]
    said = mirada("train", *flags, "--max-updates", 3, "--model-dir", tmp_path / "m")
    assert (said.code, said.output) == (2, "")
    expected = {"cut": "damaged or not", "flip": "its checksum", "progress": "its progress is damaged"}
    names = {"shape": "model.output.bias", "less": "model.output.bias", "adam": "optimizer.0.exp_avg"}
    wanted = expected.get(harm) or names.get(harm) or {"more": "model.more", "random": "random"}[harm]
    assert wanted in one_line(said.errors)
    assert RESUME in one_line(said.errors)
    path.write_bytes(content)
    assert weights(tmp_path / "m")
