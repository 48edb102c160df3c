"""Models that search and score as one: the same target vocabulary, whatever they are and however they cut sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mirada.config.options import SearchConfig
from mirada.data.beginnings import Beginning
from mirada.data.copying import copy_ids, written_ids
from mirada.data.tokenizer import Piece
from mirada.data.vocabulary import EOS
from mirada.errors import ConfigError
from mirada.search.ensemble import Ensemble, Mode
from mirada.search.queue import Request
from mirada.store.checkpoint import Loaded
from mirada.texts import input_limit, source_pieces, source_text


class Members:
    """The models of a translator, usually one. `mode` says what is the mean of several (search/ensemble.py)."""

    def __init__(self, models: Sequence[Loaded], mode: Mode = "linear"):
        self.models, self.mode = tuple(models), mode
        self.read_alike = all(_reading(model) == _reading(models[0]) for model in models[1:])
        self.copy = any(model.config.model.copy_attn for model in models)
        self.have_attention = self.read_alike and any(model.config.model.has_attention for model in models)

    def decoder(self, made: Callable[[Any], Any] = lambda model: model) -> Any:
        """What searches and scores: the one model, or all as one, each as `made` makes it."""
        parts = [made(model.model) for model in self.models]
        return parts[0] if len(parts) == 1 else Ensemble(parts, vocabulary=len(self.models[0].target), mode=self.mode)

    def pieces(
        self, texts: Sequence[str], options: SearchConfig, *, first: int, warn: Callable[[str], None]
    ) -> list[list[list[Piece]]]:
        """The tokens of each text for each model; for the first alone where all read the same."""
        sides = [_pieces(model, texts, options, first, warn) for model in self.models[: 1 if self.read_alike else None]]
        return [list(row) for row in zip(*sides, strict=True)]

    def request(self, row: Sequence[Sequence[Piece]], start: Beginning, number: int) -> Request:
        """What is to be searched or scored: a source as each model reads it, and how its output begins."""
        copies = tuple(copy_ids(row[0], self.models[0].target)) if self.copy else ()
        source, *others = ([*(piece.id for piece in pieces), EOS] for pieces in row)
        return Request(
            source, written_ids(start.pieces, row[0], copies), number, copies, tuple(map(tuple, others)), start.rest
        )

    def check_attention(self, wanted: bool, heads: bool = False) -> None:
        """Raise ConfigError where weights are wanted that these models do not have in common."""
        if heads and len(self.models) > 1:
            raise ConfigError("the attention of each head is one model's; an ensemble has none")
        if wanted and not self.read_alike:
            raise ConfigError(
                "these models cut sources into different tokens, so that they have no attention in common; ask for "
                "none (no alignment, no saved attention, no replace_unk), or take models with equal source tokens"
            )


def gather(names: Sequence[str], models: Sequence[Loaded], mode: Mode) -> Members:
    """Put models together; raises ConfigError, naming two, if they cannot be one ensemble."""
    members = Members(models, mode)
    for name, model in zip(names[1:], models[1:], strict=True):
        if difference := _difference(models[0], model):
            raise ConfigError(
                f"{name}: another target vocabulary than {names[0]} ({difference}); models of an ensemble write one "
                "vocabulary, as trainings on the same pairs with the same tokenizer options do"
            )
        if members.copy and _reading(model) != _reading(models[0]):
            raise ConfigError(
                f"{name}: cuts sources into other tokens than {names[0]}; in an ensemble that copies (copy_attn) all "
                "must copy from the same"
            )
    return members


def _reading(model: Loaded) -> tuple[Any, ...]:
    """All that decides what a model reads of a text."""
    data = model.config.data
    limits = (data.truncate_source, data.max_length if data.truncate_source != "none" else None)
    return (model.source.content(), model.source.kind, *limits, data.source_parts, data.by_keys, data.source_keys)


def _difference(one: Loaded, other: Loaded) -> str:
    """What is different in two target vocabularies, in words; nothing where they are the same."""
    if one.target.kind != other.target.kind:
        return f"{other.target.kind} and {one.target.kind}"
    entries = [[tokenizer.token(i) for i in range(len(tokenizer))] for tokenizer in (other.target, one.target)]
    if len(entries[0]) != len(entries[1]):
        return f"{len(entries[0])} entries and {len(entries[1])}"
    wrong = [i for i, pair in enumerate(zip(*entries, strict=True)) if pair[0] != pair[1]]
    return f"entry {wrong[0]}: {entries[0][wrong[0]]!r} and {entries[1][wrong[0]]!r}" if wrong else ""


def _pieces(
    model: Loaded, texts: Sequence[str], options: SearchConfig, first: int, warn: Callable[[str], None]
) -> list[list[Piece]]:
    data = model.config.data
    sources = [source_text(text, data, f"line {number}") for number, text in enumerate(texts, start=first + 1)]
    return source_pieces(model.source, sources, input_limit(data, options.max_input_length), first=first, warn=warn)
