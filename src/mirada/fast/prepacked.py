"""Weights laid out once (prepacked) for decoding: the same equations, faster products, nothing to train.

A product with few rows spends its time on reading the weights, and a plain one lays them out anew at every step.
`packed` copies a model's structure (not its weights) and puts small modules in place of the large products:

float32   oneDNN's blocked layout: the plain model's numbers, but for the order of additions
int8      weights in 8 bits, one scale an output, made once; each row that they meet is brought to 8 bits by its own
          largest number; sums are whole numbers and exact, but rows are rounded before: a last bit that
          depends on the batch can become a step of 1/127, and scores differ by up to 2e-3

Only a CPU has this, and only for weights in float32; elsewhere `packed` gives the model back as it is.
"""

from __future__ import annotations

import copy
from typing import Any, Literal, Protocol, cast

import torch
from torch import Tensor, nn

from mirada.fast import scripted
from mirada.fast.flows import fuse, tensors
from mirada.fast.kv_cache import CachedTransformer, DecoderOutput
from mirada.fast.scripted import Compiled
from mirada.kernels.private import INT8, PREPACKED, has_products, has_vnni, linear_prepacked, prepack, prepack_int8
from mirada.models.attention import AdditiveScore, ConcatScore
from mirada.models.bahdanau import Bahdanau
from mirada.models.base import Memory, State, Step
from mirada.models.cells import Cell, CellState, Scanned, Stack, at_lengths
from mirada.models.classic import Classic
from mirada.models.embedding import Embedding, OutputLayer
from mirada.models.luong import Luong
from mirada.models.transformer import Heads, Layer, Transformer

Precision = Literal["float32", "int8"]
SMALLEST = {"float32": (1 << 16) + 1, "int8": 1 << 16}  # weights with fewer numbers are as fast as they are
LARGEST_TABLE = 1 << 22  # numbers: 16 MB
ROWS = 64  # a hint for the layout; it suits other numbers of rows as well


class Decoding(Protocol):
    """What a search needs of a model."""

    def encode(self, source: Tensor, lengths: Tensor, copies: Tensor | None = None) -> Memory:
        """Read the source: ids `[B, S]` padded at the right, real lengths `[B]`; what it would write, to copy it."""
        ...

    def start(self, memory: Memory) -> State:
        """Return the decoder's state before the first step."""
        ...

    def step(self, token: Tensor, state: State, memory: Memory) -> Step | DecoderOutput:
        """Make one step from the previous tokens `[N]`."""
        ...


def can_prepack(model: nn.Module, precision: Precision) -> bool:
    """Whether this machine has fast products of this precision for the model's weights."""
    weights = next(model.parameters())
    if weights.device.type != "cpu" or weights.dtype != torch.float32 or not torch.backends.mkldnn.is_available():
        return False
    return has_products(*PREPACKED) and (precision == "float32" or (has_products(*INT8) and has_vnni()))


def prepacked(model: Classic | Bahdanau | Luong | Transformer, precision: Precision = "float32") -> Decoding:
    """A copy of the model for decoding (`encode`, `start`, `step`); the model itself where there is nothing to gain.

    What is small stays the model's own, so a change of its weights shows in part: make a new copy then.
    """
    if not can_prepack(model, precision):
        return model
    shared = {id(weights): weights for weights in model.parameters()}
    copied = copy.deepcopy(model, cast(Any, shared)).eval()
    table = _table(copied)
    layers = [cast(Layer, layer) for layer in getattr(copied, "decoder", [])]
    weights = [part for layer in layers for part in _layer_weights(layer, precision)]
    for layer in layers:
        _without_read(layer)
    _prepack_children(copied, precision)
    if table is not None and isinstance(cell := cast(Stack, copied.stack).cells[0], PrepackedCell):
        cast(Any, copied).embedding, cell.x = nn.Identity(), Table(table)
    if isinstance(copied, Bahdanau | Luong):
        _fuse(copied)
    return CachedTransformer(copied, weights) if isinstance(copied, Transformer) else copied


def _fuse(model: Bahdanau | Luong) -> None:
    """Let a flow with one packed layer make its step in fewer calls."""
    cells, score = model.stack.cells, model.score
    if len(cells) == 1 and isinstance(cell := cells[0], PrepackedCell):
        additive = [tensors(score.w_a), [score.v, score.total]] if isinstance(score, PrepackedEnergy) else None
        fuse(model, additive, cell.weights)


def _table(model: nn.Module) -> Tensor | None:
    """W_x E[y] + b of every word, where only the first layer's gates read the embeddings, and it stays small."""
    if isinstance(model, Transformer) or any(getattr(model, name, None) for name in ("readout", "copy_gate")):
        return None
    weight, stack = cast(Embedding, model.embedding).weight, cast(Stack, model.stack)
    return stack.project(weight.detach()).detach() if len(weight) * stack.gates <= LARGEST_TABLE else None


def _scaled(layer: Layer) -> list[nn.Linear]:
    """W_q / √d_k, W_k and W_v of a layer's self-attention as one product, and W_q / √d_k of its cross-attention."""

    def joined(parts: list[nn.Linear], scales: list[float]) -> nn.Linear:
        merged = nn.Linear(parts[0].in_features, sum(part.out_features for part in parts), device="meta")
        biases = [part.weight.new_zeros(part.out_features) if part.bias is None else part.bias for part in parts]
        weights = [part.weight.detach() * scale for part, scale in zip(parts, scales, strict=True)]
        merged.weight = nn.Parameter(torch.cat(weights))
        merged.bias = nn.Parameter(torch.cat([b.detach() * scale for b, scale in zip(biases, scales, strict=True)]))
        return merged

    own, cross = layer.self_heads, cast(Heads, layer.cross_heads)
    scale = (own.q.out_features // own.heads) ** -0.5
    return [joined([own.q, own.k, own.v], [scale, 1, 1]), joined([cross.q], [scale])]


def _layer_weights(layer: Layer, precision: Precision) -> list[list[Tensor]]:
    """What scripted.py reads of a layer that is not packed yet."""
    (back, source), heads = _scaled(layer), cast(Heads, layer.cross_heads)
    products = [back, layer.self_heads.o, source, heads.o, layer.ff_in, layer.ff_out]
    return [tensors(_prepack(part, precision)) for part in products] + [tensors(part) for part in layer.norms]


def _without_read(layer: Layer) -> None:
    """Leave of a layer what the encoder needs, its keys and values: the rest is in `_layer_weights`."""
    for owner, names in ((layer, ("self_heads", "ff_in", "ff_out")), (layer.cross_heads, ("q", "o"))):
        for name in names:
            setattr(owner, name, nn.Identity())


def _prepack_children(module: nn.Module, precision: Precision) -> None:
    for name, child in module.named_children():
        copied = _prepack(_as_additive(child) if isinstance(child, ConcatScore) else child, precision)
        if copied is not child:
            setattr(module, name, copied)


def _prepack(module: nn.Module, precision: Precision) -> nn.Module:
    """What takes the module's place: a fast product, or the module itself with its children packed."""
    if isinstance(module, nn.Linear | OutputLayer):
        return (
            _linear(module.weight, module.bias, precision) if module.weight.numel() >= SMALLEST[precision] else module
        )
    if isinstance(module, Cell):
        return PrepackedCell(module, precision) if module.w_h.numel() >= SMALLEST[precision] else module
    if isinstance(module, AdditiveScore) and module.w_c is None:
        module = PrepackedEnergy(module)
    _prepack_children(module, precision)
    return module


def _as_additive(score: ConcatScore) -> AdditiveScore:
    """W_a [s; h] is W_a's left columns times s plus its right columns times h."""
    left, right = score.w_a.weight.split((score.query_size, score.w_a.in_features - score.query_size), 1)
    copied = AdditiveScore(left.size(1), right.size(1), len(left))
    copied.w_c = score.w_c
    copied.w_a.weight, copied.u_a.weight, copied.v_a = nn.Parameter(left), nn.Parameter(right), score.v_a
    copied.u_a.bias = score.w_a.bias
    return copied


class PrepackedLinear(nn.Module):
    """x Wᵀ + b with the weights laid out once."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        self.weight = prepack(weight.detach(), ROWS)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """`[…, I]` → `[…, O]`."""
        return linear_prepacked(x, self.weight, self.bias)


class Int8Linear(nn.Module):
    """x Wᵀ + b in whole numbers: W is s_o W', x is s_n x', both rounded to 8 bits, and x Wᵀ is s_n s_o (x' W'ᵀ)."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__()
        weight = weight.detach()
        self.scales = scripted.row_scale(weight)[:, 0]  # s_o
        rounded = (weight / self.scales[:, None]).round_().to(torch.int8)
        self.weight = prepack_int8(rounded)
        self.zeros = torch.zeros(len(weight), dtype=torch.int32)
        self.bias = weight.new_zeros(len(weight)) if bias is None else bias.detach()
        self.product = Compiled(scripted.int8_product)

    def forward(self, x: Tensor) -> Tensor:
        """`[…, I]` → `[…, O]`."""
        return self.added(x, self.bias)

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        """x Wᵀ + other, without b."""
        return cast(Tensor, self.product(x, [self.weight, self.bias, self.scales, self.zeros], other))


class PrepackedEnergy(nn.Module):
    """vᵀ tanh(W s + U h_j) as 2 vᵀ σ(2 W s + 2 U h_j) − Σ v: weights are doubled once, and a step has two passes less.

    The sigmoid is what a CPU is fast for (kernels/energy.py).
    """

    def __init__(self, score: AdditiveScore):
        super().__init__()
        self.w_a, self.u_a = _doubled(score.w_a), _doubled(score.u_a)
        self.v, self.total = 2 * score.v_a.detach(), score.v_a.detach().sum()
        self.energy = Compiled(scripted.energy)

    def project(self, states: Tensor) -> Tensor:
        """2 U h_j (+ 2 b): `[B, S, H]` → `[B, S, A]`."""
        return cast(Tensor, self.u_a(states))

    def forward(self, query: Tensor, keys: Tensor, coverage: Tensor | None = None) -> Tensor:
        """Scores `[B, T, S]`; nobody wants a coverage of it."""
        return cast(Tensor, self.energy(self.w_a(query), keys, self.v, self.total))


def _doubled(linear: nn.Linear) -> nn.Linear:
    copied = nn.Linear(linear.in_features, linear.out_features, bias=linear.bias is not None, device="meta")
    copied.weight = nn.Parameter(2 * linear.weight.detach())
    if linear.bias is not None:
        copied.bias = nn.Parameter(2 * linear.bias.detach())
    return copied


class Table(nn.Module):
    """What a product makes of each word, looked up."""

    def __init__(self, rows: Tensor):
        super().__init__()
        self.rows = rows

    def forward(self, ids: Tensor) -> Tensor:
        """Ids `[…]` → `[…, G·H]`."""
        return nn.functional.embedding(ids, self.rows)


class PrepackedCell(nn.Module):
    """A recurrent layer with packed weights: what `Cell` offers for decoding."""

    def __init__(self, cell: Cell, precision: Precision):
        super().__init__()
        self.kind, self.size = cell.kind, cell.size
        self.x: nn.Module = _linear(cell.w_x, cell.b_x, precision)
        bias = cell.w_h.new_zeros(len(cell.w_h)).detach()
        if cell.b_n is not None:
            bias[2 * self.size :] = cell.b_n.detach()
        self.weights = tensors(_linear(cell.w_h, bias, precision))
        lstm = self.kind == "lstm"
        self.one, self.all = (
            Compiled(scripted.lstm if lstm else scripted.gru),
            Compiled(scripted.lstm_scan if lstm else scripted.gru_scan),
        )

    def project(self, x: Tensor) -> Tensor:
        """W_x x + b: `[…, I]` → `[…, G·H]`."""
        return cast(Tensor, self.x(x))

    def step(self, x_gates: Tensor, state: CellState, *, drop: Tensor | None = None) -> CellState:
        """One step, as `Cell.step`; there is no dropout in decoding."""
        return self._state(self.one(x_gates, *state, self.weights))

    def scan(self, x: Tensor, state: CellState, lengths: Tensor, *, drop: Tensor | None = None) -> Scanned:
        """All steps of inputs `[T, N, I]`, as `Cell.scan`."""
        return at_lengths(self._state(self.all(self.project(x), *state, self.weights)), lengths)

    def zero_state(self, like: Tensor, rows: int) -> CellState:
        """A state of zeros."""
        return tuple(like.new_zeros(rows, self.size) for _ in range(2 if self.kind == "lstm" else 1))

    def _state(self, parts: Any) -> CellState:
        return cast(CellState, parts) if self.kind == "lstm" else (parts,)


def _linear(weight: Tensor, bias: Tensor | None, precision: Precision) -> PrepackedLinear | Int8Linear:
    return Int8Linear(weight, bias) if precision == "int8" else PrepackedLinear(weight, bias)
