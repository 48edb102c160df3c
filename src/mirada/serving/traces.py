"""Traces of a request, as plain values and as the file of `mirada explain --format json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mirada.explain.edits import Edits, normal, read_edits
from mirada.explain.page import without_logits
from mirada.explain.record import Asked, plain
from mirada.explain.trace import explain, trace
from mirada.serving.errors import RefusedError
from mirada.serving.schemas import ExplainRequest

if TYPE_CHECKING:
    from mirada.config.options import SearchConfig
    from mirada.translator import Translator


def traces(
    translator: Translator, body: ExplainRequest, *, options: SearchConfig, edits: Edits | None
) -> list[dict[str, Any]]:
    """The traces as the model is, and with the edits, as plain values; logits only if they are wanted."""

    def made(edits: Edits | None) -> list[Any]:
        if body.force_ids is not None:
            asked = Asked(options, tuple(body.force_ids), edits=edits, listed=body.top)
            return [plain(one) for one in explain(translator, body.text, asked)]
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

    own = len(body.text) + 1 if translator.config.model.copy_attn else 0  # words of the source, at most
    _check_ids(body, len(translator.target_tokenizer) + own)
    both = made(None) + (made(edits) if edits else [])
    return both if body.logits else [without_logits(one) for one in both]


def _check_ids(body: ExplainRequest, vocabulary: int) -> None:
    if body.force_ids is None:
        return
    if body.reference is not None or body.force is not None:
        raise RefusedError(422, "force_ids: it excludes reference and force")
    wrong = next((one for one in body.force_ids if not 0 <= one < vocabulary), None)
    if wrong is not None:
        raise RefusedError(422, f"force_ids: expected ids from 0 to {vocabulary - 1}, got {wrong}")


def edits_of(body: ExplainRequest) -> Edits | None:
    """The interventions of a request; raises ConfigError for what makes no sense."""
    edits = read_edits(
        attention=body.attention,
        from_step=body.from_step if body.weights is None else None,
        seed=body.shuffle_seed,
        no_input_feeding=body.no_input_feeding,
        drop_head=body.drop_head,
    )
    if body.weights is None:
        return edits
    total = sum(body.weights)
    if body.attention is not None or total <= 0:
        raise RefusedError(422, "weights: expected numbers that add up to more than 0, and no attention beside them")
    shares = tuple(weight / total for weight in body.weights)
    own = edits or Edits()
    return normal(own._replace(attention="weights", weights=shares, from_step=body.from_step))
