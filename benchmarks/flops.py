"""Floating-point operations of a model's products, counted from shapes: a multiplication and an addition are two.

Only what must be computed counts: real tokens, never padding; the causal half of self-attention; one row where a beam
has only begun. Element by element work (gates, softmax, dropout) is not counted: at the works' sizes it is under a
hundredth of the products, whatever time it takes. Training is three times the forward pass: gradients of inputs and of
weights are products of the same size each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mirada.config.options import ModelConfig

GATES = {"lstm": 4, "gru": 3}
TRAINING = 3


class Sizes(NamedTuple):
    """How many there are of everything that is multiplied, summed over the sentences."""

    sentences: int
    source: int  # source tokens
    source_pairs: int  # Σ S²: every source token attends to every other
    rows: int  # target tokens, or rows of a search
    attended: int  # Σ rows · S
    past: int  # Σ over rows of the words so far, its own included


class Parts(NamedTuple):
    """Operations of a forward pass, by part."""

    encoder: float  # with the bridge to the decoder's first state
    attention: float  # keys, queries, scores, contexts; the Transformer's over the source
    decoder: float  # recurrence and readout; the Transformer's self-attention and feed-forward
    output: float  # the product with the vocabulary

    @property
    def total(self) -> float:
        """All of them."""
        return sum(self)


def of_pairs(lengths: Sequence[tuple[int, int]]) -> Sizes:
    """Sizes of known targets: lengths of source and target, both with </s>."""
    return _sizes([(source, [1] * target) for source, target in lengths])


def of_search(lengths: Sequence[tuple[int, int]], beam: int) -> Sizes:
    """Sizes of a search that gave outputs so long: one row for the first word, then as many as the beam."""
    return _sizes([(source, [1] + [beam] * (target - 1)) for source, target in lengths])


def _sizes(sentences: Sequence[tuple[int, list[int]]]) -> Sizes:
    return Sizes(
        len(sentences),
        sum(source for source, _ in sentences),
        sum(source**2 for source, _ in sentences),
        sum(sum(rows) for _, rows in sentences),
        sum(source * sum(rows) for source, rows in sentences),
        sum(count * step for _, rows in sentences for step, count in enumerate(rows, start=1)),
    )


def forward(options: ModelConfig, vocabulary: int, sizes: Sizes) -> Parts:
    """Operations of a forward pass of a Bahdanau, Luong or Transformer model; raises ValueError for another."""
    if options.decoder == "transformer":
        return _transformer(options, vocabulary, sizes)
    if options.decoder == "classic":
        raise ValueError("operations are counted for decoder bahdanau, luong and transformer")
    width = options.embedding_dim if options.has_maxout else options.hidden_size
    return Parts(
        _recurrent_encoder(options, sizes),
        _attention(options, sizes),
        _recurrent_decoder(options, sizes),
        2.0 * sizes.rows * width * vocabulary,
    )


def training(options: ModelConfig, vocabulary: int, lengths: Sequence[tuple[int, int]]) -> Parts:
    """Operations of forward and backward over pairs of these lengths."""
    return Parts(*(TRAINING * part for part in forward(options, vocabulary, of_pairs(lengths))))


def _recurrent_encoder(options: ModelConfig, sizes: Sizes) -> float:
    size, gates = options.direction_size, GATES[options.rnn_type]
    inputs = [options.embedding_dim] + [options.memory_size] * (options.enc_layers - 1)
    directions = 2 if options.both_directions else 1
    layers = sum(2.0 * sizes.source * directions * gates * size * (width + size) for width in inputs)
    bahdanau = options.decoder == "bahdanau"
    if not bahdanau and not options.both_directions and options.memory_size == options.hidden_size:
        return layers  # the decoder starts from the encoder's last state as it is
    read = size if bahdanau and options.both_directions else options.memory_size
    states = options.dec_layers * (2 if options.rnn_type == "lstm" else 1)
    return layers + 2.0 * sizes.sentences * states * read * options.hidden_size


def _attention(options: ModelConfig, sizes: Sizes) -> float:
    memory, state = options.memory_size, options.hidden_size
    width = (options.attention_size or state) if options.score_name in ("additive", "concat") else state
    keys = queries = 0.0
    if options.score_name in ("additive", "concat", "general"):
        keys = 2.0 * sizes.source * memory * width
    if options.score_name in ("additive", "concat"):
        queries = 2.0 * sizes.rows * state * width
    return keys + queries + 2.0 * sizes.attended * (width + memory)


def _recurrent_decoder(options: ModelConfig, sizes: Sizes) -> float:
    state, memory, embedded = options.hidden_size, options.memory_size, options.embedding_dim
    gates = GATES[options.rnn_type] * state
    read = 0  # what enters the first layer beside the word and its own state
    if options.decoder == "bahdanau":
        read = memory
        readout = 2 * embedded * (state + embedded + memory) if options.has_maxout else 0
    else:
        read = state if options.feeds_input else 0
        readout = state * (memory + state)
    first = gates * (embedded + state + read)
    above = (options.dec_layers - 1) * gates * 2 * state
    return 2.0 * sizes.rows * (first + above + readout)


def _transformer(options: ModelConfig, vocabulary: int, sizes: Sizes) -> Parts:
    d, ff = options.embedding_dim, options.ff_size
    layer = 4 * d * d + 2 * d * ff  # four projections of self-attention, and feed-forward
    encoder = options.enc_layers * (2.0 * sizes.source * layer + 4.0 * sizes.source_pairs * d)
    decoder = options.dec_layers * (2.0 * sizes.rows * layer + 4.0 * sizes.past * d)
    attention = options.dec_layers * (4.0 * (sizes.source + sizes.rows) * d * d + 4.0 * sizes.attended * d)
    return Parts(encoder, attention, decoder, 2.0 * sizes.rows * d * vocabulary)
