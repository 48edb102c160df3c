"""Text in, text out: n lines give n results in order, and each depends on its own line alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from mirada.checkpoint import Loaded
from mirada.config import Config, SearchConfig
from mirada.configfile import changed
from mirada.data.batches import Encoded, collate
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import BOS, EOS, PAD, UNK
from mirada.errors import ConfigError, DataError, ModelFolderError
from mirada.models.base import Memory
from mirada.translator import EMPTY, LOOKAHEAD, Translation, Translator, _replaced, load

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
        assert output.score == pytest.approx(output.log_probability / ((5 + count) / 6) ** 0.6)
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
        pieces = translator.target_tokenizer.pieces([prefix])[0]
        assert output.tokens[: len(pieces)] == tuple(piece.text for piece in pieces)
        assert output.text.startswith(prefix)
    assert same(found[1:2], free[1:2])


@ONE
def test_every_text_has_its_prefix_or_none_has(translator):
    message = "2 texts and 1 prefixes; give each text one, or an empty one"
    with pytest.raises(DataError, match=f"^{message}$"):
        translator.search(["a", "b"], prefixes=["el"])


@ONE
def test_a_prefix_longer_than_the_limit(translator):
    options = SearchConfig(beam_size=2, max_output_length=1)
    (output,) = translator.search(["cat"], options=options, prefixes=["el zorro rojo"])[0]
    assert output.text == "el zorro rojo"
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
    found = best(translator.search(tiny.SOURCES, options=options, prefixes=tiny.TARGETS, with_attention=True))
    scored = translator.score(tiny.SOURCES, tiny.TARGETS, with_attention=True)
    for output, given in zip(found, scored, strict=True):
        count = len(output.tokens) - output.finished
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


# <unk>


class Looker:
    """A model that says <unk> once a source token, and looks at them from last to first, but even more at </s>."""

    output = SimpleNamespace(weight=torch.zeros(1))

    def encode(self, source: torch.Tensor, lengths: torch.Tensor) -> Memory:
        return Memory(source[..., None].float(), source != PAD, lengths, None)

    def start(self, memory: Memory) -> torch.Tensor:
        return torch.zeros_like(memory.keys)

    def step(self, token: torch.Tensor, state: torch.Tensor, memory: Memory) -> SimpleNamespace:
        real = memory.keys - 1  # where </s> stands
        logits = torch.zeros(len(token), 9)
        logits[torch.arange(len(token)), torch.where(state < real, UNK, EOS)] = 9.0
        attention = torch.zeros(len(token), memory.mask.shape[1])
        attention.scatter_(1, (real - 1 - state).clamp(min=0)[:, None], 0.4)
        attention.scatter_(1, real[:, None], 0.6)
        return SimpleNamespace(logits=logits, state=state + 1, attention=attention)


def test_unknown_words_are_replaced_by_what_the_model_looked_at():
    words = train_tokenizer(["the cat sees a dog"], TokenizerOptions("word", 50))
    model: Any = Looker()
    translator = Translator(Loaded(Config(), model, words, words, {}))
    lines = ["cat Ψευδώς  the", "Ω", "a dog sees the Ω cat"]
    options = SearchConfig(beam_size=1, replace_unk=True)
    found = best(translator.search(lines, options=options))
    assert [output.text for output in found] == ["the Ψευδώς cat", "Ω", "cat Ω the sees dog a"]
    assert found[0].tokens == ("the", "Ψευδώς", "cat", "</s>")
    plain = best(translator.search(lines, options=SearchConfig(beam_size=1)))
    assert [output.text for output in plain] == ["<unk> <unk> <unk>", "<unk>", " ".join(["<unk>"] * 6)]


def test_only_unk_is_replaced_and_never_by_the_end():
    words = train_tokenizer(["a b"], TokenizerOptions("word", 50))
    (source,) = words.pieces(["a Ω b"])
    attention = np.array([[0.0, 1.0, 0.0, 0.0], [0.1, 0.2, 0.0, 0.7], [0.3, 0.0, 0.2, 0.5]])
    assert _replaced(["b", "<unk>", "<unk>"], (5, UNK, UNK), source, attention) == ["b", "Ω", "a"]


# Alignments


def linked(translator: Translator, attention: Any, *, finished: bool = True) -> str:
    tokens = ("▁x", "▁y", "z", "</s>") if finished else ("▁x", "▁y", "z")
    weights = None if attention is None else np.array(attention)[: len(tokens)]
    found = Translation(
        "x yz", 0, 0, finished, ("▁a", "b", "▁c", "</s>"), (0, 0, 1), tokens, (0.0,) * len(tokens), weights
    )
    return translator.word_links(found)


WEIGHTS = [
    [0.3, 0.3, 0.35, 0.05],  # x: 0.6 at the word ab, though c is the likeliest piece
    [0.2, 0.2, 0.1, 0.5],  # y: 0.4 at ab, 0.1 at c, most at </s>
    [0.1, 0.0, 0.6, 0.3],  # z: 0.1 and 0.6; so yz: 0.25 and 0.35
    [0.0, 0.0, 0.0, 1.0],
]


@ONE
def test_links_join_pieces_into_words_and_leave_the_ends_out(translator):
    assert linked(translator, WEIGHTS) == "0-0 1-1"
    assert linked(translator, WEIGHTS, finished=False) == "0-0 1-1"
    assert linked(translator, None) == ""
    assert translator.word_links(EMPTY) == ""


def test_links_of_real_outputs_are_words_of_both_sides(translator):
    for line, (output,) in zip(
        LINES, translator.search(LINES, options=WAYS["greedy"], with_attention=True), strict=True
    ):
        links = [tuple(map(int, link.split("-"))) for link in translator.word_links(output).split()]
        if output.attention is None or not output.text:
            continue
        assert all(0 <= source < len(line.split()) for source, _ in links)
        assert len({target for _, target in links}) == len(links)


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
