"""Every number of one sentence: the search's path is made again, step by step, and the model tells all it computes.

`plain` turns a trace into what the JSON file holds; a file is {"format": "mirada-trace", "version": 1, "traces": […]}.
Field names below are the keys of the file, arrays are nested lists of numbers with nine significant digits (which is
exact for float32). Tensors stand by name in the order of the system's own flow; `legend` says of each name its symbol,
equation and what its axes are. Layers, heads, steps and source tokens are counted from 1.

    recurrent encoder    x, then for each layer h.l, final.l, final_cell.l (LSTM); h, keys
    recurrent start      (c of Cho), s.l, cell.l (LSTM)
    classic step         y, s_prev, s.l, cell.l, (maxout)
    bahdanau step        y, s_prev, e, alpha, c, s.l, cell.l, (maxout)
    luong step           y, s_prev, (s_tilde_prev), s.l, cell.l, e, alpha, c, s_tilde
    transformer encoder  x, then for each layer enc_self_e.l, enc_self_alpha.l, enc_self_heads.l, enc_self_c.l,
                         enc_ff.l, h.l; h, then for each decoder layer keys.l, values.l
    transformer step     y, then for each layer self_e.l, self_alpha.l, self_heads.l, self_c.l, e.l, alpha.l, heads.l,
                         c.l, ff.l, s.l; s, alpha (the mean over the last layer's heads)

With an attention edit, e is the model's own score and alpha the weights put in place of its softmax.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mirada.config import ModelConfig, SearchConfig
from mirada.data.vocabulary import BOS, EOS
from mirada.decoding import penalty, producible
from mirada.errors import ConfigError, DataError
from mirada.explain.edits import Edits, check_model, check_range, edited
from mirada.explain.legend import Legend, legend
from mirada.inference import Request, search_all, with_end
from mirada.translator import END, Translator

FORMAT, VERSION = "mirada-trace", 1
Named = dict[str, np.ndarray]


class Token(NamedTuple):
    """A vocabulary entry."""

    id: int
    token: str


class Choice(NamedTuple):
    """A next token and the model's natural log-probability of it; <pad> and <s> have none and are never choices."""

    id: int
    token: str
    probability: float
    log_probability: float
    chosen: bool


class Source(NamedTuple):
    """What was read."""

    text: str
    tokens: tuple[str, ...]  # with </s>
    ids: tuple[int, ...]
    words: tuple[int | None, ...]  # the word each token belongs to; None for </s>


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
    previous: Token  # y_{t-1}
    forced: bool  # the token was given, not chosen
    tensors: Named
    logits: np.ndarray  # [V]
    top: tuple[Choice, ...]  # likeliest first
    chosen: Choice


class Trace(NamedTuple):
    """One output of one text."""

    model: dict[str, Any]  # its options
    method: str  # how the output was found
    rank: int  # among the outputs of this text, from 1
    edits: Edits | None
    legend: dict[str, Legend]
    source: Source
    encoder: Named
    start: Named
    steps: tuple[Moment, ...]
    output: Output
    attention: np.ndarray | None  # [steps, source tokens]; None for classic


class Path(NamedTuple):
    """The tokens of an output, </s> included where it ends, and how many of them were given."""

    ids: tuple[int, ...]
    given: int


def trace(
    translator: Translator,
    text: str,
    *,
    options: SearchConfig,
    reference: str | None = None,
    prefix: str | None = None,
    edits: Edits | None = None,
    top_k: int = 5,
) -> list[Trace]:
    """Trace the `n_best` outputs of a text, best first; or the `reference`, or what follows a forced `prefix`.

    Raises DataError for a text without tokens, ConfigError for edits that this model or sentence does not allow.
    `replace_unk` does nothing here: the model's own choices are shown.
    """
    if reference is not None and prefix is not None:
        raise ConfigError("--reference and --force exclude each other: one gives the whole output, one its beginning")
    source = read_source(translator, text, options.max_input_length)
    model, settings = translator.model, translator.config.model
    if edits is not None:
        check_model(edits, settings)
        longest = max(len(path.ids) for path in _paths(translator, model, source, options, reference, prefix))
        check_range(edits, len(source.ids), longest)
        model = edited(model, edits, settings)
    paths = _paths(translator, model, source, options, reference, prefix)
    method = _method(options, reference is not None, prefix is not None)
    return [
        _trace(translator, model, source, path, top_k)._replace(
            method=method, rank=rank, edits=edits
        )
        for rank, path in enumerate(paths, 1)
    ]
