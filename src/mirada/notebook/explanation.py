"""What `model.explain` gives: the numbers of one output, drawn where a notebook shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mirada.config.configfile import changed
from mirada.errors import ConfigError, DataError
from mirada.explain.heatmap import margin
from mirada.files import expanded, write_atomic
from mirada.notebook.tables import shaded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mirada.explain.edits import Edits
    from mirada.explain.record import Moment, Trace
    from mirada.translator import Translator

KINDS = (".html", ".json", ".svg", ".png", ".txt")


@dataclass(frozen=True, repr=False)
class Explanation:
    """One output of one text: `print` shows every equation with its numbers, a notebook the attention as a table."""

    trace: Trace  # every number, by the equations in float64 (mirada.explain.record)

    @property
    def text(self) -> str:
        """What was read."""
        return self.trace.source.text

    @property
    def output(self) -> str:
        """What was written."""
        return self.trace.output.text

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """The tokens read, with </s>: what the columns of `attention` are."""
        return self.trace.source.tokens

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens written, with </s> where it was: what the rows of `attention` are."""
        return self.trace.output.tokens

    @property
    def attention(self) -> np.ndarray | None:
        """Weights `[tokens, source_tokens]`, rows of sum 1; None for a model without attention."""
        return self.trace.attention

    @property
    def steps(self) -> tuple[Moment, ...]:
        """Each decoder step: `tensors` by name, `top` next tokens, the `chosen` one, `logits` of the vocabulary."""
        return self.trace.steps

    def __repr__(self) -> str:
        return f"<mirada.Explanation {self.text!r} → {self.output!r}, {len(self.steps)} steps>"

    def __str__(self) -> str:
        from mirada.explain.walkthrough import walkthrough

        return walkthrough(self.trace)

    def _repr_html_(self) -> str:
        weights = self.attention
        columns = [] if weights is None else [margin(token) for token in self.source_tokens]
        shades = [[] for _ in self.steps] if weights is None else weights.tolist()
        rows = [
            [margin(token), f"{step.chosen.probability:.2f}", *(f"{weight:.2f}" for weight in row)]
            for token, step, row in zip(self.tokens, self.steps, shades, strict=True)
        ]
        caption = f"{self.text} → {self.output}"
        return shaded(caption, ["written", "probability", *columns], rows, shades)

    def plot(self) -> Figure:
        """The attention as a figure by matplotlib; raises ConfigError without attention, or without matplotlib."""
        from mirada.explain.figure import heatmap_figure

        if self.attention is None:
            raise ConfigError("a classic model has no attention to draw; print the explanation, or save it as .html")
        return heatmap_figure(self.attention, self.tokens, self.source_tokens)

    def page(self) -> str:
        """The page that `mirada explain --format html` writes: one self-contained HTML text."""
        from mirada.explain.page import page

        return page([self.trace])

    def save(self, path: str | Path) -> Path:
        """Write a file of the kind that its name ends in: .html, .json, .svg, .png or .txt; returns its path.

        Raises ConfigError for another ending, MiradaError where it cannot be written.
        """
        where = expanded(path)
        kind = where.suffix.lower()
        if kind not in KINDS:
            raise ConfigError(f"{where}: expected a name that ends in {', '.join(KINDS[:-1])} or {KINDS[-1]}")
        write_atomic(where, self._content(kind[1:]))
        return where

    def _content(self, kind: str) -> bytes:
        from mirada.explain.figure import image
        from mirada.explain.record import document

        if kind in ("svg", "png"):
            return image(self.plot(), kind)
        return {"html": self.page, "json": lambda: document([self.trace]), "txt": self.__str__}[kind]().encode()


def explain(
    translator: Translator,
    text: str,
    search: Mapping[str, Any],
    given: Mapping[str, str | None],
    *,
    top: int,
    edits: Edits | None,
) -> Explanation:
    """Explain the best output of a text; raises as `Model.explain`."""
    from mirada.explain.trace import trace

    if not isinstance(text, str):
        raise DataError(f"expected one text to explain, got {type(text).__name__}")
    if len(translator.members.models) > 1:
        raise ConfigError("explain shows one model; load one of the ensemble's alone, or use `mirada explain A B TEXT`")
    if top < 1:
        raise ConfigError(f"top {top}: expected 1 or more")
    if given["reference"] is not None and given["prefix"] is not None:
        raise ConfigError("reference and prefix exclude each other: one is the whole output, one its beginning")
    options = changed(translator.config.search, search)
    found = trace(
        translator,
        text,
        options=options,
        reference=given["reference"],
        prefix=given["prefix"],
        edits=edits,
        top_k=top,
    )
    return Explanation(found[0])
