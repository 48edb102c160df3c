"""One sentence for each experiment, from its numbers alone: what was found, that nothing was, or what it contradicts.

A difference is found where its 95 % interval leaves out zero (for ratios: one). Of accuracies by position one is also
found to be none: where the whole interval is so near to zero that it would not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mirada.evaluation.metrics import better
from mirada.study.report import numbers
from mirada.study.report.numbers import estimate

Results = Mapping[str, Any]
VASWANI = "Vaswani et al. (2017, section 3.2.1)"
LEARNED = 20.0  # percent of a metric, or of 100 − an error rate, below which differences mean little
LEVEL = 2.0  # points of accuracy: a difference of positions whose whole interval lies below this is none
UNFINISHED = "Nothing was found: the runs that it takes were not finished."


def lengths_finding(results: Results) -> str:
    """Does the classic system lose more quality than attention from short sources to long ones?"""
    if "more_lost" not in results:
        return UNFINISHED
    if weak := _hardly_learned(results):
        return weak
    classic, attention = results["systems"]
    metric, near = results["metric"], f"{results['near']} {results['unit']}"
    return (
        f"From sources of up to {near} to those of {results['far']} to "
        f"{results['limit']}, {metric} goes with {classic['name']} from {estimate(classic['short'])} to "
        f"{estimate(classic['long'])} and {attention['name']} from {estimate(attention['short'])} to "
        f"{estimate(attention['long'])}: {_lengths_verdict(results)}."
    )


def _learned(value: float, metric: str) -> bool:
    """Whether a system has learned enough for a difference to mean anything."""
    return value <= 100 - LEARNED if better(metric) == "lower" else value >= LEARNED


def _hardly_learned(results: Results) -> str:
    """What to say where no system has learned enough, else nothing."""
    metric = results["metric"]
    values = [row.get("short", row)["value"] for row in results["systems"]]
    if any(_learned(value, metric) for value in values):
        return ""
    best = min(values) if better(metric) == "lower" else max(values)
    return f"Nothing can be said: no system has learned enough ({metric} {best:.1f} at best); train longer (--updates)."


def _lengths_verdict(results: Results) -> str:
    more, kept = results["more_lost"], results.get("less_kept")
    weak = [row["name"] for row in results["systems"] if not _learned(row["short"]["value"], results["metric"])]
    if weak:  # a system near the floor cannot fall, which is no merit of its
        return f"{weak[0]} has learned too little to fall, so nothing can be said of which loses more"
    points = f"{_size(more)} points more"
    if more["low"] > 0:
        return f"the classic system loses {points}, as Bahdanau et al. (2015, figure 2) found"
    if more["high"] >= 0:
        return f"no difference in what they lose was found ({_signed(more)} points)"
    if kept and kept["low"] > 0:
        shares = " against ".join(f"{100 * share:.0f} %" for share in results["kept"])
        return f"attention loses {points}, having more to lose; of its quality the classic system keeps less ({shares})"
    return f"attention loses {points}, which contradicts Bahdanau et al. (2015, figure 2)"


def capacity_finding(results: Results) -> str:
    """Does width make up for attention?"""
    if "attention_minus_widest" not in results:
        return UNFINISHED
    if weak := _hardly_learned(results):
        return weak
    rows = {f"{row['system']}-{row['width']}": row for row in results["systems"]}
    wide, narrow, small = (rows[results[name]] for name in ("widest", "narrowest", "attention"))
    sign = -1 if better(results["metric"]) == "lower" else 1
    widening = _found(
        results["widest_minus_narrowest"], sign, ("makes it better", "makes it worse", "changes nothing found")
    )
    verdicts = (
        "is still better, so width does not make up for attention",
        "is worse, so width did make up for attention here",
        "is as good as far as was found",
    )
    verdict = _found(results["attention_minus_widest"], sign, verdicts)
    apart = _signed(results["attention_minus_widest"])
    return (
        f"Widening the classic system from {narrow['width']} to {wide['width']} {widening} "
        f"({results['metric']} {estimate(narrow)} to {estimate(wide)}, {numbers.count(wide['parameters'])} weights); "
        f"{small['system']} at width {small['width']} "
        f"({estimate(small)}, {numbers.count(small['parameters'])} weights) {verdict} (difference {apart})."
    )


def _found(difference: Results, sign: int, verdicts: Sequence[str]) -> str:
    """The verdict for: better, worse, no difference found."""
    low, high = sorted((sign * difference["low"], sign * difference["high"]))
    return verdicts[0] if low > 0 else verdicts[1] if high < 0 else verdicts[2]


def forgetting_finding(results: Results) -> str:
    """Are the early words the lost ones?"""
    classic = [row for row in results["systems"] if row["system"].startswith("classic")]
    if len(classic) < 4:
        return UNFINISHED
    opening = _forgetting_opening([(_lost(row), row["task"] == "copy", row["reversed_source"]) for row in classic])
    shown = "; ".join(f"{_condition(row)} {_thirds(row)}" for row in classic)
    others = "; ".join(
        f"{row['task']} {_thirds(row)}" for row in results["systems"] if not row["system"].startswith("classic")
    )
    return f"{opening}: {shown}. With attention: {others}." if others else f"{opening}: {shown}."


def _forgetting_opening(conditions: Sequence[tuple[str, bool, bool]]) -> str:
    """What all conditions have in common: (lost end of the source, copied in order, read backwards) of each."""
    lost = {end for end, _, _ in conditions}
    # The end of the source that is written last, or read first, in each condition.
    written_last = [end == ("late" if in_order else "early") for end, in_order, _ in conditions]
    read_first = [end == ("late" if backwards else "early") for end, _, backwards in conditions]
    if not lost & {"early", "late"}:
        return "What the fixed vector loses does not depend on the position, as far as was found"
    if lost == {"early"}:
        return "The early words are the ones that the fixed vector loses, in every condition"
    if all(written_last):
        return "The fixed vector loses what is written last, be it early or late in the source"
    if all(read_first):
        return "The fixed vector loses what was read first, be it early or late in the source"
    if "early" not in lost:
        return "The early words are not what the fixed vector loses, against what is often said"
    return "Which words the fixed vector loses differs between the conditions"


def _lost(row: Results) -> str:
    """The end of the source whose words come out right less often: early, late, none (found to be equal), neither."""
    apart = row["late_minus_early"]
    if apart["low"] > -LEVEL and apart["high"] < LEVEL:
        return "none"
    return str(_found(apart, 1, ("early", "late", "neither")))


def _condition(row: Results) -> str:
    return f"{row['task']}, source reversed," if row["reversed_source"] else f"{row['task']}"


def _thirds(row: Results) -> str:
    whole = min(row[end]["low"] for end in ("early", "late")) > 100 - LEVEL
    lost = {
        "early": "early words lost",
        "late": "late words lost",
        "neither": "no difference found",
        "none": "no word is lost" if whole else "none is lost by its position",
    }[_lost(row)]
    return f"{row['early']['value']:.0f} % of the first third right, {row['late']['value']:.0f} % of the last ({lost})"


def cost_finding(results: Results) -> str:
    """Is a multiplicative score faster and lighter than an additive one?"""
    costs = results["attention"]
    verdicts = [_faster(_score(at_length, "additive")) for at_length in costs]
    slower = [at_length["length"] for at_length, verdict in zip(costs, verdicts, strict=True) if verdict == "slower"]
    if len(slower) == len(costs):
        opening = f"The additive score is slower than the dot product at every length, as {VASWANI} say"
    elif not slower and "faster" in verdicts:
        opening = f"The additive score is not slower than the dot product, which contradicts {VASWANI}"
    elif not slower:
        opening = "No difference in time between the additive score and the dot product was found"
    else:
        opening = (
            f"The additive score is slower than the dot product at {', '.join(map(str, slower))} source words only"
        )
    last = costs[-1]
    additive, general, dot = (_score(last, name) for name in ("additive", "general", "dot"))
    step = next(row for row in results["steps"][-1]["systems"] if row["name"] == "additive")
    return (
        f"{opening}; at {last['length']} words attention takes {_times(additive)} times as long (general: "
        f"{_times(general)}) and makes {additive['bytes'] / dot['bytes']:.1f} times as many bytes; a whole decoder "
        f"step with it takes {_times(step)} times as long as one of the classic system."
    )


def _score(at_length: Results, name: str) -> Results:
    found: Results = next(row for row in at_length["scores"] if row["name"] == name)
    return found


def _faster(row: Results) -> str:
    return "slower" if row["low"] > 1 else "faster" if row["high"] < 1 else "none"


def _times(row: Results) -> str:
    return numbers.with_span(row["ratio"], row["low"], row["high"], 2)


def _signed(found: Results) -> str:
    return f"{numbers.signed(found['value'])} {numbers.span(found['low'], found['high'])}"


def _size(found: Results) -> str:
    """A difference without its sign."""
    low, high = sorted((abs(found["low"]), abs(found["high"])))
    return numbers.with_span(abs(found["value"]), low, high)
