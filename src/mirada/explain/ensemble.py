"""An ensemble's outputs: every number of every member along them, and at each step the mean of what the members say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

import numpy as np

from mirada.config.options import SearchConfig
from mirada.data.beginnings import Beginning
from mirada.errors import ConfigError
from mirada.escape import terminal
from mirada.explain.lines import folded, number
from mirada.explain.record import Asked, Moment, Trace, plain
from mirada.explain.trace import explain, log_probabilities, read_source
from mirada.explain.walkthrough import walkthrough
from mirada.messages import spoken
from mirada.reference import Array
from mirada.search.ensemble import Mode
from mirada.translator import Translator

FORMAT, VERSION = "mirada-ensemble-trace", 1
MEANS = {"linear": "1/M Σ_m p_m(y_t)", "log_linear": "exp(1/M Σ_m ln p_m(y_t)) / its sum over all tokens"}


class Mixed(NamedTuple):
    """A next token: what each member gives it, and the ensemble."""

    id: int
    token: str
    members: tuple[float, ...]
    probability: float
    log_probability: float


class JointStep(NamedTuple):
    """One step of an ensemble."""

    step: int  # from 1
    top: tuple[Mixed, ...]  # likeliest first
    chosen: Mixed


class JointTrace(NamedTuple):
    """One output of an ensemble. `members` tell it as an output that was given to each, </s> included."""

    mode: Mode
    rank: int
    text: str
    log_probability: float
    score: float
    steps: tuple[JointStep, ...]
    members: tuple[Trace, ...]


def trace_ensemble(
    translator: Translator,
    text: str,
    *,
    options: SearchConfig,
    reference: str | None = None,
    prefix: str | None = None,
    top_k: int = 5,
) -> list[JointTrace]:
    """Trace the `n_best` outputs of a text by an ensemble; or the `reference`, or what follows a given `prefix`.

    Raises DataError for a text without tokens, and for a word that one member copied and another has no way to write.
    """
    if reference is not None and prefix is not None:
        raise ConfigError("--reference and --force exclude each other: one gives the whole output, one its beginning")
    read_source(translator, text, options.max_input_length)
    members = translator.members
    if reference is None:
        _, requests = translator.requests([text], options, [prefix] if prefix else None, 0)
        [found] = translator.scheduler.search([requests[0]], options, batch_size=1)
        paths = [list(output.tokens) for output in found]
    else:
        [row] = members.pieces([text], options, first=0, warn=lambda line: None)  # said already
        given = Beginning(translator.target_tokenizer.pieces([reference])[0])
        paths = [members.request(row, given, 0).prefix]
    each = [Translator(model) for model in members.models]
    traces = []
    for rank, path in enumerate(paths, start=1):
        asked = Asked(options, tuple(path), True, None, top_k)
        own = tuple(explain(one, text, asked)[0] for one in each)
        traces.append(_joint(own, members.mode, rank, top_k, translator))
    return traces


def _joint(own: Sequence[Trace], mode: Mode, rank: int, top_k: int, translator: Translator) -> JointTrace:
    steps = tuple(
        _step(moments, mode, top_k, translator, own[0]) for moments in zip(*(t.steps for t in own), strict=True)
    )
    total = sum(step.chosen.log_probability for step in steps)
    output = own[0].output
    return JointTrace(mode, rank, output.text, total, total / output.penalty, steps, tuple(own))


def mean(parts: Sequence[Array], mode: Mode) -> Array:
    """ln p of the ensemble from its members' ln p `[V]`, −∞ where a member knows fewer words than another."""
    width = max(map(len, parts))
    every = np.stack([np.pad(part, (0, width - len(part)), constant_values=-np.inf) for part in parts])
    if mode == "linear":
        return np.asarray(np.logaddexp.reduce(every) - log(len(parts)))
    product = every.mean(0)
    return np.asarray(product - np.logaddexp.reduce(product))


def _step(moments: Sequence[Moment], mode: Mode, top_k: int, translator: Translator, first: Trace) -> JointStep:
    parts = [log_probabilities({"logits": moment.logits, **moment.tensors}) for moment in moments]
    own, known = mean(parts, mode), len(translator.target_tokenizer)

    def mixed(index: int) -> Mixed:
        token = translator.target_tokenizer.token(index) if index < known else first.source.tokens[index - known]
        given = tuple(float(np.exp(part[index])) if index < len(part) else 0.0 for part in parts)
        return Mixed(index, token, given, float(np.exp(own[index])), float(own[index]))

    best = np.argsort(-own.round(9), kind="stable")[: min(top_k, int(np.isfinite(own).sum()))].tolist()
    return JointStep(moments[0].step, tuple(map(mixed, best)), mixed(moments[0].chosen.id))


def ensemble_document(traces: Sequence[JointTrace]) -> str:
    """The traces as one JSON file; each member's own are as `mirada explain` writes them for the output given to it."""
    content = {"format": FORMAT, "version": VERSION, "traces": [plain(one) for one in traces]}
    return json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n"


def ensemble_walkthrough(trace: JointTrace, names: Sequence[str], *, width: int = 80, step: int | None = None) -> str:
    """Each member's numbers, then the mean, within `width` cells; of all steps or of one."""
    lines: list[str] = []
    for place, (name, own) in enumerate(zip(names, trace.members, strict=True), start=1):
        lines += [*folded(spoken(f"Member {place} of {len(names)}: {terminal(name)}"), width), ""]
        lines += [walkthrough(own, width=width, step=step), ""]
    lines += folded(spoken(f"The ensemble, output {trace.rank}: p(y_t) = {MEANS[trace.mode]}"), width)
    for joint in trace.steps:
        if step in (None, joint.step):
            lines += _mixture(joint, width)
    score = f"ln p = {number(trace.log_probability)}, {spoken('score')} = {number(trace.score)}"
    return "\n".join([*lines, "", *folded(f"{spoken('Output')}  {terminal(trace.text)}", width), f"  {score}"])


def _mixture(joint: JointStep, width: int) -> Iterator[str]:
    yield from ("", spoken(f"Step {joint.step}"))
    others = [] if any(one.id == joint.chosen.id for one in joint.top) else [joint.chosen]
    for one in (*joint.top, *others):
        mark = "▸" if one.id == joint.chosen.id else " "
        shares = f"{spoken('from')} " + " · ".join(f"p_{m} {number(p)}" for m, p in enumerate(one.members, start=1))
        yield from folded(f"{mark} {number(one.probability):>7} {terminal(one.token)}  {shares}", width, indent=3)
