"""Ensembles: several models search and score as one, by the mean of what they say about each next token."""

from __future__ import annotations

import json
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import mirada
import tiny
from cli_tools import refusal, works, write
from mirada import loading
from mirada.config.options import SearchConfig
from mirada.data.batches import Encoded
from mirada.data.beginnings import Beginning
from mirada.data.vocabulary import BOS, EOS, PAD, UNK
from mirada.scoring import force
from mirada.translator import Translator

CPU = torch.device("cpu")
MODES = ("linear", "log_linear")
WAYS = {
    "greedy": SearchConfig(beam_size=1, max_length_ratio=0.1),
    "beam": SearchConfig(beam_size=4, n_best=3, max_length_ratio=0.1),
    "sample": SearchConfig(sample=True, n_best=2, max_length_ratio=0.1),
}
WORDS = {"source_tokenizer": "word", "target_tokenizer": "word", "vocab_min_freq": 2, "share_vocab": False}
OWN = {"data": {"share_vocab": False}}  # the Transformer as the others: a vocabulary a side
KINDS: dict[str, tuple[str, dict[str, dict[str, Any]]]] = {
    "classic": ("classic", {}),
    "bahdanau": ("bahdanau", {}),
    "luong": ("luong", {}),
    "transformer": ("transformer", {**OWN, "model": {"tied_embeddings": False}}),
    "shared": ("transformer", {}),
    "letters": ("luong", {"data": {"source_tokenizer": "char"}}),
    "copying": ("bahdanau", {"data": WORDS, "model": {"copy_attn": True}}),
    "copying-too": ("luong", {"data": WORDS, "model": {"copy_attn": True}}),
    "words": ("luong", {"data": WORDS}),
    "copying-letters": ("luong", {"data": WORDS | {"source_tokenizer": "char", "target_tokenizer": "char"}}),
}
FOUR = ("classic", "bahdanau", "luong", "transformer")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    where = tmp_path_factory.mktemp("ensembles")
    return {name: tiny.write_folder(where / name, decoder, changes) for name, (decoder, changes) in KINDS.items()}


def load(folders: dict[str, Path], *names: str, mode: str = "linear") -> Translator:
    return loading.load([folders[name] for name in names], device="cpu", ensemble_mode=mode)


def found(translator: Translator, options: SearchConfig, **more: Any) -> list[tuple[str, float]]:
    outputs = translator.search(tiny.SOURCES, options=options, **more)
    return [(output.text, output.score) for row in outputs for output in row]


def assert_near(one: list[tuple[str, float]], other: list[tuple[str, float]]) -> None:
    assert [text for text, _ in one] == [text for text, _ in other]
    assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=2e-4)


@pytest.mark.parametrize("way", WAYS)
def test_an_ensemble_of_one_or_of_equals_is_the_model(folders: dict[str, Path], way: str) -> None:
    alone = loading.load(folders["luong"], device="cpu")
    for count, mode in zip((2, 3), MODES, strict=True):
        together = load(folders, *["luong"] * count, mode=mode)
        assert_near(found(together, WAYS[way]), found(alone, WAYS[way]))
        own, every = (one.score(tiny.SOURCES, tiny.TARGETS) for one in (alone, together))
        for left, right in zip(own, every, strict=True):
            assert left.token_log_probabilities == pytest.approx(right.token_log_probabilities, abs=1e-4)
    one = load(folders, "luong")
    assert one.members.decoder() is one.model


def distributions(decoder: Any, translator: Translator, path: list[int]) -> np.ndarray:
    """p of every token at every step along a path, by steps, in float64: `[T, V]`."""
    ids = [*translator.source_tokenizer.encode([tiny.SOURCES[0]])[0], EOS]
    with torch.inference_mode():
        memory = decoder.encode(torch.tensor([ids]), torch.tensor([len(ids)]))
        state, rows = decoder.start(memory), []
        for token in [BOS, *path]:
            step = decoder.step(torch.tensor([token]), state, memory)
            state = step.state
            rows.append(step.logits[0].double().numpy().copy())
    logits = np.stack(rows)
    logits[:, [PAD, BOS]] = -inf
    p = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(p / p.sum(1, keepdims=True))


@pytest.mark.parametrize("mode", MODES)
def test_a_step_is_the_mean_of_the_members_distributions(folders: dict[str, Path], mode: str) -> None:
    translator, path = load(folders, *FOUR, mode=mode), [10, 57, 11, UNK, 4]
    together = distributions(translator.members.decoder(), translator, path)
    each = np.stack([distributions(one.model, translator, path) for one in translator.members.models])
    with np.errstate(divide="ignore"):
        mean = each.mean(0) if mode == "linear" else np.exp(np.log(each).mean(0))
    np.testing.assert_allclose(together, mean / mean.sum(1, keepdims=True), atol=2e-6)
    assert np.abs(together - each[0]).max() > 0.05  # or the test would not see the others
    assert (mode == "linear") == (np.abs(mean.sum(1) - 1).max() < 1e-9)


@pytest.mark.parametrize("names", [FOUR, ("bahdanau", "letters")], ids=["equal tokens", "other tokens"])
@pytest.mark.parametrize("way", WAYS)
def test_forced_decoding_agrees_with_the_search_and_with_the_members(
    folders: dict[str, Path], way: str, names: tuple[str, ...]
) -> None:
    translator = load(folders, *names)
    pieces = translator.members.pieces(tiny.SOURCES, translator.config.search, first=0, warn=print)
    requests = [translator.members.request(row, Beginning([]), number) for number, row in enumerate(pieces)]
    outputs = translator.scheduler.search(requests, WAYS[way], batch_size=2)  # some join while others run
    rows = [(request, output) for request, several in zip(requests, outputs, strict=True) for output in several]
    targets = [list(output.tokens) for _, output in rows]
    given = Encoded([request.source for request, _ in rows], targets)
    others = [request.others for request, _ in rows]
    forced = force(translator.members.decoder(), given._replace(others=others), CPU)
    sides = [given.sources] * len(names) if translator.members.read_alike else [given.sources, [o[0] for o in others]]
    each = [
        force(one.model, Encoded([list(ids) for ids in side], targets), CPU)
        for one, side in zip(translator.members.models, sides, strict=True)
    ]
    for number, (_, output) in enumerate(rows):
        own = forced[number].token_log_probabilities
        assert own[: len(output.token_log_probabilities)] == pytest.approx(output.token_log_probabilities, abs=2e-4)
        parts = np.exp([one[number].token_log_probabilities for one in each])
        assert own == pytest.approx(np.log(parts.mean(0)).tolist(), abs=2e-4)


def test_a_sentence_alone_is_the_sentence_in_a_batch_whatever_the_members_read(folders: dict[str, Path]) -> None:
    translator = load(folders, "letters", "bahdanau", "classic")
    options = WAYS["beam"]
    together = found(translator, options)
    alone = [(o.text, o.score) for text in tiny.SOURCES for o in translator.search([text], options=options)[0]]
    assert_near(together, alone)
    assert translator.search(["", "the cat"], options=options, prefixes=["", "un gato"])[1][0].text.startswith(
        "un gato"
    )
    assert translator.translate([""]) == [""]


def test_models_that_copy_are_mixed_on_vocabulary_and_source_together(folders: dict[str, Path]) -> None:
    source, option = "the red yak sees the gnu", SearchConfig(beam_size=2, max_length_ratio=0.1)
    for names in (("copying", "copying-too"), ("copying", "words"), ("words", "copying")):
        translator = load(folders, *names)
        [row] = translator.members.pieces([source], option, first=0, warn=print)
        request = translator.members.request(row, Beginning([]), 0)
        size = len(translator.target_tokenizer)
        yak = size + 2
        assert request.copies[2] == yak  # no vocabulary holds it
        own = sorted({i for i in request.copies if i >= size})
        given = [[i] for i in (UNK, *range(EOS, size), *own)]
        copies = [list(request.copies)] * len(given)
        forced = force(translator.members.decoder(), Encoded([request.source] * len(given), given, copies), CPU)
        firsts = {t[0]: np.exp(f.token_log_probabilities[0]) for t, f in zip(given, forced, strict=True)}
        assert sum(firsts.values()) == pytest.approx(1, abs=1e-4)
        each = [
            force(one.model, Encoded([request.source], [[yak]], [list(request.copies)]), CPU)[0]
            for one in translator.members.models
            if one.config.model.copy_attn
        ]
        total = sum(np.exp(one.token_log_probabilities[0]) for one in each) / len(names)
        assert firsts[yak] == pytest.approx(total, rel=1e-4)
        [[best]] = translator.search([source], options=option, prefixes=["yak gnu"])
        assert best.text.startswith("yak gnu")  # and what copies not read <unk>


def test_the_attention_is_the_mean_of_those_that_have_some(folders: dict[str, Path]) -> None:
    rows = {
        names: load(folders, *names).score(tiny.SOURCES, tiny.TARGETS, with_attention=True)
        for names in (("bahdanau",), ("luong",), ("bahdanau", "luong"), ("classic", "luong"))
    }
    for place in range(len(tiny.SOURCES)):
        one, other, both, lone = (rows[names][place].attention for names in rows)
        np.testing.assert_allclose(both, (one + other) / 2, atol=1e-5)
        np.testing.assert_allclose(lone, other, atol=1e-5)


def test_what_is_no_ensemble_is_one_line(folders: dict[str, Path], tmp_path: Path) -> None:
    luong, shared, letters, words, copying = (
        folders[name] for name in ("luong", "shared", "letters", "words", "copying")
    )
    need = (
        "models of an ensemble write one vocabulary, as trainings on the same pairs with the same tokenizer options do"
    )
    told = refusal("translate", luong, shared, given="a\n")
    assert told.startswith(f"{shared}: another target vocabulary than {luong} (entry ")
    assert told.endswith(need)
    told = refusal("translate", luong, words, given="a\n")
    assert told == f"{words}: another target vocabulary than {luong} (word and bpe); {need}"
    odd = tiny.write_folder(tmp_path / "odd", "luong", {"data": WORDS | {"source_tokenizer": "char"}})
    told = refusal("translate", copying, odd, given="a\n")
    assert told.startswith(
        f"{odd}: cuts sources into other tokens than {copying}; in an ensemble that copies (copy_attn)"
    )
    told = refusal("translate", luong, letters, "--alignment", "hard", given="a\n")
    assert told.startswith(f"{luong}, {letters}: no attention in common (classic models have none, others need equal ")
    with pytest.raises(mirada.MiradaError, match="cut sources into different tokens"):
        load(folders, "luong", "letters").score(["the cat"], ["el gato"], with_attention=True)
    assert refusal("translate", luong, "--ensemble-mode", "linear", given="a\n") == (
        "--ensemble-mode goes with several models; one alone is its own mean"
    )
    assert refusal("translate", luong, luong, "--server", "http://127.0.0.1:1", given="a\n") == (
        "an ensemble needs its models in this process; leave out --server"
    )
    with pytest.raises(mirada.MiradaError, match="no model folder"):
        mirada.load([])


def test_an_exported_model_is_no_member(folders: dict[str, Path], tmp_path: Path) -> None:
    works("export", folders["luong"], "--to", "onnx", "--out", tmp_path / "exported")
    assert refusal("translate", folders["luong"], tmp_path / "exported", given="a\n") == (
        f"{tmp_path / 'exported'}: an exported model; an ensemble is made of the folders of trained models"
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_commands_take_several_models(folders: dict[str, Path], tmp_path: Path, mode: str) -> None:
    models = [folders[name] for name in FOUR]
    translator = load(folders, *FOUR, mode=mode)
    best = [outputs[0] for outputs in translator.search(tiny.SOURCES)]
    given = "".join(f"{source}\n" for source in tiny.SOURCES)
    flags = ("--ensemble-mode", mode, "--device", "cpu")
    saved = tmp_path / "a.jsonl"
    lines = works("translate", *models, *flags, "--scores", "--save-attention", saved, given=given).lines
    assert lines == [f"{output.text}\t{output.score:.4f}" for output in best]
    weights = [json.loads(line)["attention"] for line in saved.read_text().splitlines()]
    assert [len(rows) for rows in weights] == [len(output.tokens) for output in best]

    files = [write(tmp_path / name, side) for name, side in (("src", tiny.SOURCES), ("tgt", tiny.TARGETS))]
    pairs = ("--src", files[0], "--tgt", files[1])
    scores = [float(line) for line in works("score", *models, *flags, *pairs).lines]
    expected = translator.score(tiny.SOURCES, tiny.TARGETS)
    assert scores == pytest.approx([one.log_probability for one in expected], abs=1e-4)
    outputs = tmp_path / "out"
    works("evaluate", *models, *flags, *pairs, "--metrics", "chrf", "--save-outputs", outputs)
    assert outputs.read_text().splitlines() == [output.text for output in best]


def test_the_two_means_differ(folders: dict[str, Path]) -> None:
    """By hand: 0.9 and 0.1 have the mean 0.5, their geometric mean before normalising is 0.3."""
    from mirada.search.ensemble import mixed

    parts = [torch.tensor([[0.9, 0.1, 0.0]]).log(), torch.tensor([[0.1, 0.9]]).log()]
    assert mixed(parts, "linear").exp()[0].tolist() == pytest.approx([0.5, 0.5, 0])
    parts = [torch.tensor([[0.8, 0.2]]).log(), torch.tensor([[0.5, 0.5]]).log()]
    assert mixed(parts, "log_linear")[0, 0].item() == pytest.approx(log(0.4**0.5 / (0.4**0.5 + 0.1**0.5)))
