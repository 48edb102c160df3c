"""Outputs begin with exactly the text that was given, wherever in a word it ends, for every kind of tokeniser."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny
from cli_tools import works, write
from mirada.config import configfile
from mirada.config.configfile import changed
from mirada.config.model import applicable
from mirada.data.vocabulary import EOS
from mirada.store.checkpoint import Loaded
from mirada.train import prepare
from mirada.translator import Translator

KINDS = ("bpe", "unigram", "word", "char")
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "n_best": 3},
    "sample": {"sample": True, "n_best": 4},
    "no repeats": {"beam_size": 3, "no_repeat_ngram_size": 1},
    "short": {"beam_size": 2, "max_output_length": 1},
}
# Inside words, at their ends, behind a blank; punctuation; characters and words that no vocabulary holds; far too long.
TEXTS = [
    "el z",
    "el zor",
    "el",
    "el ",
    "¿d",
    "¿",
    "¿dónde du",
    "un libro, c",
    "日本 語",
    "el 日",
    "el Ñz",
    "  el   gat",
]
TEXTS += ["x" * 200, "l" * 60]


def made(kind: str, decoder: str = "luong") -> Translator:
    """A model with random weights that writes tokens of a kind."""
    data = {"source_tokenizer": "bpe", "target_tokenizer": kind, "vocab_size": 70}
    model = applicable({"decoder": decoder, "embedding_dim": 8, "hidden_size": 8})
    config = configfile.parse({"data": data, "model": model, "search": {"max_output_length": 12}})
    source, target = prepare.learn_tokenizers(config, tiny.CORPUS)
    torch.manual_seed(1)
    model = tiny.random_model(config, (len(source), len(target)))
    return Translator(Loaded(config, model, source, target, {}))


def normal(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_begin_with_the_text(kind, way):
    translator = made(kind)
    options = changed(translator.config.search, WAYS[way])
    found = translator.search(["the red fox"] * len(TEXTS), options=options, prefixes=TEXTS)
    for text, outputs in zip(TEXTS, found, strict=True):
        assert outputs, (kind, text)
        for output in outputs:
            begin = normal(text) + (" " if text.endswith(" ") and len(output.text) > len(normal(text)) else "")
            assert output.text.startswith(begin), (kind, text, output.text)
            assert all(p > -float("inf") for p in output.token_log_probabilities)


def test_an_unfinished_word_is_written_as_the_model_would():
    """What is likeliest among all ways to spell the word, by scoring each; not what follows the pieces of its half."""
    translator = made("bpe")
    spelling = translator.target_tokenizer.spelling
    tokens = [translator.target_tokenizer.token(i) for i in range(len(translator.target_tokenizer))]
    expected = {i for i, token in enumerate(tokens) if i > EOS and (token.startswith("▁el") or token in ("▁", "▁e"))}
    assert set(spelling.next("▁el")) == expected
    assert spelling.left("▁el", [tokens.index("▁e")]) == "l"
    greedy = changed(translator.config.search, {"beam_size": 1})
    [[output]] = translator.search(["the red fox"], options=greedy, prefixes=["el"])
    free = translator.model
    ids = torch.tensor([[*translator.source_tokenizer.encode(["the red fox"])[0], EOS]])
    with torch.inference_mode():
        memory = free.encode(ids, torch.tensor([ids.shape[1]]))
        logits = free.step(torch.tensor([2]), free.start(memory), memory).logits[0]
    best = max(expected, key=lambda i: float(logits[i]))
    assert output.tokens[0] == tokens[best]


@pytest.mark.parametrize("kind", KINDS)
def test_a_beginning_beside_others_is_as_alone(kind):
    """In a batch, with sentences that have another beginning or none, in any order."""
    translator = made(kind)
    texts = [*tiny.SOURCES, *tiny.SOURCES]
    prefixes = ["el z", "", "un", "¿dónde du", "", "la ", "", "u", "日", "", "el gato y", ""]
    for way in ("beam", "greedy"):
        options = changed(translator.config.search, WAYS[way])
        together = translator.search(texts, options=options, prefixes=prefixes, batch_size=5)
        for text, prefix, outputs in zip(texts, prefixes, together, strict=True):
            [alone] = translator.search([text], options=options, prefixes=[prefix])
            assert [output.text for output in outputs] == [output.text for output in alone]


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_the_command_and_the_exported_model_do_the_same(model_folder: Path, exported_folder: Path, tmp_path: Path):
    texts = ["el z", "¿", "el ", "ñ", "日", ""]
    begins = write(tmp_path / "begins", texts)
    given = "".join(f"{line}\n" for line in tiny.SOURCES)
    for options in ([], ["--beam-size", 1], ["--sample", "true"]):
        command = ["translate", "--prefix-file", begins, *options]
        expected = works(*command, model_folder, "--device", "cpu", given=given).lines
        assert all(line.startswith(text) for line, text in zip(expected, texts, strict=True))
        assert works(*command, exported_folder, given=given).lines == expected
