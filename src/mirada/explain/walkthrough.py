"""A trace for a terminal: the equations in the order of the system's own flow, with the numbers in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mirada.data.vocabulary import BOS, SEP, SPECIAL_TOKENS
from mirada.errors import ConfigError
from mirada.escape import terminal
from mirada.explain.edits import Edits, is_replaced
from mirada.explain.heatmap import cells, terminal_map
from mirada.explain.legend import HEAD, SOURCE, UNIT, Legend, describe
from mirada.explain.lines import (
    bar,
    equation,
    folded,
    number,
    padded,
    shortened,
    side_by_side,
    vector,
    weighted_sum,
)
from mirada.explain.record import Moment, Named, NextToken, Trace
from mirada.messages import spoken

LABEL = 16  # most cells of a token in a table
BEGIN = SPECIAL_TOKENS[BOS]


def walkthrough(trace: Trace, *, width: int = 80, step: int | None = None, agreement: str = "") -> str:
    """The whole of a trace within `width` cells, or one step of it; `agreement` says how near the model's numbers are.

    Raises ConfigError if there is no such step.
    """
    if step is not None and not 1 <= step <= len(trace.steps):
        raise ConfigError(f"--step {step}: no such step; this output has steps 1 to {len(trace.steps)}")
    lines = list(_head(trace, width))
    lines += folded(spoken(f"numbers by the equations in float64; {agreement}"), width) if agreement else []
    if step is not None:
        return "\n".join([*lines, *_step(trace, trace.steps[step - 1], width)])
    for title, tensors in (("Encoder", trace.encoder), ("Start", trace.start)):
        if tensors:
            lines += ["", spoken(title), *_tensors(trace, tensors, None, width)]
    for moment in trace.steps:
        lines += _step(trace, moment, width)
    return "\n".join([*lines, "", *_result(trace, width), *_map(trace, width)])


def compare(before: Trace, after: Trace, *, width: int = 80) -> str:
    """Two outputs of a text side by side: as the model is, and edited."""
    left, right = (_summary(one) for one in (before, after))
    return "\n".join(side_by_side(left, right, width))


def _summary(trace: Trace) -> list[str]:
    output = trace.output
    tokens = " ".join(map(terminal, output.tokens))
    score = spoken(f"score {number(output.score)}, ln p {number(output.log_probability)}")
    return [edit_name(trace.edits) if trace.edits else spoken("unedited"), terminal(output.text), tokens, score]


def edit_name(edits: Edits) -> str:
    """The edits in words."""
    parts = []
    if edits.edge:
        parts.append(f"step {edits.edge[0]} looks only at source token {edits.edge[1]}")
    elif edits.weights is not None:
        parts.append(f"weights given at step {edits.from_step}")
    elif edits.attention:
        parts.append(f"attention {edits.attention} from step {edits.from_step}")
    if edits.no_input_feeding:
        parts.append("no input feeding")
    if edits.drop_head:
        parts.append(f"head {edits.drop_head[0]}.{edits.drop_head[1]} dropped")
    return ", ".join(map(spoken, parts))


def _head(trace: Trace, width: int) -> Iterator[str]:
    options = trace.model
    flow = [options.decoder] if options.decoder == "transformer" else [options.decoder, options.rnn_type]
    score = [f"score {options.score_name}"] if options.score_name else []
    found = [*trace.method.split(", "), f"output {trace.rank}"]
    yield from folded("; ".join(", ".join(map(spoken, part)) for part in ([*flow, *score], found)), width)
    if trace.edits:
        yield from folded(f"{spoken('edited:')} {edit_name(trace.edits)}", width)
    for name, tokens in (*_parts(trace), ("output", list(enumerate(trace.output.tokens, 1)))):
        yield from folded(f"{spoken(name)}  " + " ".join(f"{j}:{terminal(token)}" for j, token in tokens), width)


def _parts(trace: Trace) -> list[tuple[str, list[tuple[int, str]]]]:
    """The numbered source tokens, a line for each part where there are several; a part ends with its <sep>."""
    numbered = list(enumerate(trace.source.tokens, 1))
    if not trace.model.segments:
        return [("source", numbered)]
    ends = [j for j, i in enumerate(trace.source.ids, 1) if i == SEP]
    edges = zip([0, *ends], [*ends, len(numbered)], strict=True)
    return [(f"source part {n}", numbered[start:end]) for n, (start, end) in enumerate(edges, 1)]


def _step(trace: Trace, moment: Moment, width: int) -> Iterator[str]:
    t = moment.step
    yield ""
    previous, chosen = terminal(moment.previous.token), terminal(moment.chosen.token)
    yield from folded(spoken(f"Step {t}: reads {previous}, writes {chosen}"), width)
    yield from _tensors(trace, moment.tensors, t, width)
    yield from _choices(trace, moment, width)


def _tensors(trace: Trace, tensors: Named, step: int | None, width: int) -> Iterator[str]:
    for name, values in tensors.items():
        about = _about(trace, name, step)
        shown = about.symbol if about.symbol == about.equation else f"{about.symbol} = {about.equation}"
        if trace.edits and name.split(".")[0] == "alpha" and is_replaced(trace.edits, step or 0):
            shown = f"{about.symbol} {spoken('replaced')} ({trace.edits.attention})"
        if about.axes == (UNIT,):
            if name == "c" and "alpha" in tensors:
                shown += f" = {weighted_sum(tensors['alpha'], 'h')}"
            yield from equation(shown, values, width)
        elif not about.axes:
            yield from folded(f"{shown} = {number(float(values))}", width, indent=2)
        else:
            yield from folded(f"{shown}: {about.meaning}", width, indent=2)
            if not _is_told(trace, name, tensors):
                yield from _rows(trace, name, tensors, about, width)


def _about(trace: Trace, name: str, step: int | None) -> Legend:
    """What a name means, in the language of the command."""
    about = describe(trace.model, name, step)
    return about._replace(meaning=spoken(about.meaning), equation=spoken(about.equation))


def _is_told(trace: Trace, name: str, tensors: Named) -> bool:
    """Whether these numbers stand elsewhere: scores beside their weights, the top layer's as that layer's."""
    top = tensors.get(f"h.{trace.model.enc_layers}")
    return name in ("e", "p") or (name == "h" and top is not None and np.array_equal(top, tensors["h"]))


def _rows(trace: Trace, name: str, tensors: Named, about: Legend, width: int) -> Iterator[str]:
    """What stands below the equation of something with more axes than one."""
    values = tensors[name]
    if about.axes == (SOURCE, UNIT):
        for label, row in zip(_labels(trace, width), values, strict=True):
            yield f"{label} {vector(row, width - cells(label) - 1)}"
    elif name == "alpha":
        yield from _attention(trace, values, tensors.get("e"), width)
    elif about.axes == (SOURCE,):
        for label, value in zip(_labels(trace, width), values.tolist(), strict=True):
            yield f"{label} {number(value):>6} {bar(value, width - cells(label) - 8)}".rstrip()
    elif len(about.axes) == 2 and about.axes[0] == HEAD:
        yield from _heads(trace, values, about, width)
    else:
        axes, shape = (" × ".join(part) for part in (map(spoken, about.axes), map(str, values.shape)))
        yield from folded(f"({axes}: {shape}; {spoken('the numbers: --format json')})", width, indent=4)


def _labels(trace: Trace, width: int) -> list[str]:
    """Number and token of each source token, all equally wide."""
    most = max(4, min(LABEL, width // 5))
    tokens = [shortened(terminal(token), most) for token in trace.source.tokens]
    size = max(map(cells, tokens))
    return [f"    {j:>2} {padded(token, size)}" for j, token in enumerate(tokens, start=1)]


def _attention(trace: Trace, alpha: np.ndarray, scores: np.ndarray | None, width: int) -> Iterator[str]:
    """Scores, weights and bars, one line a source token."""
    for j, (label, weight) in enumerate(zip(_labels(trace, width), alpha.tolist(), strict=True)):
        score = "" if scores is None else f" e {number(float(scores[j])):>6}"
        line = f"{label}{score} α {number(weight):>6} "
        yield (line + bar(weight, width - cells(line))).rstrip()


def _heads(trace: Trace, values: np.ndarray, about: Legend, width: int) -> Iterator[str]:
    """One line a head: the vector, or the tokens with the largest numbers."""
    for head, row in enumerate(values, start=1):
        name = spoken(f"head {head}")
        if about.axes[1] == UNIT:
            yield f"    {name}  {vector(row, width - cells(name) - 6)}"
            continue
        labels = trace.source.tokens if about.axes[1] == SOURCE else (BEGIN, *trace.output.tokens)
        best = np.argsort(-row, kind="stable")[:4].tolist()
        terms = [f"{number(float(row[j]))} {terminal(labels[j])}" for j in best]
        more = ["…"] if len(row) > len(best) else []
        yield from folded(f"{name}  {' · '.join([*terms, *more])}", width, indent=4)


def _choices(trace: Trace, moment: Moment, width: int) -> Iterator[str]:
    """The likeliest next tokens, the one taken marked."""
    readout = next(name for name in ("s_tilde", "maxout", "s", f"s.{trace.model.dec_layers}") if name in moment.tensors)
    read = describe(trace.model, readout, moment.step).symbol
    vocabulary = f"softmax(W_y {read} + b_y)"
    name = "P_vocab" if "p_gen" in moment.tensors else f"p(y_{moment.step})"
    yield from folded(f"{name} = {vocabulary}", width, indent=2)
    listed = [*moment.top, *([] if any(choice.chosen for choice in moment.top) else [moment.chosen])]
    tokens = [shortened(terminal(choice.token), max(4, width // 3)) for choice in listed]
    size = max(map(cells, tokens))
    for token, choice in zip(tokens, listed, strict=True):
        mark, given = "▸" if choice.chosen else " ", f" ({spoken('given')})" if choice.chosen and moment.given else ""
        ln = f"ln p = {number(choice.log_probability)}{given}"
        yield f"   {mark} {number(choice.probability):>7} {padded(token, size)} {ln}"
        yield from folded(_sum(moment, choice), width, indent=13) if "p_gen" in moment.tensors else ()


def _sum(moment: Moment, choice: NextToken) -> str:
    """A probability as what the vocabulary and what copying give it."""
    p_gen = float(moment.tensors["p_gen"])
    shares = [(p_gen, choice.vocabulary or 0.0), (1 - p_gen, choice.copied or 0.0)]
    return "= " + " + ".join(f"{number(share)} · {number(part)}" for share, part in shares)


def _result(trace: Trace, width: int) -> Iterator[str]:
    """The output, and its score written out."""
    output, n = trace.output, len(trace.steps)
    yield from folded(f"{spoken('Output')}  {terminal(output.text)}", width)
    if not output.finished:
        yield from folded(spoken("the limit was reached before </s>"), width, indent=2)
    terms = " + ".join(f"ln p(y_{step.step})" for step in trace.steps[:2]) + (" + …" if n > 2 else "")
    total = " ".join(
        f"{'' if place == 0 else '+ '}{number(value)}" if value > 0 or place == 0 else f"− {number(-value)}"
        for place, value in enumerate(step.chosen.log_probability for step in trace.steps)
    )
    log_p, alpha = number(output.log_probability), number(output.alpha)
    yield from folded(f"ln p = {terms} = {total} = {log_p}", width, indent=2)
    divided = f"{log_p} / ((5 + {n}) / 6)^{alpha} = {log_p} / {number(output.penalty)} = {number(output.score)}"
    yield from folded(f"{spoken('score')} = ln p / ((5 + n) / 6)^α = {divided}", width, indent=2)


def _map(trace: Trace, width: int) -> Iterator[str]:
    if trace.attention is None:
        return
    yield ""
    which = ", mean over the last layer's heads" if trace.model.decoder == "transformer" else ""
    yield from folded(spoken(f"Attention α_tj{which}: each row a token written, darker = looked at more"), width)
    yield terminal_map(trace.attention, trace.output.tokens, trace.source.tokens, width=width)
