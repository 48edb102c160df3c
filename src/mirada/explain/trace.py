"""Every number of one sentence: the search's path is made again, step by step, and the model tells all it computes.

What a trace holds, and its JSON: record.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import BOS, EOS
from mirada.errors import ConfigError, DataError
from mirada.explain.edits import Edits, check_model, check_range, edited, normal
from mirada.explain.legend import legend
from mirada.explain.record import BEGUN, WHOLE, Choice, Moment, Named, Output, Source, Token, Trace, plain
from mirada.search.scheduler import Request, search_all, with_end
from mirada.search.step import penalty, producible
from mirada.translator import END, Translator

__all__ = ["Trace", "plain", "read_source", "trace"]


class Path(NamedTuple):
    """The tokens of an output, </s> included where it ends, and how many of them were given."""

    ids: tuple[int, ...]
    given: int


class Setting(NamedTuple):
    """What the outputs of a text have in common."""

    translator: Translator
    model: Any  # the translator's, perhaps edited
    source: Source
    method: str
    edits: Edits | None
    alpha: float
    top_k: int


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
    given = translator.target_tokenizer.encode([reference or prefix or ""])[0]

    def paths(model: Any) -> list[Path]:
        if reference is not None:
            return [Path((*given, EOS), len(given) + 1)]
        return _found(model, Request(list(source.ids), given, 0), options, translator.device)

    model, settings = translator.model, translator.config.model
    if edits is not None:
        edits = normal(edits)
        check_model(edits, settings)
        check_range(edits, len(source.ids), max(len(path.ids) for path in paths(model)))
        model = edited(model, edits, settings)
    method = _method(options, whole=reference is not None, begun=bool(given))
    setting = Setting(translator, model, source, method, edits, options.alpha, top_k)
    return [_trace(setting, path, rank) for rank, path in enumerate(paths(model), start=1)]


def read_source(translator: Translator, text: str, most: int) -> Source:
    """Cut a text into tokens, at most `most` and </s>. Raises DataError if there are none."""
    pieces = translator.source_tokenizer.pieces([text])[0]
    if not pieces:
        raise DataError("the text is empty, so there is nothing to look into; give a sentence")
    if len(pieces) > most:
        translator.warn(f"{len(pieces)} source tokens, cut to max_input_length {most}")
    pieces = pieces[:most]
    ids = tuple(with_end([piece.id for piece in pieces], most))
    return Source(text, (*(piece.text for piece in pieces), END), ids, (*(piece.word for piece in pieces), None))


def _method(options: SearchConfig, *, whole: bool, begun: bool) -> str:
    """How the output was found, and the α of its score."""
    found = "greedy" if options.beam_size == 1 else f"beam search, {options.beam_size} hypotheses"
    chosen = ("sampling" if options.sample else found) + (f", {BEGUN}" if begun else "")
    return f"{WHOLE if whole else chosen}, alpha {options.alpha}"


def _found(model: Any, request: Request, options: SearchConfig, device: torch.device) -> list[Path]:
    outputs = search_all(model, [request], options, batch_size=1, device=device)[0]
    return [Path((*output.tokens, *[EOS] * output.finished), len(request.prefix)) for output in outputs]


def _trace(setting: Setting, path: Path, rank: int) -> Trace:
    """Go along a path, listening."""
    options = setting.translator.config.model
    encoder: Named = {}
    start: Named = {}
    with torch.inference_mode():
        ids = torch.tensor([setting.source.ids], device=setting.translator.device)
        memory = setting.model.encode(ids, torch.tensor([ids.size(1)], device=ids.device), note=_ear(encoder))
        state = setting.model.start(memory, note=_ear(start))
        steps = tuple(_moments(setting, path, memory, state))
    names = [*encoder, *start, *(name for step in steps[:1] for name in step.tensors)]
    looks = [step.tensors["alpha"] for step in steps if "alpha" in step.tensors]
    return Trace(
        options,
        setting.method,
        rank,
        setting.edits,
        legend(options, names),
        setting.source,
        encoder,
        start,
        steps,
        _output(setting, path, steps),
        np.stack(looks) if looks else None,
    )


def _moments(setting: Setting, path: Path, memory: Any, state: Any) -> Iterator[Moment]:
    tokenizer = setting.translator.target_tokenizer
    for number, (previous, chosen) in enumerate(zip((BOS, *path.ids), path.ids, strict=False), start=1):
        tensors: Named = {}
        token = torch.tensor([previous], device=setting.translator.device)
        step = setting.model.step(token, state, memory, note=_ear(tensors))
        state = step.state
        log_p = producible(step.logits)[0].log_softmax(0)  # [V]
        best = log_p.topk(min(setting.top_k, len(log_p) - 2)).indices.tolist()  # two are never produced
        choices = [
            Choice(i, tokenizer.token(i), float(log_p[i].exp()), float(log_p[i]), i == chosen) for i in (*best, chosen)
        ]
        before, given = Token(previous, tokenizer.token(previous)), number <= path.given
        yield Moment(number, before, given, tensors, _array(step.logits), tuple(choices[:-1]), choices[-1])


def _output(setting: Setting, path: Path, steps: Sequence[Moment]) -> Output:
    tokenizer, finished = setting.translator.target_tokenizer, path.ids[-1] == EOS
    tokens = [step.chosen.token for step in steps]
    words = tokenizer.words(tokens[: len(tokens) - finished])
    log_p, divisor = fsum(step.chosen.log_probability for step in steps), penalty(float(len(steps)), setting.alpha)
    return Output(
        tokenizer.decode(path.ids),
        tuple(tokens),
        path.ids,
        (*words, *[None] * finished),
        finished,
        log_p,
        setting.alpha,
        divisor,
        log_p / divisor,
    )


def _ear(heard: Named) -> Callable[[str, Tensor], None]:
    """A note that keeps the only sentence's arrays by name."""

    def note(name: str, tensor: Tensor) -> None:
        heard[name] = _array(tensor)

    return note


def _array(tensor: Tensor) -> np.ndarray:
    """The first row, in float32 at least."""
    return tensor[0].to(torch.promote_types(tensor.dtype, torch.float32)).cpu().numpy()
