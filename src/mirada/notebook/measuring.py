"""What `model.evaluate` and `model.align` give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mirada.config.configfile import changed
from mirada.errors import DataError
from mirada.evaluation.aligning import MEAN, Options, Reading
from mirada.evaluation.aligning import align as aligned
from mirada.evaluation.report import Estimate, Hypotheses, make_report, to_text, usual_metrics
from mirada.evaluation.units import Units
from mirada.notebook.pairs import texts
from mirada.notebook.tables import html

if TYPE_CHECKING:
    from mirada import runtime
    from mirada.translator import Translator


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Metrics of outputs with 95 % bootstrap intervals: `found["bleu"].value`, `.low`, `.high`; `print` shows all."""

    report: dict[str, Any]  # as `mirada evaluate --json` prints it
    outputs: list[str]  # that were measured

    @property
    def metrics(self) -> dict[str, Estimate]:
        """Each metric by its name."""
        return {row["metric"]: Estimate(row["value"], row["low"], row["high"]) for row in self.report["metrics"]}

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]

    def __repr__(self) -> str:
        found = ", ".join(f"{name} {one.value:.2f}" for name, one in self.metrics.items())
        return f"<mirada.Evaluation of {self.report['items']} items: {found}>"

    def __str__(self) -> str:
        return to_text(self.report)

    def _repr_html_(self) -> str:
        rows = [(name, *(f"{number:.2f}" for number in one)) for name, one in self.metrics.items()]
        caption = f"{self.report['items']} items; 95 % intervals by bootstrap"
        return html(caption, ("metric", "value", "from", "to"), rows)


def evaluate(
    translator: Translator | runtime.Translator,
    source: Iterable[str],
    target: Iterable[str | Sequence[str]],
    metrics: Sequence[str],
    search: Mapping[str, Any],
) -> Evaluation:
    """Measure the best output of each source; raises as `Model.evaluate`."""
    sources, references = texts(source, "sources", "source"), _references(target)
    if len(sources) != len(references):
        raise DataError(f"{len(sources)} sources and {len(references)} targets; number n of both must belong together")
    if not sources:
        raise DataError("no pair to measure; give at least one source and its target")
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    found = translator.search(sources, options=changed(translator.config.search, search))
    outputs = [several[0].text for several in found]
    usual = usual_metrics(translator.config.data.target_tokenizer or "bpe", references)
    report = make_report(Hypotheses(outputs, references, sources), names or usual)
    return Evaluation(report, outputs)


def _references(target: Iterable[str | Sequence[str]]) -> list[list[str]]:
    """The references of each item."""
    if isinstance(target, str) or not isinstance(target, Iterable):
        texts(target, "targets", "target")
    items = list(target)
    return [
        [item]
        if isinstance(item, str)
        else texts(item, f"references of target {number}", f"target {number}, reference")
        for number, item in enumerate(items, start=1)
    ]


def links(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], units: Units
) -> list[list[tuple[int, int]]]:
    """The word links of each pair, in order; a pair with a blank side has none."""
    reading = Reading(MEAN, 0)
    return [sorted(row[reading].links) for row in aligned(translator, (sources, targets), [reading], Options(units))]
