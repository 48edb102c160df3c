"""JoeyNMT 2: its habits, and every way in which a folder can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from cli_tools import works
from import_tools import Change, Hostile, copy_of, outputs, refused, spoil

HERE = Path(__file__).parent
SAID = {
    "joey_bahdanau": "bahdanau attention is not Bahdanau's system: the additive score looks with the new state",
    "joey_luong": "luong attention is Luong's system with the score general; W_c has a bias, and every",
    "joey_transformer": "a Transformer as Vaswani et al. 2017 have it, but for pre-norm and ε 1e-06 of its norms",
    "joey_transformer_post": "a Transformer as Vaswani et al. 2017 have it, but for ε 1e-06 of its norms",
}


@pytest.mark.parametrize("name", list(SAID))
def test_it_says_what_differs_from_the_papers_system(name: str, tmp_path: Path) -> None:
    said = works("import", HERE / name, "--out", tmp_path / "out").errors
    assert "imported from JoeyNMT" in said
    assert SAID[name] in said


@pytest.mark.parametrize(("kind", "equal"), [("zero", False), ("last", True)])
def test_how_the_decoder_starts(kind: str, equal: bool, tmp_path: Path) -> None:
    """The luong model starts from →h_S (`last`): so does a `bridge` that picks it out of [→h_S; ←h_1], but for tanh."""
    folder = copy_of("joey_luong", tmp_path)
    change_options(folder, lambda model: model["decoder"].update(init_hidden=kind))
    assert (outputs(folder, tmp_path / "one") == outputs(HERE / "joey_luong", tmp_path / "two")) == equal


def test_the_last_checkpoint_where_there_is_no_best(tmp_path: Path) -> None:
    folder = copy_of("joey_luong", tmp_path)
    expected = outputs(folder, tmp_path / "one")
    (folder / "best.ckpt").rename(folder / "300.ckpt")
    (folder / "latest.ckpt").symlink_to("300.ckpt")
    assert outputs(folder, tmp_path / "two") == expected


def change_options(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "config.yaml"
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(content["model"])
    path.write_text(yaml.safe_dump(content), encoding="utf-8")


OPTIONS: list[tuple[str, Change, str]] = [
    ("joey_luong", lambda model: model["encoder"].update(bidirectional=False), "bidirectional False; only True can be"),
    ("joey_luong", lambda model: model["encoder"].update(type="conv"), "encoder.type is 'conv', expected recurrent or"),
    ("joey_luong", lambda model: model["decoder"].update(type="transformer"), "are of different types"),
    ("joey_bahdanau", lambda model: model["decoder"].pop("rnn_type"), "decoder.rnn_type is 'gru', expected lstm"),
    ("joey_luong", lambda model: model["decoder"].update(rnn_type="lstm"), "decoder.rnn_type is 'lstm', expected gru"),
    ("joey_luong", lambda model: model["decoder"].update(attention="dot"), "'dot', expected bahdanau or luong"),
    ("joey_luong", lambda model: model["decoder"].update(activation="relu"), "activation 'relu'; only tanh can be"),
    (
        "joey_luong",
        lambda model: model["decoder"].update(init_hidden="mean"),
        "init_hidden is 'mean', expected bridge or",
    ),
    ("joey_luong", lambda model: model["decoder"].update(hidden_size="12"), "hidden_size is '12', expected a whole"),
    ("joey_luong", lambda model: model["encoder"].update(num_layers=2), "encoder.rnn.weight_ih_l1 is missing"),
    (
        "joey_luong",
        lambda model: model["decoder"].update(embeddings=3),
        "model.decoder.embeddings is 3, expected settings",
    ),
    ("joey_luong", lambda model: model.pop("encoder"), "model.encoder is None, expected settings"),
    ("joey_bahdanau", lambda model: model["decoder"].update(num_layers=1), "unknown tensors decoder.rnn.bias_hh_l1"),
    (
        "joey_bahdanau",
        lambda model: model["decoder"].update(init_hidden="zero"),
        "unknown tensors decoder.bridge_layer",
    ),
    ("joey_transformer", lambda model: model["encoder"].pop("layer_norm"), "layer_norm is None, expected pre or post"),
    ("joey_transformer", lambda model: model["decoder"].pop("layer_norm"), "layer_norm is 'post', expected pre"),
    (
        "joey_transformer",
        lambda model: model["decoder"].update(alpha=1.1),
        "decoder.alpha 1.1; only 1.0 can be imported",
    ),
    (
        "joey_transformer",
        lambda model: model["decoder"].update(num_heads=4),
        "num_heads 2 and model.decoder.num_heads",
    ),
    ("joey_transformer", lambda model: model["encoder"].update(activation="tanh"), "'tanh', expected relu or gelu or"),
]


@pytest.mark.parametrize(("name", "change", "line"), OPTIONS, ids=[line for _, _, line in OPTIONS])
def test_options_that_mirada_has_not_are_one_line(name: str, change: Change, line: str, tmp_path: Path) -> None:
    folder = copy_of(name, tmp_path)
    change_options(folder, change)
    assert line in refused(folder, tmp_path / "out")


KEY = "decoder.attention.key_layer.weight"
CONTENT: list[tuple[Change, str]] = [
    (lambda content: content.pop("model_state"), "holds no model_state, which JoeyNMT writes"),
    (lambda content: content["model_state"].pop(KEY), f"the tensor {KEY} is missing"),
    (lambda content: content["model_state"].update({KEY: torch.ones(2)}), f"{KEY} is [2], expected [12, 24]"),
    (lambda content: content["model_state"][KEY].fill_(torch.inf), f"{KEY} holds values that are no numbers"),
    (lambda content: content["model_state"].update(more=torch.ones(1)), "unknown tensors more"),
]


@pytest.mark.parametrize(("change", "line"), CONTENT, ids=[line for _, line in CONTENT])
def test_bad_weights_are_one_line(change: Change, line: str, tmp_path: Path) -> None:
    folder = copy_of("joey_luong", tmp_path)
    spoil(folder / "best.ckpt", change)
    assert line in refused(folder, tmp_path / "out")


FILES: list[tuple[str, bytes | None, str]] = [
    ("src_vocab.txt", None, "src_vocab.txt: missing"),
    ("src_vocab.txt", b"<unk>\n<pad>\n<s>\n</s>\na\n", "src_embed.lut.weight is"),
    ("trg_vocab.txt", b"\xff", "trg_vocab.txt: not UTF-8"),
    ("config.yaml", b"- 1\n", "config.yaml"),
    ("config.yaml", b"{", "config.yaml"),
    ("config.yaml", b"model: {}\n", "data is None, expected settings"),
    ("best.ckpt", b"", "damaged or not a file of torch.save"),
]


@pytest.mark.parametrize(("name", "content", "line"), FILES)
def test_bad_files_are_one_line(name: str, content: bytes | None, line: str, tmp_path: Path) -> None:
    folder = copy_of("joey_luong", tmp_path)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    assert line in refused(folder, tmp_path / "out")


def test_a_pickle_that_runs_a_program_is_not_run(tmp_path: Path) -> None:
    folder = copy_of("joey_luong", tmp_path)
    torch.save({"model_state": {KEY: Hostile()}}, folder / "best.ckpt")
    assert "holds the Python object" in refused(folder, tmp_path / "out")
    assert not Path("/tmp/never").exists()
