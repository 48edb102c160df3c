"""A trace made again from the weights in plain NumPy, without the models, the search, or torch's functions.

Of a trace it takes the text, the output's ids, the edits, how many choices to list, and how the output was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, inf, log
from typing import Any

import numpy as np

from mirada.config.options import ModelConfig
from mirada.data.tokenizer import Tokenizer
from mirada.data.vocabulary import BOS, EOS, PAD
from mirada.explain.edits import Edits, edit_weights, forced_weights, normal
from mirada.explain.legend import legend
from mirada.explain.record import BEGUN, WHOLE, Choice, Moment, Output, Source, Token, Trace, plain
from mirada.reference import Array, Run, Weights, systems
from mirada.translator import END, Translator

TIE = 1e-4  # log-probabilities this near may be listed in either order


def weights_of(translator: Translator) -> Weights:
    """The model's weights in float64, by their names in model.safetensors (and those that share them)."""
    return {name: value.cpu().double().numpy().copy() for name, value in translator.model.state_dict().items()}


def recompute(found: Mapping[str, Any], rank: int, translator: Translator, weights: Weights) -> dict[str, Any]:
    """The trace that `found` claims to be. Raises KeyError, TypeError or ValueError if it has not a trace's shape."""
    options, edits = translator.config.model, _edits(found["edits"])
    source, path = _source(found["source"], translator), _path(found["output"]["ids"], translator.target_tokenizer)
    target = [BOS, *path[:-1]]
    if edits:
        weights = {name: value.copy() for name, value in weights.items()}
        edit_weights(weights, edits, options)
    forced = _forced(edits, options, weights, list(source.ids), target)
    run = systems.run(options, weights, list(source.ids), target, forced=forced)
    steps = tuple(_moments(found, run, path, translator.target_tokenizer))
    looks = [step.tensors["alpha"] for step in steps if "alpha" in step.tensors]
    names = [*run.encoder, *run.start, *steps[0].tensors]
    made = Trace(
        options,
        str(found["method"]),
        rank,
        edits,
        legend(options, names),
        source,
        run.encoder,
        run.start,
        steps,
        _output(steps, float(found["method"].rpartition("alpha ")[2]), translator.target_tokenizer),
        np.stack(looks) if looks else None,
    )
    plainly: dict[str, Any] = plain(made)
    return plainly


def _edits(found: Mapping[str, Any] | None) -> Edits | None:
    if found is None:
        return None
    fields: dict[str, Any] = {key: tuple(part) if isinstance(part, list) else part for key, part in found.items()}
    return normal(Edits(**fields))


def _source(found: Mapping[str, Any], translator: Translator) -> Source:
    text = found["text"]
    pieces = translator.source_tokenizer.pieces([text])[0][: len(found["ids"]) - 1]
    tokens, ids = (*(piece.text for piece in pieces), END), (*(piece.id for piece in pieces), EOS)
    return Source(text, tokens, ids, (*(piece.word for piece in pieces), None))


def _path(ids: Sequence[Any], tokenizer: Tokenizer) -> list[int]:
    if not ids or not all(type(i) is int and 0 <= i < len(tokenizer) for i in ids):
        raise ValueError(f"output.ids {ids}, expected numbers from 0 to {len(tokenizer) - 1}")
    return list(ids)


def _forced(
    edits: Edits | None, options: ModelConfig, weights: Weights, source: list[int], target: list[int]
) -> list[Array | None]:
    """The weights that replace each step's; to shuffle a step's own, all steps up to it are made once more."""
    rows: list[Array | None] = []
    if edits is None or edits.attention is None:
        return rows
    for t in range(len(target)):
        own = np.zeros(len(source))  # only their number counts
        if edits.attention == "shuffled":
            own = systems.run(options, weights, source, target[: t + 1], forced=rows).steps[-1]["alpha"]
        row = forced_weights(edits, t + 1, own.tolist())
        rows.append(None if row is None else np.array(row))
    return rows


def log_softmax(logits: Array) -> Array:
    """ln p of every token, where <pad> and <s> have none: they are never produced."""
    own = [i for i in range(len(logits)) if i not in (PAD, BOS)]
    largest = max(logits[i] for i in own)
    total = sum(exp(logits[i] - largest) for i in own)
    log_p = np.full(len(logits), -inf)
    for i in own:
        log_p[i] = logits[i] - largest - log(total)
    return log_p


def _moments(found: Mapping[str, Any], run: Run, path: list[int], tokenizer: Tokenizer) -> list[Moment]:
    given = _given([step["forced"] for step in found["steps"]], found["method"])
    moments = []
    for t, (named, chosen) in enumerate(zip(run.steps, path, strict=True)):
        tensors = {name: value for name, value in named.items() if name != "logits"}
        log_p = log_softmax(named["logits"])
        listed = _likeliest(log_p, [choice["id"] for choice in found["steps"][t]["top"]])
        choices = [
            Choice(i, tokenizer.token(i), exp(log_p[i]), float(log_p[i]), i == chosen) for i in (*listed, chosen)
        ]
        previous = path[t - 1] if t else BOS
        before = Token(previous, tokenizer.token(previous))
        moments.append(Moment(t + 1, before, t < given, tensors, named["logits"], tuple(choices[:-1]), choices[-1]))
    return moments


def _given(flags: Sequence[bool], method: str) -> int:
    """How many tokens were given: all, those before the first that was not, or none, as the method says."""
    if method.startswith(WHOLE):
        return len(flags)
    return [*flags, False].index(False) if BEGUN in method else 0


def _likeliest(log_p: Array, listed: Sequence[Any]) -> list[int]:
    """The ids that should be listed: those that are, where they are as likely as the right one."""
    order = sorted(range(len(log_p)), key=lambda i: -log_p[i])[: len(listed)]
    known = [type(i) is int and 0 <= i < len(log_p) and listed.count(i) == 1 for i in listed]
    return [
        there if ok and abs(log_p[there] - log_p[right]) <= TIE else right
        for there, right, ok in zip(listed, order, known, strict=True)
    ]


def _output(steps: Sequence[Moment], alpha: float, tokenizer: Tokenizer) -> Output:
    ids = tuple(step.chosen.id for step in steps)
    finished = ids[-1] == EOS
    tokens = tuple(step.chosen.token for step in steps)
    words = tokenizer.words(tokens[:-1] if finished else tokens)
    total = sum(step.chosen.log_probability for step in steps)
    divisor = ((5 + len(steps)) / 6) ** alpha
    ends = (None,) if finished else ()
    return Output(tokenizer.decode(ids), tokens, ids, (*words, *ends), finished, total, alpha, divisor, total / divisor)
