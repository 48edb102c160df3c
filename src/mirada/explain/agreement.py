"""Does the model compute what the papers' equations say? Its own steps along the path of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mirada.data.vocabulary import BOS
from mirada.explain.edits import edited
from mirada.explain.record import Moment, Trace
from mirada.reference import Array
from mirada.translator import Translator

LEAST = -80.0  # ln p below this is 0 as far as float32 goes
NEAR = 1e-3  # float32 along a whole sentence; what is wrong is wrong by far more


class Agreement(NamedTuple):
    """The largest difference between the model's own numbers and the trace's, relative to those above 1."""

    logits: float
    attention: float | None  # None: the model has none

    @property
    def is_near(self) -> bool:
        """Whether they are the same numbers, as far as the model's precision goes."""
        return max(self.logits, self.attention or 0.0) <= NEAR  # not so for NaN

    def __str__(self) -> str:
        attention = "" if self.attention is None else f", attention weights by at most {self.attention:.1e}"
        return f"the model's own logits differ by at most {self.logits:.1e}{attention}"


def worst(found: Sequence[Agreement]) -> Agreement:
    """The largest differences of several traces."""
    attention = [one.attention for one in found if one.attention is not None]
    return Agreement(max((one.logits for one in found), default=inf), max(attention, default=None))


def agreement(translator: Translator, trace: Trace) -> Agreement:
    """Make every step of a trace with the model itself (edited as the trace is) and compare."""
    model = edited(translator.model, trace.edits, translator.config.model)
    logits, attention = [0.0], [0.0]
    with torch.inference_mode():
        ids = torch.tensor([trace.source.ids], device=translator.device)
        copies = torch.tensor([trace.source.copies], device=ids.device) if trace.source.copies else None
        memory = model.encode(ids, torch.tensor([ids.size(1)], device=ids.device), copies)
        state = model.start(memory)
        for moment, previous in zip(trace.steps, (BOS, *trace.output.ids), strict=False):
            step = model.step(torch.tensor([previous], device=ids.device), state, memory)
            state = step.state
            logits.append(_apart(step.logits, _expected(moment)))
            if trace.attention is not None:
                attention.append(_apart(step.attention, moment.tensors["alpha"]))
    return Agreement(max(logits), None if trace.attention is None else max(attention))


def _expected(moment: Moment) -> Array:
    """What the model's step gives: its logits, or ln p where it copies."""
    with np.errstate(divide="ignore"):
        return np.log(moment.tensors["p"]) if "p" in moment.tensors else moment.logits


def _apart(own: Tensor, expected: Array) -> float:
    found, expected = (np.maximum(part, LEAST) for part in (own[0].double().cpu().numpy(), expected))
    difference = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    return float(difference.max())
