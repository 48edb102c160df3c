"""The one sentence that a comparison comes down to says no more than its numbers do."""

from __future__ import annotations

from typing import Any

import pytest

from mirada.study.compare.report import conclusion


def results(*values: float, metric: str = "bleu", p: float = 0.01, trained: bool = True) -> dict[str, Any]:
    """Systems a, b, … with these values; the first is the baseline."""
    systems = []
    for name, value in zip("abc", values, strict=False):
        found: dict[str, Any] = {"value": value, "low": value, "high": value}
        if name != "a":
            found["difference"] = {"value": value - values[0], "p": p}
        systems.append({"name": name, "metrics": {metric: found}})
    conditions = {"budget": "2updates"} if trained else {}
    return {"metrics": [metric], "baseline": "a", "systems": systems, "conditions": conditions}


def test_better_and_worse() -> None:
    assert conclusion(results(20.0, 22.0, 19.0)) == (
        "Best bleu: b with 22.0 [22.0, 22.0]; against a: b better (+2.0, p 0.010), c worse (-1.0, p 0.010)."
    )
    assert "b better (-2.0" in conclusion(results(20.0, 18.0, metric="wer"))
    assert "b no difference found (+2.0, p 0.200)" in conclusion(results(20.0, 22.0, p=0.2))


def test_a_printed_difference_of_nothing_is_no_difference() -> None:
    assert "b no difference found (+0.0, p 0.010)" in conclusion(results(20.0, 20.04))
    assert "b no difference found (-0.0, p 0.010)" in conclusion(results(20.0, 19.96))
    assert "b better (+0.1, p 0.010)" in conclusion(results(20.0, 20.06))


@pytest.mark.parametrize(("metric", "values"), [("bleu", (0.1, 0.9)), ("wer", (99.0, 130.0)), ("exact", (0.0, 0.0))])
def test_nothing_is_better_than_nothing(metric: str, values: tuple[float, float]) -> None:
    best = min(values) if metric == "wer" else max(values)
    said = f"No system has learned anything yet ({metric} {best:.1f} at best)"
    assert conclusion(results(*values, metric=metric)) == f"{said}: raise --budget."
    assert conclusion(results(*values, metric=metric, trained=False)) == f"{said}."


def test_one_that_has_learned_is_enough() -> None:
    assert conclusion(results(0.2, 1.0)).startswith("Best bleu: b with 1.0")
    assert conclusion(results(98.9, 120.0, metric="wer")).startswith("Best wer: a with 98.9")
    assert conclusion({**results(), "systems": []}) == "No run was finished."
