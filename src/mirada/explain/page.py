"""One self-contained HTML page from traces: a slider over steps, links on hover, every number. No network, no build."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from mirada.explain.record import Trace, plain

PLACE = "/*TRACES*/[]"


def page(traces: Sequence[Trace]) -> str:
    """Return the page that shows these traces; all of it but the logits of the whole vocabulary, which JSON has."""
    template = files("mirada.explain").joinpath("page.html").read_text(encoding="utf-8")
    return template.replace(PLACE, embeddable([_without_logits(plain(trace)) for trace in traces]))


def embeddable(value: Any) -> str:
    """JSON that no text inside it can break out of a script element: every < is written as an escape."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def _without_logits(trace: dict[str, Any]) -> dict[str, Any]:
    steps = [{key: part for key, part in step.items() if key != "logits"} for step in trace["steps"]]
    return {**trace, "steps": steps}
