"""Traces of a request as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirada.explain.record import as_file, plain
from mirada.explain.trace import trace
from mirada.serving.schemas import ExplainRequest

if TYPE_CHECKING:
    from mirada.config.options import SearchConfig
    from mirada.explain.edits import Edits
    from mirada.translator import Translator


def document(translator: Translator, body: ExplainRequest, *, options: SearchConfig, edits: Edits | None) -> bytes:
    """The traces as the model is, and with the edits; without the vocabulary's logits if they are not wanted."""

    def made(edits: Edits | None) -> list[Any]:
        found = trace(
            translator,
            body.text,
            options=options,
            reference=body.reference,
            prefix=body.force,
            edits=edits,
            top_k=body.top,
        )
        return [plain(one) for one in found]

    traces = made(None) + (made(edits) if edits else [])
    if not body.logits:
        for one in traces:
            for step in one["steps"]:
                step.pop("logits", None)
    return as_file(traces).encode()
