"""One sentence as it is written: each step's token, its probability and where the model looked."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp
from typing import TYPE_CHECKING, Any

import torch

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import BOS, EOS
from mirada.explain.trace import begun, read_source
from mirada.search.step import producible

if TYPE_CHECKING:
    from mirada.explain.record import Source
    from mirada.translator import Translator

Step = tuple[str, dict[str, Any]]


def sentence_steps(translator: Translator, text: str, *, prefix: str, options: SearchConfig) -> Iterator[Step]:
    """First `source`, then `step` for each step, at last `done` with the text.

    With greedy search each step is told as soon as it is made; a beam search decides at its end, and then tells all.
    Raises DataError for a text without tokens.
    """
    source = read_source(translator, text, options.max_input_length)
    yield "source", {"tokens": source.tokens, "words": source.words}
    plain = options.min_output_length == 0 and options.no_repeat_ngram_size == 0 and not options.replace_unk
    live = options.beam_size == 1 and not options.sample and plain and not translator.config.model.copy_attn
    given = begun(translator, source, prefix, options)
    if live:
        yield from _greedy(translator, source, given, options)
    else:
        yield from _found(translator, text, prefix, len(given), options)


def _greedy(translator: Translator, source: Source, given: tuple[int, ...], options: SearchConfig) -> Iterator[Step]:
    """Choose the likeliest token at each step, as the search does."""
    from mirada.texts import output_limit

    model, tokenizer = translator.model, translator.target_tokenizer
    limit = max(output_limit(len(source.ids) - 1, options), len(given))
    written: list[int] = []
    with torch.inference_mode():
        ids = torch.tensor([source.ids], device=translator.device)
        memory: Any = model.encode(ids, torch.tensor([len(source.ids)], device=translator.device))
        state: Any = model.start(memory)
        while len(written) < limit and (not written or written[-1] != EOS):
            token = torch.tensor([written[-1] if written else BOS], device=translator.device)
            step = model.step(token, state, memory)
            state = step.state
            log_p = producible(step.logits)[0].log_softmax(0)  # [V]
            number = len(written)
            written.append(given[number] if number < len(given) else int(log_p.argmax()))
            row = None if step.attention is None else step.attention[0, : len(source.ids)].tolist()
            log_probability = float(log_p[written[-1]])
            yield "step", _step(tokenizer.token(written[-1]), log_probability, row, forced=number < len(given))
    finished = written[-1] == EOS
    tokens = [tokenizer.token(one) for one in written[: len(written) - finished]]
    yield "done", {"text": tokenizer.join(tokens), "finished": finished}


def _found(translator: Translator, text: str, prefix: str, given: int, options: SearchConfig) -> Iterator[Step]:
    attends = translator.config.model.has_attention
    found = translator.search([text], options=options, prefixes=[prefix], with_attention=attends)[0][0]
    rows = [None] * len(found.tokens) if found.attention is None else found.attention.tolist()
    for number, (token, log_p, row) in enumerate(zip(found.tokens, found.token_log_probabilities, rows, strict=True)):
        yield "step", _step(token, log_p, row, forced=number < given)
    yield "done", {"text": found.text, "finished": found.finished}


def _step(token: str, log_probability: float, attention: list[float] | None, *, forced: bool) -> dict[str, Any]:
    weights = None if attention is None else [round(weight, 6) for weight in attention]
    return {"token": token, "probability": round(exp(log_probability), 6), "attention": weights, "forced": forced}
