"""What a trace holds: every number of one output of one sentence, as named tuples, and as JSON.

`plain` turns a trace into what the JSON file holds; a file is
{"format": "mirada-trace", "version": 3, "fingerprint": "…", "traces": […]}.
Field names below are the keys of the file, arrays are nested lists of numbers with nine significant digits; the
`fingerprint` is that of the traces as they were written. Tensors stand by name in the order of the system's own flow;
`legend` says of each name its symbol, equation and what its axes are. Layers, heads, steps and source tokens are
counted from 1.

    recurrent encoder    x, then for each layer h.l, final.l, final_cell.l (LSTM); h, keys
    recurrent start      (c of Cho), s_0.l, cell_0.l (LSTM)
    classic step         y, s_prev, s.l, cell.l, (maxout)
    bahdanau step        y, s_prev, e, alpha, c, s.l, cell.l, (maxout)
    luong step           y, s_prev, (s_tilde_prev), s.l, cell.l, e, alpha, c, s_tilde
    transformer encoder  x, then for each layer enc_self_e.l, enc_self_alpha.l, enc_self_heads.l, enc_self_c.l,
                         enc_ff.l, h.l; h, then for each decoder layer keys.l, values.l
    transformer step     y, then for each layer self_e.l, self_alpha.l, self_heads.l, self_c.l, e.l, alpha.l, heads.l,
                         c.l, ff.l, s.l; s, alpha (the mean over the last layer's heads)
    with coverage        coverage before e; coverage_loss after c
    with a window        middle, (gaussian of local-p) before alpha
    with copying         (copy_context of the Transformer), p_gen, copy, p (over vocabulary and source) at the end

With an attention edit, e is the model's own score and alpha the weights put in place of its softmax.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mirada.config.options import ModelConfig, SearchConfig
from mirada.explain.edits import Edits
from mirada.explain.legend import Legend

FORMAT, VERSION = "mirada-trace", 3
Named = dict[str, np.ndarray]


class Asked(NamedTuple):
    """What was asked of a text: all that an output and its numbers follow from, the model apart."""

    search: SearchConfig
    given: tuple[int, ...] = ()  # ids that the output begins with
    whole: bool = False  # they are all of it, without </s>
    edits: Edits | None = None
    listed: int = 5  # choices at each step


class Entry(NamedTuple):
    """A vocabulary entry."""

    id: int
    token: str


class NextToken(NamedTuple):
    """A next token and the model's natural log-probability of it; <pad> and <s> have none and are never choices."""

    id: int
    token: str
    probability: float
    log_probability: float
    chosen: bool
    # Of a model that copies: probability = p_gen · vocabulary + (1 − p_gen) · copied.
    vocabulary: float | None = None
    copied: float | None = None


class Source(NamedTuple):
    """What was read."""

    text: str
    tokens: tuple[str, ...]  # with </s>
    ids: tuple[int, ...]
    words: tuple[int | None, ...]  # the word each token belongs to; None for </s>
    copies: tuple[int, ...] = ()  # what each token would write, of a model that copies: ids from V on are the source's


class Output(NamedTuple):
    """What was written; score = log_probability / penalty, penalty = ((5 + n) / 6)^alpha for n steps."""

    text: str
    tokens: tuple[str, ...]  # with </s> where it was produced
    ids: tuple[int, ...]
    words: tuple[int | None, ...]
    finished: bool
    log_probability: float
    alpha: float
    penalty: float
    score: float


class Moment(NamedTuple):
    """One decoder step."""

    step: int  # from 1
    previous: Entry  # y_{t-1}
    given: bool  # the token was given, not chosen
    tensors: Named
    logits: np.ndarray  # [V]
    top: tuple[NextToken, ...]  # likeliest first
    chosen: NextToken


class Trace(NamedTuple):
    """One output of one text."""

    model: ModelConfig
    asked: Asked
    method: str  # how the output was found, in words
    rank: int  # among the outputs of this text, from 1
    legend: dict[str, Legend]
    source: Source
    encoder: Named
    start: Named
    steps: tuple[Moment, ...]
    output: Output
    attention: np.ndarray | None  # [steps, source tokens]; None for classic

    @property
    def edits(self) -> Edits | None:
        """What was changed in the model."""
        return self.asked.edits


def method(asked: Asked) -> str:
    """How an output was found, and the α of its score, in words."""
    search = asked.search
    found = "greedy" if search.beam_size == 1 else f"beam search, {search.beam_size} hypotheses"
    chosen = ("sampling" if search.sample else found) + (", after a given beginning" if asked.given else "")
    return f"{'given output' if asked.whole else chosen}, alpha {search.alpha}"


def plain(value: Any) -> Any:
    """What JSON can hold: named tuples as objects, arrays and tuples as lists, numbers with nine digits."""
    if isinstance(value, ModelConfig):
        value = resolved(value)
    elif isinstance(value, SearchConfig):
        value = value.model_dump(mode="json")
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    elif isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def resolved(options: ModelConfig) -> dict[str, Any]:
    """A model's options as values, with those in force where the paper's own were left to be."""
    values = {**options.model_dump(), "score": options.score_name}
    if options.decoder != "transformer":
        values["bidirectional"] = options.both_directions
    if options.decoder == "luong":
        values["input_feeding"] = options.feeds_input
    return values


def document(traces: Sequence[Trace]) -> str:
    """The JSON file of some traces, one line a trace."""
    return as_file([plain(one) for one in traces])


def as_file(content: Sequence[dict[str, Any]]) -> str:
    """The same of traces as `plain` gives them."""
    lines = ",\n".join(json.dumps(one, ensure_ascii=False, allow_nan=False) for one in content)
    head = f'"format": "{FORMAT}", "version": {VERSION}, "fingerprint": "{fingerprint(content)}"'
    return f'{{{head}, "traces": [\n{lines}\n]}}\n'


def fingerprint(traces: Any) -> str:
    """SHA-256 of traces as values, however they are laid out in a file."""
    text = json.dumps(traces, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
