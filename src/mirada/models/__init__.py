"""The systems. `build_model` is the only place that reads options and chooses; the layers take plain numbers."""

from __future__ import annotations

from mirada.config.options import ModelConfig
from mirada.models.attention import build_score
from mirada.models.bahdanau import Bahdanau
from mirada.models.base import Memory, Network, Outputs, Step
from mirada.models.cells import Stack
from mirada.models.classic import Classic
from mirada.models.copying import CopyGate
from mirada.models.embedding import Embedding, MaxoutReadout, OutputLayer, Places
from mirada.models.encoder import Bridge, ReadingOrder, RecurrentEncoder, RecurrentParts
from mirada.models.local import build_window
from mirada.models.luong import Luong
from mirada.models.transformer import Sizes, Transformer

__all__ = ["Memory", "Network", "Outputs", "Step", "build_model"]

AnyModel = Classic | Bahdanau | Luong | Transformer


def build_model(options: ModelConfig, *, source_vocab: int, target_vocab: int) -> AnyModel:
    """Make the model that the options describe, with fresh weights from torch's random state."""
    embeddings = _embeddings(options, source_vocab, target_vocab)
    if options.decoder == "transformer":
        return _transformer(options, embeddings)
    encoder = RecurrentEncoder(
        options.rnn_type,
        embeddings[0],
        options.direction_size,
        layers=options.enc_layers,
        reading=ReadingOrder(options.both_directions, options.reverse_source, options.add_source_eos),
        drops=(options.dropout, options.recurrent_dropout),
    )
    stack = Stack(
        options.rnn_type,
        options.embedding_dim,
        options.hidden_size,
        layers=options.dec_layers,
        dropout=options.dropout,
        recurrent=options.recurrent_dropout,
    )
    parts = RecurrentParts(encoder, _bridge(options), embeddings[1], stack, _output(options, embeddings[1]))
    readout = _readout(options)
    if not options.has_attention:
        return Classic(parts, readout=readout, input_feeding=options.feeds_input)
    score = build_score(
        str(options.score_name),
        query_size=options.hidden_size,
        memory_size=options.memory_size,
        attention_size=options.attention_size or options.hidden_size,
        bias=options.attention_bias,
        coverage=options.coverage,
    )
    window = build_window(options.attention_window, query_size=options.hidden_size, reach=options.window)
    gate = _copy_gate(options)
    if options.decoder == "bahdanau":
        return Bahdanau(parts, score, window=window, readout=readout, copy_gate=gate)
    return Luong(
        parts,
        score,
        input_feeding=options.feeds_input,
        window=window,
        copy_gate=gate,
        bias=options.attentional_bias,
        squashed=options.attentional == "tanh",
    )


def _embeddings(options: ModelConfig, source_vocab: int, target_vocab: int) -> tuple[Embedding, Embedding]:
    # The Transformer drops the sum with the positions instead.
    drop = 0.0 if options.decoder == "transformer" else options.embedding_drop
    source, target = (
        Embedding(
            vocab,
            options.embedding_dim,
            dropout=drop,
            word_dropout=options.word_dropout,
            segments=segments,
            copied=options.copy_attn,
        )
        for vocab, segments in ((source_vocab, options.segments or 0), (target_vocab, 0))
    )
    return (target, target) if options.tied_embeddings else (source, target)


def _transformer(options: ModelConfig, embeddings: tuple[Embedding, Embedding]) -> Transformer:
    widths = (options.embedding_dim, options.num_heads, options.ff_size)
    sizes = Sizes(*widths, options.activation, options.dropout, options.norm == "pre", options.norm_eps)
    tied = embeddings[1] if options.tied_softmax else None
    output = OutputLayer(options.embedding_dim, len(embeddings[1].weight), tied=tied)
    layers = (options.enc_layers, options.dec_layers)
    places = Places(options.position_encoding, options.first_position, options.add_source_eos)
    copying = _copy_gate(options), options.copy_head
    return Transformer(embeddings, output, sizes, layers=layers, places=places, copying=copying)


def _copy_gate(options: ModelConfig) -> CopyGate | None:
    if not options.copy_attn:
        return None
    state = options.embedding_dim if options.decoder == "transformer" else options.hidden_size
    return CopyGate(options.memory_size, state, options.embedding_dim)


def _bridge(options: ModelConfig) -> Bridge:
    # The identity s_0 = c is the papers' own; it needs one direction and equal sizes. Bahdanau's is never one.
    fits = not options.both_directions and options.memory_size == options.hidden_size
    identity = options.feed_context or (fits and options.decoder != "bahdanau")
    return Bridge(
        options.rnn_type,
        (options.memory_size, options.hidden_size),
        layers=(options.enc_layers, options.dec_layers),
        function=options.bridge or ("copy" if identity else None),
        only_backward=options.decoder == "bahdanau" and options.both_directions,
        from_top=options.bridge_from == "top",
    )


def _output(options: ModelConfig, target: Embedding) -> OutputLayer:
    size = options.embedding_dim if options.has_maxout else options.hidden_size
    tied = target if options.tied_softmax else None
    return OutputLayer(size, len(target.weight), dropout=options.dropout, tied=tied)


def _readout(options: ModelConfig) -> MaxoutReadout | None:
    if not options.has_maxout:
        return None
    context = options.memory_size if options.has_attention else options.hidden_size
    return MaxoutReadout(options.hidden_size, options.embedding_dim, context, size=options.embedding_dim)
