"""The equations that a model's options name."""

from __future__ import annotations

from mirada.config.options import ModelConfig
from mirada.reference import Design, Replaced, Run, Weights, bahdanau, classic, luong, transformer
from mirada.reference.copying import Copies


def run(
    options: ModelConfig,
    weights: Weights,
    source: list[int],
    target: list[int],
    *,
    replaced: Replaced = (),
    copies: Copies = (),
) -> Run:
    """Read a source (ids with </s>) and make a step for each of `target` (ids from <s> on).

    `copies`: what each source position would write, of a model that copies.
    """
    layers = (options.enc_layers, options.dec_layers)
    if options.decoder == "transformer":
        own = transformer.Design(
            options.num_heads,
            options.norm == "pre",
            options.activation,
            options.norm_eps,
            options.position_encoding == "tensor2tensor",
            options.first_position,
            options.add_source_eos,
        )
        reader = transformer.Reader(weights, own)
        head = options.copy_head
        return transformer.run(reader, source, target, layers=layers, replaced=replaced, copies=copies, copy_head=head)
    sides = (options.both_directions, options.reverse_source)
    window, reach = options.attention_window, options.window
    design = Design(
        options.rnn_type,
        *sides,
        *layers,
        options.score_name or "",
        window,
        reach,
        bridge=options.bridge or "",
        from_top=options.bridge_from == "top",
        source_end=options.add_source_eos,
        squashed=options.attentional == "tanh",
    )
    if options.decoder == "bahdanau":
        return bahdanau.run(design, weights, source, target, deep=options.has_maxout, replaced=replaced, copies=copies)
    if options.decoder == "luong":
        feeding = options.feeds_input
        return luong.run(design, weights, source, target, input_feeding=feeding, replaced=replaced, copies=copies)
    return (classic.run_cho if options.feed_context else classic.run)(design, weights, source, target)
