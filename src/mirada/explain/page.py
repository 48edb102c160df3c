"""The page of `mirada serve` with traces in it: one self-contained HTML file. No network, no build."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from mirada.explain.record import Trace, plain

# In an order in which none needs one below it.
MODULES = ("dom", "words", "units", "equation", "asking", "sentence", "drawing", "map", "intervene", "share", "app")
IMPORT = re.compile(r"^import .*;\n", re.M)
EXPORT = re.compile(r"^export ", re.M)
STYLE, SCRIPT = (
    '<link rel="stylesheet" href="/static/page.css">',
    '<script type="module" src="/static/app.js"></script>',
)
CHARSET = '<meta charset="utf-8">'
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"


def static() -> Traversable:
    """The folder of the page's parts: one HTML file, one style sheet, plain modules."""
    return files("mirada.explain").joinpath("static")


def page(traces: Sequence[Trace]) -> str:
    """Return the page that shows these traces; all of it but the logits of the whole vocabulary, which JSON has."""
    return page_of([without_logits(plain(trace)) for trace in traces])


def page_of(traces: list[Any]) -> str:
    """The page of traces that are plain values already."""
    html, style = (static().joinpath(name).read_text(encoding="utf-8") for name in ("index.html", "page.css"))
    data = f'<script type="application/json" id="traces">{embeddable(traces)}</script>'
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    for place, content in (
        (CHARSET, f"{CHARSET}\n{policy}"),
        (STYLE, f"<style>\n{style}</style>"),
        (SCRIPT, f'{data}\n<script type="module">\n{script()}</script>'),
    ):
        before, after = html.split(place)
        html = before + content + after
    return html


def script() -> str:
    """All modules as one: what they import stands above."""
    parts = [static().joinpath(f"{name}.js").read_text(encoding="utf-8") for name in MODULES]
    return "".join(EXPORT.sub("", IMPORT.sub("", part)) for part in parts)


def embeddable(value: Any) -> str:
    """JSON that no text inside it can break out of a script element: every < is written as an escape."""
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")


def without_logits(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace without the numbers of the whole vocabulary: logits, and the mixture of a model that copies."""
    steps = [{key: _without_mixture(part) for key, part in step.items() if key != "logits"} for step in trace["steps"]]
    return {**trace, "steps": steps}


def _without_mixture(part: Any) -> Any:
    return {name: value for name, value in part.items() if name != "p"} if isinstance(part, dict) else part
