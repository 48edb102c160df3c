"""Text in, text out: n lines give n results in order, and each depends on its own line alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from mirada.config.configfile import changed
from mirada.config.options import SearchConfig
from mirada.data.batches import Encoded, collate
from mirada.data.vocabulary import BOS, EOS, PAD
from mirada.errors import ConfigError, DataError, ModelFolderError
from mirada.search.chunks import LOOKAHEAD
from mirada.store.checkpoint import Loaded
from mirada.translator import EMPTY, Translation, Translator, load

WAYS = {
    "greedy": SearchConfig(beam_size=1, max_length_ratio=0.1),
    "beam": SearchConfig(beam_size=3, max_length_ratio=0.1),
    "sample": SearchConfig(sample=True, max_length_ratio=0.1),
}
# With an empty line, a blank one, unknown characters, the name of a special token, and a line ten times as long.
LINES = [*tiny.SOURCES[:3], "", "the Ω sleeps </s> 漢", " \t\u3000", "cat", " ".join(tiny.SOURCES), *tiny.SOURCES[3:]]
ONE = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)  # where the flow does not matter


@pytest.fixture(params=list(WAYS))
def options(request: pytest.FixtureRequest) -> SearchConfig:
    return WAYS[request.param]


def same(left: list[Translation], right: list[Translation]) -> bool:
    """Whether two lists of outputs agree: texts and tokens exactly, numbers nearly."""
    assert [one.tokens for one in left] == [one.tokens for one in right]
    for one, other in zip(left, right, strict=True):
        assert replace(one, score=0, log_probability=0, token_log_probabilities=()) == replace(
            other, score=0, log_probability=0, token_log_probabilities=()
        )
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-4)
        assert (one.attention is None) == (other.attention is None)
        if one.attention is not None and other.attention is not None:
            assert one.attention == pytest.approx(other.attention, abs=1e-4)
    return True


def best(found: list[list[Translation]]) -> list[Translation]:
    return [outputs[0] for outputs in found]


# Lines in, lines out


def test_every_line_has_its_result(translator, options):
    found = translator.search(LINES, options=options, with_attention=True)
    assert len(found) == len(LINES)
    for line, (output,) in zip(LINES, found, strict=True):
        pieces = translator.source_tokenizer.pieces([line])[0]
        assert output.source_tokens == (*(piece.text for piece in pieces), "</s>")
        assert output.source_words == tuple(piece.word for piece in pieces)
        assert (output == EMPTY) == (not line.strip())
    assert translator.search([]) == []
    assert translator.translate([]) == []


def test_alone_or_together_in_any_order(translator, options):
    expected = best(translator.search(LINES, options=options, with_attention=True))
    small = best(translator.search(LINES, options=options, with_attention=True, batch_size=2))
    alone = [
        translator.search([line], options=options, with_attention=True, first=number)[0][0]
        for number, line in enumerate(LINES)
    ]
    assert same(small, expected)
    assert same(alone, expected)
    if not options.sample:  # what is drawn follows the line's number
        turned = best(translator.search(LINES[::-1], options=options, with_attention=True))[::-1]
        assert same(turned, expected)


def test_a_result_tells_how_it_was_made(translator, options):
    for (output,) in translator.search(LINES, options=options, with_attention=True):
        count = len(output.tokens)
        assert count == len(output.token_log_probabilities)
        assert (output.tokens[-1] == "</s>") == output.finished
        assert output.text == translator.target_tokenizer.join(output.tokens[: count - output.finished])
        assert output.log_probability == pytest.approx(sum(output.token_log_probabilities))
        assert output.score == pytest.approx(output.log_probability * 6 / (5 + count))
        if output.attention is not None:
            assert output.attention.shape == (count, len(output.source_tokens))
            assert output.attention.sum(1) == pytest.approx(np.ones(count), abs=1e-5)


def test_attention_comes_where_it_is_wanted_and_there_is_one(translator):
    line = tiny.SOURCES[:1]
    assert translator.search(line)[0][0].attention is None
    found = translator.search(line, with_attention=True)[0][0].attention
    assert (found is None) == (translator.config.model.decoder == "classic")


def test_translate_gives_the_best_texts(translator):
    assert translator.translate(LINES) == [output.text for output in best(translator.search(LINES))]
    greedy = changed(translator.config.search, {"beam_size": 1})
    expected = [output.text for output in best(translator.search(LINES, options=greedy))]
    assert translator.translate(LINES, beam_size=1) == expected
    assert translator.translate(["", " "]) == ["", ""]


def test_several_outputs_a_line(translator):
    options = SearchConfig(beam_size=4, n_best=3, max_length_ratio=0.1)
    for line, outputs in zip(LINES, translator.search(LINES, options=options), strict=True):
        assert len(outputs) == (3 if line.strip() else 1)
        assert len({output.tokens for output in outputs}) == len(outputs)
        assert outputs == sorted(outputs, key=lambda output: (not output.finished, -output.score))
    drawn = SearchConfig(sample=True, n_best=5, max_length_ratio=0.1)
    assert len(translator.search(["cat"], options=drawn)[0]) == 5


@ONE
def test_more_outputs_than_hypotheses(translator):
    three = Translator(Loaded(changed(translator.config, {"search": {"n_best": 3}}), *_parts(translator)))
    with pytest.raises(ConfigError, match="n_best 3 is larger than beam_size 2"):
        three.translate(["cat"], beam_size=2)


def _parts(translator: Translator) -> tuple[Any, ...]:
    return translator.model, translator.source_tokenizer, translator.target_tokenizer, translator.metrics


# Streams


def test_a_stream_gives_what_a_list_gives(translator, options):
    lines = LINES * 2
    found = best(list(translator.stream(iter(lines), options=options, batch_size=2, with_attention=True)))
    assert same(found, best(translator.search(lines, options=options, with_attention=True)))


@ONE
def test_a_stream_reads_little_ahead(translator):
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield tiny.SOURCES[read % 6]

    ahead = []
    stream = translator.stream(endless(), options=SearchConfig(beam_size=1, max_output_length=1), batch_size=2)
    for written in range(100):
        next(stream)
        ahead.append(read - written)
    assert ahead[0] == 2
    assert max(ahead) == 2 * LOOKAHEAD


@ONE
def test_an_empty_stream(translator):
    assert list(translator.stream([])) == []


# Long sources


@ONE
def test_a_source_that_is_too_long_is_cut_with_a_warning(model_folder):
    lines: list[str] = []
    translator = load(model_folder, device="cpu")
    translator.warn = lines.append
    options = changed(WAYS["greedy"], {"max_input_length": 4})
    pieces = translator.source_tokenizer.pieces([tiny.SOURCES[0]])[0]
    (output,) = translator.search([tiny.SOURCES[0]], options=options, first=6)[0]
    assert lines == [f"line 7: {len(pieces)} tokens, cut to max_input_length 4"]
    assert output.source_tokens == (*(piece.text for piece in pieces[:4]), "</s>")
    assert output.source_words == tuple(piece.word for piece in pieces[:4])
    lines.clear()
    list(translator.stream(["cat", "", tiny.SOURCES[0]], options=options, batch_size=1))
    assert lines == [f"line 3: {len(pieces)} tokens, cut to max_input_length 4"]


@ONE
def test_without_anyone_to_warn(translator):
    options = changed(WAYS["greedy"], {"max_input_length": 2})
    assert len(translator.search([tiny.SOURCES[0]], options=options)[0][0].source_tokens) == 3


# Forced beginnings


@pytest.mark.parametrize("way", ["greedy", "beam"])
def test_prefixes_are_how_outputs_begin(translator, way):
    prefixes = ["el gato", "", "un libro viejo"]
    found = best(translator.search(tiny.SOURCES[:3], options=WAYS[way], prefixes=prefixes))
    free = best(translator.search(tiny.SOURCES[:3], options=WAYS[way]))
    for prefix, output in zip(prefixes, found, strict=True):
        pieces = translator.target_tokenizer.beginning(prefix).pieces
        assert output.tokens[: len(pieces)] == tuple(piece.text for piece in pieces)
        assert output.text.startswith(prefix)
    assert same(found[1:2], free[1:2])


@ONE
def test_every_text_has_its_prefix_or_none_has(translator):
    message = "2 texts and 1 prefixes; give each text one, or an empty one"
    with pytest.raises(DataError, match=f"^{message}$"):
        translator.search(["a", "b"], prefixes=["el"])


def test_one_text_is_not_taken_for_its_letters(translator):
    for ask in (translator.search, translator.translate):
        with pytest.raises(DataError, match=r"^expected a list of texts, got one text; write \[text\]$"):
            ask("a text")


@ONE
def test_a_prefix_longer_than_the_limit(translator):
    options = SearchConfig(beam_size=2, max_output_length=1)
    (output,) = translator.search(["cat"], options=options, prefixes=["el zorro rojo"])[0]
    assert output.text.startswith("el zorro rojo")  # with room for the last word to be spelt otherwise
    assert len(output.tokens) <= 9
    assert not output.finished


# Scores of given outputs


def test_score_is_the_softmax_without_pad_and_start(translator):
    sources = [*tiny.SOURCES, "", "Ω"]
    targets = [*tiny.TARGETS[1:], "", "el gato", "un Ω"]
    scored = translator.score(sources, targets, batch_size=3)
    for source, target, found in zip(sources, targets, scored, strict=True):
        ids = [translator.source_tokenizer.encode([source])[0], translator.target_tokenizer.encode([target])[0]]
        batch = collate(Encoded([[*ids[0], EOS]], [ids[1]]), [0], torch.device("cpu"))
        with torch.no_grad():
            hidden = translator.model.forward(batch.source, batch.lengths, batch.target_in).hidden[0]
            logits = translator.model.logits(hidden).double().numpy()
        logits[:, [PAD, BOS]] = -np.inf
        log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
        expected = [log_p[step, token] for step, token in enumerate([*ids[1], EOS])]
        assert found.token_log_probabilities == pytest.approx(expected, abs=1e-4)
        assert found.log_probability == pytest.approx(sum(expected), abs=1e-3)
        assert found.source_tokens == (*(p.text for p in translator.source_tokenizer.pieces([source])[0]), "</s>")
        assert found.tokens == (*(p.text for p in translator.target_tokenizer.pieces([target])[0]), "</s>")


def test_the_score_of_what_the_search_found(translator):
    """A forced beginning, so that the output is certain to be read as the same tokens again."""
    options = SearchConfig(beam_size=2, max_output_length=1)
    ended = [f"{target} " for target in tiny.TARGETS]  # the blank: the last word is whole
    found = best(translator.search(tiny.SOURCES, options=options, prefixes=ended, with_attention=True))
    scored = translator.score(tiny.SOURCES, tiny.TARGETS, with_attention=True)
    for output, given in zip(found, scored, strict=True):
        count = len(given.tokens) - 1
        assert output.tokens[:count] == given.tokens[:-1]
        assert output.token_log_probabilities[:count] == pytest.approx(given.token_log_probabilities[:count], abs=1e-4)
        if output.attention is not None and given.attention is not None:
            assert given.attention.shape == (len(given.tokens), len(given.source_tokens))
            assert given.attention[:count] == pytest.approx(output.attention[:count], abs=1e-4)


@ONE
def test_unequal_counts(translator):
    message = "2 sources and 1 targets; line n of both must belong together"
    with pytest.raises(DataError, match=f"^{message}$"):
        translator.score(["a", "b"], ["c"])
    assert translator.score([], []) == []


# Folders


def test_load(model_folder, monkeypatch):
    monkeypatch.setenv("HOME", str(model_folder.parent))
    loaded = load(f"~/{model_folder.name}", device="cpu")
    assert loaded.metrics == tiny.METRICS
    assert loaded.config == tiny.options(model_folder.name)
    assert loaded.device == torch.device("cpu")


def test_no_folder(tmp_path):
    with pytest.raises(ModelFolderError, match=f"^{re.escape(str(tmp_path / 'none'))}: no such model folder$"):
        load(tmp_path / "none")


# What is no list of texts


@ONE
def test_what_is_no_list_of_texts_is_named(translator):
    for ask, message in (
        (lambda: translator.score("a", "b"), "expected a list of sources, got one source; write [source]"),
        (lambda: translator.score(["a"], "b"), "expected a list of targets, got one target; write [target]"),
        (lambda: translator.search(["a", "b"], prefixes="xx"), "expected a list of prefixes, got one prefix"),
        (lambda: translator.translate(["a", None]), "text 2 is NoneType, not a string"),
        (lambda: translator.score([b"a"], ["b"]), "source 1 is bytes, not a string"),
    ):
        with pytest.raises(DataError, match=f"^{re.escape(message)}"):
            ask()


@ONE
def test_a_batch_holds_at_least_one(translator):
    for ask in (
        lambda: translator.search(["a"], batch_size=0),
        lambda: list(translator.stream_blocks([["a"]], batch_size=0)),
        lambda: translator.score(["a"], ["b"], batch_size=0),
    ):
        with pytest.raises(ConfigError, match=r"^batch_size is 0; it must be at least 1$"):
            ask()
