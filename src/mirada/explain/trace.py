"""Every number of one sentence: the model's search finds the path, the papers' equations in NumPy tell the numbers.

The models know nothing of it. How near the model's own numbers are: agreement.py. What a trace holds, and its JSON:
record.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mirada.config.options import ModelConfig, SearchConfig
from mirada.data.copying import copy_ids
from mirada.data.fitting import truncate
from mirada.data.tokenizer import Piece, Tokenizer
from mirada.data.vocabulary import BOS, EOS, PAD, UNK
from mirada.errors import ConfigError, DataError
from mirada.explain.edits import Edits, check_model, check_range, edit_weights, edited, normal, replaced_weights
from mirada.explain.legend import legend
from mirada.explain.record import Asked, Entry, Moment, NextToken, Output, Source, Trace, method, plain
from mirada.reference import Array, Named, Run, Weights, systems
from mirada.search.scheduler import Request, search_all, with_end
from mirada.texts import input_limit, source_text
from mirada.translator import END, Translator

__all__ = ["Trace", "explain", "plain", "read_source", "trace"]


class Path(NamedTuple):
    """The tokens of an output, </s> included where it ends, and how many of them were given."""

    ids: tuple[int, ...]
    given: int


def trace(
    translator: Translator,
    text: str,
    *,
    options: SearchConfig,
    reference: str | None = None,
    prefix: str | None = None,
    edits: Edits | None = None,
    top_k: int = 5,
) -> list[Trace]:
    """Trace the `n_best` outputs of a text, best first; or the `reference`, or what follows a given `prefix`.

    Raises DataError for a text without tokens, ConfigError for edits that this model or sentence does not allow.
    `replace_unk` does nothing here: the model's own choices are shown.
    """
    if reference is not None and prefix is not None:
        raise ConfigError("--reference and --force exclude each other: one gives the whole output, one its beginning")
    source = read_source(translator, text, options.max_input_length)
    if prefix:
        given = begun(translator, source, prefix, options)
    else:
        given = _ids(source, translator.target_tokenizer.pieces([reference or ""])[0])
    return _explain(translator, source, Asked(options, given, reference is not None, edits and normal(edits), top_k))


def explain(translator: Translator, text: str, asked: Asked) -> list[Trace]:
    """What `trace` does, where the given tokens are ids. Raises DataError for one that this source does not have."""
    source, known = read_source(translator, text, asked.search.max_input_length), len(translator.target_tokenizer)
    strange = [i for i in asked.given if i >= known and i not in source.copies]
    if strange:
        raise DataError(f"id {strange[0]}: the vocabulary has {known} entries, and this source no such word to copy")
    return _explain(translator, source, asked)


def _explain(translator: Translator, source: Source, asked: Asked) -> list[Trace]:
    model, weights, options = translator.model, weights_of(translator), translator.config.model
    if asked.edits is not None:
        check_model(asked.edits, options)
        steps = max(len(path.ids) for path in _paths(translator, model, source, asked))
        check_range(asked.edits, len(source.ids), steps)
        model = edited(model, asked.edits, options)
        edit_weights(weights, asked.edits, options)
    paths = _paths(translator, model, source, asked)
    return [_trace(translator, weights, source, asked, path, rank) for rank, path in enumerate(paths, start=1)]


def begun(translator: Translator, source: Source, prefix: str, options: SearchConfig) -> tuple[int, ...]:
    """The tokens that the best output beginning with a text begins with, wherever in a word the text ends."""
    start = translator.target_tokenizer.beginning(prefix)
    request = Request(list(source.ids), list(_ids(source, start.pieces)), 0, source.copies, rest=start.rest)
    if start.rest is None:
        return tuple(request.prefix)
    best = search_all(translator.model, [request], options, batch_size=1, device=translator.device)[0][0].tokens
    count = len(request.prefix)
    return best[: count + start.rest.count(best[count:])]


def weights_of(translator: Translator) -> Weights:
    """The model's weights in float64, by their names in model.safetensors (and those that share them)."""
    return {name: value.cpu().double().numpy().copy() for name, value in translator.model.state_dict().items()}


def read_source(translator: Translator, text: str, most: int) -> Source:
    """Cut a text into tokens, at most `most` and </s>. Raises DataError if there are none."""
    data = translator.config.data
    limit = input_limit(data, most)
    pieces = translator.source_tokenizer.pieces([source_text(text, data, "the text")])[0]
    if not pieces:
        raise DataError("the text is empty, so there is nothing to look into; give a sentence")
    if len(pieces) > limit.most:
        translator.warn(f"{len(pieces)} source tokens, cut to {limit.option} {limit.most}")
    pieces = truncate(pieces, limit.most, limit.how)
    ids = tuple(with_end([piece.id for piece in pieces], limit.most))
    copies = tuple(copy_ids(pieces, translator.target_tokenizer)) if translator.config.model.copy_attn else ()
    tokens, words = (*(piece.text for piece in pieces), END), (*(piece.word for piece in pieces), None)
    return Source(text, tokens, ids, words, copies)


def _ids(source: Source, pieces: Sequence[Piece]) -> tuple[int, ...]:
    """The ids of an output; where the vocabulary does not hold a word but the source has it, the source's."""
    own = dict(zip(source.tokens[:-1], source.copies[:-1], strict=True)) if source.copies else {}
    return tuple(own.get(piece.text, UNK) if piece.id == UNK else piece.id for piece in pieces)


def _paths(translator: Translator, model: Any, source: Source, asked: Asked) -> list[Path]:
    if asked.whole:
        return [Path((*asked.given, EOS), len(asked.given) + 1)]
    request = Request(list(source.ids), list(asked.given), 0, source.copies)
    outputs = search_all(model, [request], asked.search, batch_size=1, device=translator.device)[0]
    return [Path((*output.tokens, *[EOS] * output.finished), len(asked.given)) for output in outputs]


def _trace(translator: Translator, weights: Weights, source: Source, asked: Asked, path: Path, rank: int) -> Trace:
    """Compute everything along a path."""
    options, tokenizer = translator.config.model, translator.target_tokenizer
    target = [BOS, *path.ids[:-1]]
    rows = _replaced(asked.edits, options, weights, source, target)
    run = systems.run(options, weights, list(source.ids), target, replaced=rows, copies=source.copies)
    steps = tuple(_moments(run, path, source, tokenizer, asked.listed))
    attention = [step.tensors["alpha"] for step in steps if "alpha" in step.tensors]
    return Trace(
        options,
        asked,
        method(asked),
        rank,
        legend(options, [*run.encoder, *run.start, *steps[0].tensors]),
        source,
        run.encoder,
        run.start,
        steps,
        _output(steps, asked.search.alpha, tokenizer),
        np.stack(attention) if attention else None,
    )


def _replaced(
    edits: Edits | None, options: ModelConfig, weights: Weights, source: Source, target: list[int]
) -> list[Array | None]:
    """The weights that replace each step's; to shuffle a step's own, all steps up to it are made once more."""
    rows: list[Array | None] = []
    if edits is None or edits.attention is None:
        return rows
    for t in range(len(target)):
        own = np.zeros(len(source.ids))  # only their number counts
        if edits.attention == "shuffled":
            run = systems.run(options, weights, list(source.ids), target[: t + 1], replaced=rows, copies=source.copies)
            own = run.steps[-1]["alpha"]
        row = replaced_weights(edits, t + 1, own.tolist())
        rows.append(None if row is None else np.array(row))
    return rows


def _token(tokenizer: Tokenizer, source: Source, index: int) -> str:
    """The text of an id: an entry of the vocabulary, or a word of the source."""
    return tokenizer.token(index) if index < len(tokenizer) else source.tokens[index - len(tokenizer)]


def log_softmax(logits: Array) -> Array:
    """ln p of every token `[V]`, −∞ for <pad> and <s>: they are never produced."""
    own = logits.copy()
    own[[PAD, BOS]] = -np.inf
    own -= own.max()
    return np.asarray(own - np.log(np.exp(own).sum()))


def log_probabilities(named: Named) -> Array:
    """ln p of every token at a step: of a model that copies, of vocabulary and source `[V + S]`."""
    if "p" not in named:
        return log_softmax(named["logits"])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(named["p"]))


def _moments(run: Run, path: Path, source: Source, tokenizer: Tokenizer, listed: int) -> list[Moment]:
    token, moments = partial(_token, tokenizer, source), []
    for t, (named, chosen) in enumerate(zip(run.steps, path.ids, strict=True)):
        tensors = {name: value for name, value in named.items() if name != "logits"}
        log_p = log_probabilities(named)
        if np.isinf(log_p[chosen]):
            raise DataError(f"step {t + 1}: {token(chosen)!r} has the probability 0 there, so no output can hold it")
        # Rounded, so that what differs in the last bit between two machines stands in the same order on both.
        best = np.argsort(-log_p.round(9), kind="stable")[: min(listed, int(np.isfinite(log_p).sum()))].tolist()
        ways = partial(_ways, named, source.copies)
        choices = [
            NextToken(i, token(i), float(np.exp(log_p[i])), float(log_p[i]), i == chosen, *ways(i))
            for i in (*best, chosen)
        ]
        previous = path.ids[t - 1] if t else BOS
        before = Entry(previous, token(previous))
        given = t < path.given
        moments.append(Moment(t + 1, before, given, tensors, named["logits"], tuple(choices[:-1]), choices[-1]))
    return moments


def _ways(named: Named, copies: Sequence[int], index: int) -> tuple[float, float] | tuple[()]:
    """What the vocabulary and what copying give a token, of a model that copies."""
    if "p" not in named:
        return ()
    own = [float(weight) for weight, word in zip(named["copy"], copies, strict=True) if word == index]
    logits = named["logits"]
    return float(np.exp(log_softmax(logits)[index])) if index < len(logits) else 0.0, own[0] if own else 0.0


def _output(steps: Sequence[Moment], alpha: float, tokenizer: Tokenizer) -> Output:
    ids, tokens = tuple(step.chosen.id for step in steps), tuple(step.chosen.token for step in steps)
    finished = ids[-1] == EOS
    words = tokenizer.words(tokens[: len(tokens) - finished])
    text = tokenizer.join(token for i, token in zip(ids, tokens, strict=True) if i == UNK or i > EOS)
    total = sum(step.chosen.log_probability for step in steps)
    divisor = ((5 + len(steps)) / 6) ** alpha
    ends = [None] * finished
    return Output(text, tokens, ids, (*words, *ends), finished, total, alpha, divisor, total / divisor)
