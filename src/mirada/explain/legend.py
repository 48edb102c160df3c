"""What the names in a trace mean: symbol, words, equation, axes, for every system; with t or with a step's number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mirada.config.options import ModelConfig

SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
SOURCE, UNIT, HEAD, POSITION, WORD = "source", "unit", "head", "position", "word"


class Legend(NamedTuple):
    """One name explained."""

    symbol: str
    meaning: str
    equation: str  # what stands to the right of the equals sign
    # Of source (tokens), position (decoder inputs so far), head, unit (a vector's components), word (all that can be
    # written); none for a number.
    axes: tuple[str, ...]


class Index(NamedTuple):
    """What stands at a symbol: the step, the one before, and the layer and the one below where there are several."""

    step: int | None
    layer: int
    several: bool

    @property
    def t(self) -> str:
        """The step."""
        return "t" if self.step is None else str(self.step)

    @property
    def p(self) -> str:
        """The step before."""
        return "{t−1}" if self.step is None else str(self.step - 1)

    @property
    def tj(self) -> str:
        """The step and a source token."""
        return "tj" if self.step is None else f"{self.step},j"

    @property
    def level(self) -> str:
        """The layer, as a superscript."""
        return _level(self.layer) if self.several else ""

    @property
    def below(self) -> str:
        """The layer below, as a superscript; empty for the lowest one."""
        return _level(self.layer - 1) if self.several and self.layer > 1 else ""


Entries = dict[str, Legend]


def legend(options: ModelConfig, names: Iterable[str]) -> Entries:
    """Explain every name, with t for the step."""
    return {name: describe(options, name) for name in names}


def describe(options: ModelConfig, name: str, step: int | None = None) -> Legend:
    """Explain one name; a step's number, if given, stands for t."""
    base, dot, layer = name.partition(".")
    index = Index(step, int(layer or 1), max(options.enc_layers, options.dec_layers) > 1)
    if options.decoder == "transformer":
        entries = _transformer_source(options, index) | _transformer_step(options, index)
    else:
        entries = _recurrent_source(options, index) | _start(options, index) | _recurrent_step(options, index)
    if options.copy_attn:
        entries |= _copying(options, index)
    return entries[f"{base}.l" if dot else base]


def _level(layer: int) -> str:
    return f"⁽{layer}⁾".translate(SUPERSCRIPTS)


def _recurrent_source(options: ModelConfig, i: Index) -> Entries:
    rnn, n = options.rnn_type.upper(), i.level
    read = f"h{i.below}_j" if i.layer > 1 else "x_j"
    if options.both_directions:
        state = f"[→h{n}_j; ←h{n}_j], each {rnn}({read}, its neighbour's state)"
        last, cell = f"[→h{n}_S; ←h{n}_1]", f"[→cell{n}_S; ←cell{n}_1]"
    else:
        state, last, cell = f"{rnn}({read}, h{n}_{{j−1}})", f"h{n}_S", f"cell{n}_S"
    if options.reverse_source:
        state += ", words read in reverse"
    top = f"h{_level(options.enc_layers)}_j" if i.several else "h_j"
    b = " + b" if options.attention_bias else ""
    keys = {"additive": f"U_a h_j{b}", "general": "W_a h_j", "concat": f"W_a h_j{b}, with W_a's columns for h_j"}
    key = keys.get(str(options.score_name), "h_j")
    return {
        "x": Legend("x_j", "embeddings of the source tokens", "E[source token j]", (SOURCE, UNIT)),
        "h.l": Legend(f"h{n}_j", "states of an encoder layer", state, (SOURCE, UNIT)),
        "final.l": Legend(last, "what is read last, by direction", last, (UNIT,)),
        "final_cell.l": Legend(cell, "its memory cell", cell, (UNIT,)),
        "h": Legend("h_j", "the encoder's states", top, (SOURCE, UNIT)),
        "keys": Legend("k_j", "what the score compares with", key, (SOURCE, UNIT)),
    }


def _start(options: ModelConfig, i: Index) -> Entries:
    ends, cells = "h_S", "cell_S"
    if options.both_directions:
        backward = options.decoder == "bahdanau"
        ends, cells = ("←h_1", "←cell_1") if backward else ("[→h_S; ←h_1]", "[→cell_S; ←cell_1]")
    state, cell = f"tanh(W_s {ends} + b)", f"W'_s {cells} + b"
    if options.bridge:
        cells = ends if options.bridge_from == "top" else cells
        state, cell = (_bridged(options.bridge, name) for name in (f"W_s {ends} + b", f"W'_s {cells} + b"))
        state, cell = (ends, cells) if options.bridge == "copy" else (state, cell)
    elif options.feed_context:
        state, cell = "tanh(V' c + b)", "0"
    elif options.decoder != "bahdanau" and not options.both_directions and options.memory_size == options.hidden_size:
        state, cell = ends, cells
    return {
        "c": Legend("c", "the whole source in one vector", f"tanh(V {ends} + b)", (UNIT,)),
        "s_0.l": Legend(f"s{i.level}_0", "the decoder's first state", state, (UNIT,)),
        "cell_0.l": Legend(f"cell{i.level}_0", "the decoder's first memory cell", cell, (UNIT,)),
    }


def _bridged(function: str, mapped: str) -> str:
    return {"tanh": f"tanh({mapped})", "relu": f"max(0, {mapped})"}.get(function, mapped)


def _recurrent_step(options: ModelConfig, i: Index) -> Entries:
    t, p, n = i.t, i.p, i.level
    word = f"y_{p}"
    context = "c" if options.feed_context else f"c_{t}"
    inputs = {"bahdanau": f"[y_{p}; c_{t}]", "luong": f"[y_{p}; s̃_{p}]" if options.feeds_input else word}
    inputs["classic"] = f"[y_{p}; c]" if options.feed_context else f"[y_{p}; s_{p}]" if options.feeds_input else word
    lowest = inputs[options.decoder]
    state = f"{options.rnn_type.upper()}({lowest if i.layer == 1 else f's{i.below}_{t}'}, s{n}_{p})"
    entries = {
        "y": Legend(word, "embedding of the previous token", f"E[output token {p}]", (UNIT,)),
        "s_prev": Legend(f"s_{p}", "the state before, of the top layer", f"s_{p}", (UNIT,)),
        "s_tilde_prev": Legend(f"s̃_{p}", "the attentional state before", f"s̃_{p}", (UNIT,)),
        "s.l": Legend(f"s{n}_{t}", "the decoder's state", state, (UNIT,)),
        "cell.l": Legend(f"cell{n}_{t}", "the decoder's memory cell", f"f · cell{n}_{p} + i · g", (UNIT,)),
        "maxout": Legend(
            f"t_{t}", "what the output layer reads", f"maxout(U_o s_{t} + V_o y_{p} + C_o {context} + b)", (UNIT,)
        ),
        "s_tilde": Legend(f"s̃_{t}", "the attentional state", _attentional(options, t), (UNIT,)),
    }
    return entries | _attention(options, i) if options.has_attention else entries


def _attentional(options: ModelConfig, t: str) -> str:
    mixed = f"W_c [c_{t}; s_{t}]{' + b' if options.attentional_bias else ''}"
    return f"tanh({mixed})" if options.attentional == "tanh" else mixed


def _attention(options: ModelConfig, i: Index) -> Entries:
    query = f"s_{i.p if options.decoder == 'bahdanau' else i.t}"
    covered = " + b" if options.attention_bias else ""
    covered += f" + w_c cov_{i.tj}" if options.coverage else ""
    scores = {
        "additive": f"v_aᵀ tanh(W_a {query} + U_a h_j{covered})",
        "dot": f"{query}ᵀ h_j",
        "scaled_dot": f"{query}ᵀ h_j / √d",
        "general": f"{query}ᵀ W_a h_j",
        "concat": f"v_aᵀ tanh(W_a [{query}; h_j]{covered})",
    }
    softmax = f"exp(e_{i.tj}) / Σ_k exp(e_{i.tj[:-1]}k)"
    if options.attention_window != "global":
        times = f"g_{i.tj} " if options.attention_window == "local-p" else ""
        softmax = f"{times}{softmax}, where |j − p_{i.t}| ≤ {options.window}"
    entries = {
        "e": Legend(f"e_{i.tj}", "scores", scores[str(options.score_name)], (SOURCE,)),
        "alpha": Legend(f"α_{i.tj}", "attention weights", softmax, (SOURCE,)),
        "c": Legend(f"c_{i.t}", "the context", f"Σ_j α_{i.tj} h_j", (UNIT,)),
    }
    return entries | _coverage(i) | _window(options, i, query)


def _coverage(i: Index) -> Entries:
    """See, Liu & Manning 2017, equations 10 and 12."""
    again = f"Σ_j min(α_{i.tj}, cov_{i.tj})"
    earlier = f"Σ_k α_{{kj}} of the steps k < {i.t}"
    return {
        "coverage": Legend(f"cov_{i.tj}", "weights of all steps before", earlier, (SOURCE,)),
        "coverage_loss": Legend(f"covloss_{i.t}", "what is attended to again", again, ()),
    }


def _window(options: ModelConfig, i: Index, query: str) -> Entries:
    """Luong, Pham & Manning 2015, equations 9 and 10; source tokens are counted from 1."""
    middle = f"min({i.t}, S)" if options.attention_window == "local-m" else f"1 + S σ(v_pᵀ tanh(W_p {query}))"
    gaussian = f"exp(−(j − p_{i.t})² / 2σ²), where σ = {options.window} / 2"
    return {
        "middle": Legend(f"p_{i.t}", "the middle of the window", middle, ()),
        "gaussian": Legend(f"g_{i.tj}", "what the weights are multiplied by", gaussian, (SOURCE,)),
    }


def _copying(options: ModelConfig, i: Index) -> Entries:
    """See, Liu & Manning 2017, equations 8 and 9."""
    transformer, alpha = options.decoder == "transformer", f"α_{i.tj}"
    if options.copy_head:
        alpha = f"α{_level(options.dec_layers)}_{i.tj}" if i.several else alpha
        alpha += f" of head {options.copy_head}"
    context = f"c'_{i.t}" if transformer else f"c_{i.t}"
    gate = f"σ(w_cᵀ {context} + w_sᵀ s_{i.t} + w_xᵀ y_{i.p} + b)"
    equal = f"Σ_k {alpha.replace(i.tj, i.tj[:-1] + 'k')}, over the k where x_k = x_j"
    mixture = f"p_gen P_vocab(w) + (1 − p_gen) Σ_j {alpha}, over the j where x_j = w"
    return {
        "copy_context": Legend(context, "the context of copying", f"Σ_j {alpha} h_j", (UNIT,)),
        "p_gen": Legend("p_gen", "how far the decoder speaks for itself", gate, ()),
        "copy": Legend(f"copy_{i.tj}", "what copying gives each source token", equal, (SOURCE,)),
        "p": Legend("P(w)", "what is written next", mixture, (WORD,)),
    }


def _transformer_source(options: ModelConfig, i: Index) -> Entries:
    n, pre = i.level, options.norm == "pre"
    read = f"h{i.below}_j" if i.layer > 1 else "x_j"
    residual = f"{read} + a{n}_j + f{n}_j" if pre else f"LN(LN({read} + a{n}_j) + f{n}_j)"
    top = f"h{_level(options.enc_layers)}_j" if i.several else "h_j of the last layer"
    pairs, softmax = (HEAD, SOURCE, SOURCE), f"exp(u{n}_jk) / Σ_m exp(u{n}_jm)"
    before = options.first_position - 1
    placed = f"E[source token j] √d + PE(j {'−' if before < 0 else '+'} {abs(before)})"
    return {
        "x": Legend("x_j", "embeddings of the source tokens with their places", placed, (SOURCE, UNIT)),
        "enc_self_e.l": Legend(f"u{n}_jk", "scores of the source with itself", "q_jᵀ k_k / √d_k", pairs),
        "enc_self_alpha.l": Legend(f"β{n}_jk", "weights of the source over itself", softmax, pairs),
        "enc_self_heads.l": Legend(f"r{n}_j", "what each head saw", f"Σ_k β{n}_jk v_k", (HEAD, SOURCE, UNIT)),
        "enc_self_c.l": Legend(f"a{n}_j", "self-attention", f"W_o [all heads' r{n}_j] + b", (SOURCE, UNIT)),
        "enc_ff.l": Legend(f"f{n}_j", "feed-forward layer", _feed_forward(options), (SOURCE, UNIT)),
        "h.l": Legend(f"h{n}_j", "what an encoder layer gives", residual, (SOURCE, UNIT)),
        "h": Legend("h_j", "the encoder's states", f"LN({top})" if pre else top, (SOURCE, UNIT)),
        "keys.l": Legend(f"k{n}_j", "the source's keys for a decoder layer", "W_k h_j", (HEAD, SOURCE, UNIT)),
        "values.l": Legend(f"v{n}_j", "the source's values for a decoder layer", "W_v h_j + b", (HEAD, SOURCE, UNIT)),
    }


def _feed_forward(options: ModelConfig) -> str:
    inner = "W_1 · + b_1"
    return f"W_2 {f'max(0, {inner})' if options.activation == 'relu' else f'{options.activation}({inner})'} + b_2"


def _transformer_step(options: ModelConfig, i: Index) -> Entries:
    t, n, pre = i.t, i.level, options.norm == "pre"
    read = f"s{i.below}_{t}" if i.layer > 1 else f"y_{i.p}"
    parts = (f"a{n}_{t}", f"c{n}_{t}", f"f{n}_{t}")
    residual = f"{read} + {' + '.join(parts)}"
    if not pre:
        residual = "LN(LN(LN({} + {}) + {}) + {})".format(read, *parts)
    back, over = i.tj[:-1] + "k", i.tj
    top = f"s{_level(options.dec_layers)}_{t}" if i.several else f"s_{t} of the last layer"
    last = f"α{_level(options.dec_layers) if i.several else ''}_{over}"
    return {
        "y": Legend(
            f"y_{i.p}", "embedding of the previous token with its place", f"E[output token {i.p}] √d + PE", (UNIT,)
        ),
        "self_e.l": Legend(f"u{n}_{back}", "scores with the tokens so far", f"q_{t}ᵀ k_k / √d_k", (HEAD, POSITION)),
        "self_alpha.l": Legend(
            f"β{n}_{back}", "weights over the tokens so far", f"softmax over k of u{n}_{back}", (HEAD, POSITION)
        ),
        "self_heads.l": Legend(f"r{n}_{t}", "what each head saw of them", f"Σ_k β{n}_{back} v_k", (HEAD, UNIT)),
        "self_c.l": Legend(parts[0], "self-attention", f"W_o [all heads' r{n}_{t}] + b", (UNIT,)),
        "e.l": Legend(f"e{n}_{over}", "scores with the source", f"q_{t}ᵀ k{n}_j / √d_k", (HEAD, SOURCE)),
        "alpha.l": Legend(f"α{n}_{over}", "attention weights", f"softmax over j of e{n}_{over}", (HEAD, SOURCE)),
        "heads.l": Legend(f"z{n}_{t}", "what each head saw of the source", f"Σ_j α{n}_{over} v{n}_j", (HEAD, UNIT)),
        "c.l": Legend(parts[1], "the context", f"W_o [all heads' z{n}_{t}] + b", (UNIT,)),
        "ff.l": Legend(parts[2], "feed-forward layer", _feed_forward(options), (UNIT,)),
        "s.l": Legend(f"s{n}_{t}", "what a decoder layer gives", residual, (UNIT,)),
        "s": Legend(f"s_{t}", "what the output layer reads", f"LN({top})" if pre else top, (UNIT,)),
        "alpha": Legend(f"α_{over}", "attention weights, for maps", f"mean over the heads of {last}", (SOURCE,)),
    }
