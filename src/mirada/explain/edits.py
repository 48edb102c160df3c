"""Interventions: what a model writes when its attention is replaced, a head is dropped, or input feeding is off.

Everything is counted from 1, as the walkthrough prints it: steps, source tokens (</s> is the last), layers, heads.

    uniform     every source token gets 1/S
    diagonal    step t looks at source token t only; beyond the end, at </s>
    shuffled    the model's own weights of this step, dealt out to the source tokens at random
    edge:I-J    step I looks at source token J only; all other steps as they are
    weights     the given weights at one step (from the page, where they are dragged)

In a Transformer these weights replace those of every head in every layer, and its own weights are the mean over the
last layer's heads.
"""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from mirada.config.options import ModelConfig
from mirada.errors import ConfigError

KINDS = ("uniform", "diagonal", "shuffled")
PAIR = re.compile(r"([1-9][0-9]*)([-.])([1-9][0-9]*)")


class Edits(NamedTuple):
    """What is changed in a model."""

    attention: str | None = None  # uniform, diagonal, shuffled or edge
    edge: tuple[int, int] | None = None  # output step, source token
    from_step: int | None = None  # the first step whose attention is replaced; None for an edge
    seed: int | None = None  # of the shuffling; None where nothing is shuffled
    no_input_feeding: bool = False
    drop_head: tuple[int, int] | None = None  # decoder layer, head
    weights: tuple[float, ...] | None = None  # with attention "weights": those of step `from_step`, one a source token


def read_edits(
    *, attention: str | None, from_step: int | None, seed: int | None, no_input_feeding: bool, drop_head: str | None
) -> Edits | None:
    """Make edits from what the command line has; None if it has none. Raises ConfigError for what makes no sense."""
    kind, edge = _read_attention(attention) if attention is not None else (None, None)
    if from_step is not None and kind in (None, "edge"):
        raise ConfigError(f"--from-step {from_step}: it goes with --attention {', '.join(KINDS[:2])} or {KINDS[2]}")
    if seed is not None and kind != "shuffled":
        raise ConfigError(f"--shuffle-seed {seed}: it goes with --attention shuffled")
    head = _read_pair(drop_head, ".") if drop_head is not None else None
    if drop_head is not None and head is None:
        raise ConfigError(f"--drop-head {drop_head}: expected L.H, decoder layer and head counted from 1, such as 2.1")
    if kind is None and head is None and not no_input_feeding:
        return None
    return normal(Edits(kind, edge, from_step, seed, no_input_feeding, head))


def normal(edits: Edits) -> Edits:
    """The same edits with what does nothing left out, and what was left out at its default, 1."""
    from_step, seed = (1 if value is None else value for value in (edits.from_step, edits.seed))
    return edits._replace(
        from_step=from_step if edits.attention in (*KINDS, "weights") else None,
        seed=seed if edits.attention == "shuffled" else None,
    )


def _read_attention(text: str) -> tuple[str, tuple[int, int] | None]:
    kind, _, rest = text.partition(":")
    edge = _read_pair(rest, "-")
    if text in KINDS or (kind == "edge" and edge):
        return kind, edge
    raise ConfigError(
        f"--attention {text}: expected {', '.join(KINDS)} or edge:I-J, by which output step I looks only at source "
        "token J, both counted from 1"
    )


def _read_pair(text: str, separator: str) -> tuple[int, int] | None:
    match = PAIR.fullmatch(text)
    return (int(match[1]), int(match[3])) if match and match[2] == separator else None


def edits_from(values: Mapping[str, Any]) -> Edits:
    """Edits from a file of traces. Raises ValueError or TypeError for what no file of ours holds."""
    parts: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    edits = Edits(**parts)
    pairs = [pair for pair in (edits.edge, edits.drop_head) if pair is not None]
    numbers = [value for value in (edits.from_step, edits.seed) if value is not None]
    is_right = (
        edits.attention in (None, *KINDS, "edge", "weights")
        and (edits.weights is not None) == (edits.attention == "weights")
        and all(type(weight) in (int, float) and 0 <= weight <= 1 for weight in edits.weights or ())
        and (edits.edge is not None) == (edits.attention == "edge")
        and type(edits.no_input_feeding) is bool
        and all(len(pair) == 2 for pair in pairs)
        and all(type(number) is int for number in (*numbers, *(part for pair in pairs for part in pair)))
        and edits == normal(edits)
    )
    if not is_right:
        raise ValueError(f"no edits: {dict(values)}")
    return edits


def check_model(edits: Edits, options: ModelConfig) -> None:
    """Raise ConfigError if a model with these options has not what is to be edited."""
    if edits.attention and not options.has_attention:
        raise ConfigError("--attention: a classic model has no attention; use a bahdanau, luong or transformer model")
    if edits.no_input_feeding and not (options.decoder == "luong" and options.feeds_input):
        which = "luong without input feeding" if options.decoder == "luong" else options.decoder
        raise ConfigError(f"--no-input-feeding: this model is {which}; it is for luong models with input feeding")
    if edits.drop_head:
        layer, head = edits.drop_head
        name = f"--drop-head {layer}.{head}"
        if options.decoder != "transformer":
            raise ConfigError(f"{name}: a {options.decoder} model has no heads; it is for transformer models")
        if layer > options.dec_layers or head > options.num_heads:
            layers, heads = options.dec_layers, options.num_heads
            raise ConfigError(f"{name}: no such head; the decoder has layers 1 to {layers}, each heads 1 to {heads}")


def check_range(edits: Edits, source_tokens: int, steps: int) -> None:
    """Raise ConfigError for a step or a source token that is not there; `steps` are those of the unedited output."""
    if edits.attention is None:
        return
    name = f"--attention edge:{edits.edge[0]}-{edits.edge[1]}" if edits.edge else f"--from-step {edits.from_step}"
    if edits.weights is not None and len(edits.weights) != source_tokens:
        raise ConfigError(f"weights: expected one for each of {source_tokens} source tokens, got {len(edits.weights)}")
    if edits.edge and edits.edge[1] > source_tokens:
        raise ConfigError(f"{name}: no such source token; they are 1 to {source_tokens} here, the last is </s>")
    step = edits.edge[0] if edits.edge else edits.from_step
    if step is None or not 1 <= step <= steps:
        raise ConfigError(f"{name}: no such step; the unedited output has steps 1 to {steps}")


def is_replaced(edits: Edits, step: int) -> bool:
    """Whether the attention of a step is replaced."""
    if edits.attention is None:
        return False
    if edits.weights is not None:
        return step == edits.from_step
    return step == edits.edge[0] if edits.edge else step >= (edits.from_step or 0)


def replaced_weights(edits: Edits, step: int, own: list[float]) -> list[float] | None:
    """The weights that replace a step's `own` ones, or None where these stay."""
    if not is_replaced(edits, step):
        return None
    size = len(own)
    if edits.weights is not None:
        return list(edits.weights)
    if edits.attention == "uniform":
        return [1 / size] * size
    if edits.attention == "shuffled":
        draw = random.Random(f"{edits.seed} {step}")  # .random() is the same in every version of Python
        return [weight for _, weight in sorted((draw.random(), weight) for weight in own)]
    looked_at = edits.edge[1] if edits.edge else min(step, size)
    return [float(j == looked_at) for j in range(1, size + 1)]


class Counted(NamedTuple):
    """A decoder's state with the number of steps made."""

    steps: int
    inner: Any


class Edited:
    """A model whose attention is replaced. It offers the verbs that a search needs, for one source at a time."""

    def __init__(self, model: Any, edits: Edits):
        self._model, self._edits = model, edits

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Any:
        """Read one source `[1, S]`."""
        return self._model.encode(source, lengths, copies)

    def start(self, memory: Any) -> Counted:
        """The model's first state, with no step made."""
        return Counted(0, self._model.start(memory))

    def step(self, token: Tensor, state: Counted, memory: Any) -> Any:
        """One step of `N` hypotheses."""
        number = state.steps + 1
        step = self._model.step(token, state.inner, memory._replace(replaced=self._replaced(token, state, memory)))
        return step._replace(state=Counted(number, step.state))

    def _replaced(self, token: Tensor, state: Counted, memory: Any) -> Tensor | None:
        """The weights to attend with `[1, N, S]`; for the shuffled ones a first try tells the model's own.

        A search may have widened the memory: what is behind the sentence gets nothing.
        """
        width, length = memory.mask.size(1), int(memory.mask[0].sum())
        own = torch.zeros(len(token), width)  # only their number counts
        if self._edits.attention == "shuffled":
            own = self._model.step(token, state.inner, memory).attention
        rows = [replaced_weights(self._edits, state.steps + 1, row) for row in own[:, :length].tolist()]
        if None in rows:
            return None
        return functional.pad(memory.states.new_tensor(rows), (0, width - length))[None]


def edited(model: Any, edits: Edits | None, options: ModelConfig) -> Any:
    """The model with the edits made; the given one stays as it is."""
    if edits is None:
        return model
    if edits.no_input_feeding or edits.drop_head:
        model = copy.deepcopy(model)
        with torch.no_grad():
            edit_weights(dict(model.named_parameters()), edits, options)
    return Edited(model, edits) if edits.attention else model


def edit_weights(weights: Mapping[str, Any], edits: Edits, options: ModelConfig) -> None:
    """Set to zero, in place, what reads s̃_{t-1}, and the columns of W_o that read the dropped head."""
    if edits.no_input_feeding:
        weights["feed_gates.weight"][:] = 0
    if edits.drop_head:
        layer, head = edits.drop_head
        size = options.embedding_dim // options.num_heads
        weights[f"decoder.{layer - 1}.cross_heads.o.weight"][:, (head - 1) * size : head * size] = 0
