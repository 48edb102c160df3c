"""Where a training stands: plain numbers that are saved, and which validation was the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite

from mirada.config.options import TrainingConfig


@dataclass
class Progress:
    """Where a training stands; plain numbers, written as JSON."""

    data: str  # fingerprint of the pairs
    epoch: int = 0
    position: int = 0  # batches of this epoch that are done
    updates: int = 0
    seconds: float = 0.0
    rate_factor: float = 1.0  # what plateaus have made of the learning rate
    since_plateau: int = 0
    without_improvement: int = 0
    validated: int = -1  # update of the last validation
    validated_at: float = 0.0  # seconds at the end of the last validation
    validation_seconds: float = 0.0  # what a validation and a save took, the last time
    best_update: int = 0
    best_metrics: dict[str, float] = field(default_factory=dict)
    bad_updates: int = 0
    bad_in_a_row: int = 0
    validations: list[dict[str, float]] = field(default_factory=list)

    def record_validation(self, metrics: dict[str, float], options: TrainingConfig, judge: str) -> bool:
        """Count a validation; True if it is the best so far by the metric `judge`."""
        name = judged_by([*self.validations, metrics], judge)
        sign = sign_of(name)
        first = not self.best_metrics
        improved = isfinite(metrics[name]) and (first or sign * metrics[name] > sign * self.best_metrics[name])
        self.validated = self.updates
        self.validations.append({"epoch": self.epoch + 1, "update": self.updates, **metrics})
        if improved:
            self.best_metrics, self.best_update = metrics, self.updates
            self.without_improvement = self.since_plateau = 0
            return True
        self.without_improvement += 1
        self.since_plateau += 1
        if options.scheduling == "plateau" and self.since_plateau > options.plateau_patience:
            self.rate_factor, self.since_plateau = self.rate_factor * options.decrease_factor, 0
        return False


def sign_of(metric: str) -> float:
    """1 where a higher value is better, −1 where a lower one is."""
    from mirada.evaluation.metrics import better

    return -1.0 if metric == "loss" or better(metric) == "lower" else 1.0


def tells_nothing(validations: Sequence[Mapping[str, float]], metric: str) -> bool:
    """Whether a metric has been one value in all validations so far, two at least: it tells no model from another."""
    values = {row[metric] for row in validations if isfinite(row[metric])}
    return metric != "loss" and len(validations) > 1 and len(values) < 2


def judged_by(validations: Sequence[Mapping[str, float]], metric: str) -> str:
    """What says which model is the best: the metric, or the loss as long as that tells nothing."""
    return "loss" if tells_nothing(validations, metric) else metric
