"""Greedy choice and random choice on NumPy arrays: search/sampling.py's, with the same random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mirada.config.options import SearchConfig
from mirada.data.vocabulary import BOS, EOS
from mirada.runtime.engine import Batch, Wanted
from mirada.runtime.rules import Output, Rules, allowed, output, ranked, taken, there

SEED_STRIDE = 1_000_003
Choose = Callable[[np.ndarray, np.ndarray, int], np.ndarray]  # choices [N, V], sentences [A] and age give tokens [N]
Taken = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # sentences [A], tokens, their log-probabilities
# [A, K] and the attention [A, K, S] of one step


def greedy(batch: Batch, rules: Rules, options: SearchConfig, *, with_attention: bool) -> list[list[Output]]:
    """Follow the likeliest token of every step: one output a sentence."""

    def likeliest(choice: np.ndarray, _sentences: np.ndarray, _age: int) -> np.ndarray:
        tokens: np.ndarray = choice.argmax(1)
        return tokens

    return _follow(batch, rules, options, 1, likeliest, with_attention=with_attention)


def sample(
    batch: Batch, rules: Rules, options: SearchConfig, numbers: Sequence[int], *, with_attention: bool
) -> list[list[Output]]:
    """Draw `n_best` outputs a sentence; `numbers` `B` tell sentences apart, so that a batch changes nothing."""
    outputs = options.n_best
    seeds = [options.sample_seed + SEED_STRIDE * number for number in numbers]
    drawn = np.stack([uniforms(seed, int(rules.limits.max()) + 1, outputs) for seed in seeds])  # [B, T, n]

    def choose(choice: np.ndarray, sentences: np.ndarray, age: int) -> np.ndarray:
        return draw(choice, drawn[sentences, age].ravel(), options)

    return _follow(batch, rules, options, outputs, choose, with_attention=with_attention)


def uniforms(seed: int, steps: int, outputs: int) -> np.ndarray:
    """What `torch.rand(steps, outputs, dtype=float64)` draws from a CPU generator of this seed: `[T, n]`.

    Both are MT19937 seeded by the lower 32 bits; a number has 53 bits, of two draws the first on top.
    """
    raw = np.random.RandomState(seed % 2**63 & 0xFFFFFFFF)._bit_generator.random_raw(2 * steps * outputs)
    high, low = raw.reshape(-1, 2).T.astype(np.uint64)
    return (((high << np.uint64(32) | low) & np.uint64(2**53 - 1)) * 2.0**-53).reshape(steps, outputs)


def draw(choice: np.ndarray, numbers: np.ndarray, options: SearchConfig) -> np.ndarray:
    """Turn numbers from [0, 1) `[N]` into tokens `[N]`: the inverse of the distribution that the options shape.

    The temperature comes first, then `top_k`, then `top_p` of what is left; ids are added up in their own order.
    """
    shifted = (choice - choice.max(1, keepdims=True)).astype(np.float64) / options.temperature
    powers = np.exp(shifted - shifted.max(1, keepdims=True))
    probabilities = truncated(powers / powers.sum(1, keepdims=True), options.top_k, options.top_p)
    cumulative = probabilities.cumsum(1)
    total = cumulative[:, -1]
    goal = np.minimum(numbers * total, np.nextafter(total, 0))
    tokens: np.ndarray = ((probabilities > 0) & (cumulative > goal[:, None])).argmax(1)
    return tokens


def truncated(probabilities: np.ndarray, top_k: int, top_p: float) -> np.ndarray:
    """Set to 0 what is not among the `top_k` likeliest (0: all), then what the nucleus of `top_p` leaves out."""
    if 0 < top_k < probabilities.shape[1]:
        index = np.argsort(-probabilities, axis=1, kind="stable")[:, :top_k]
        kept = np.zeros_like(probabilities)
        np.put_along_axis(kept, index, np.take_along_axis(probabilities, index, 1), 1)
        probabilities = kept
    if top_p < 1:
        index = np.argsort(-probabilities, axis=1, kind="stable")
        ordered = np.take_along_axis(probabilities, index, 1)
        outside = ordered.cumsum(1) - ordered >= top_p * ordered.sum(1, keepdims=True)
        kept = np.zeros_like(probabilities)
        np.put_along_axis(kept, index, np.where(outside, 0, ordered), 1)
        probabilities = kept
    return probabilities


def _follow(
    batch: Batch, rules: Rules, options: SearchConfig, outputs: int, choose: Choose, *, with_attention: bool
) -> list[list[Output]]:
    """Step until every path has ended or, with `limit` tokens, does not end now."""
    count, age, steps = len(rules.limits), 0, list[Taken]()
    sentences, rows = np.arange(count), np.repeat(np.arange(count), outputs)
    tokens, done = np.full((count, outputs), BOS), np.zeros((count, outputs), bool)
    history = np.empty((count * outputs, 0), np.int64)
    found: list[list[Output]] = [[] for _ in rules.limits]
    while len(sentences):
        acts = rules.act(age)
        step = batch.step(tokens.ravel(), rows, Wanted(0 if acts or options.sample else 1, with_attention))
        if step.best is not None and step.tokens is not None:
            chosen, log_p = step.tokens[:, 0], step.best
        else:
            own = there(step.log_probabilities)
            chosen = choose(allowed(own, rules, age, history) if acts else own, sentences, age)
            log_p = taken(own, chosen[:, None])
        tokens, log_p = chosen.reshape(-1, outputs), log_p.reshape(-1, outputs)
        attention = None if step.attention is None else step.attention.reshape(len(tokens), outputs, -1)
        steps.append((sentences, tokens, log_p, attention))
        history, done = np.concatenate([history, chosen[:, None]], 1), done | (tokens == EOS)
        finished, age = done.all(1) | (rules.limits <= age), age + 1
        for sentence in sentences[finished]:
            found[sentence] = ranked([_path(steps, sentence, place, options.alpha) for place in range(outputs)])
        rows = np.arange(tokens.size)
        if finished.any():
            stay = (~finished).nonzero()[0]
            rows = rows.reshape(-1, outputs)[stay].ravel()
            sentences, tokens, done, history = sentences[stay], tokens[stay], done[stay], history[rows]
            rules = rules.of(stay)
            batch.keep(stay)
    return found


def _path(steps: list[Taken], sentence: int, place: int, alpha: float) -> Output:
    """One of a sentence's paths, to its </s>; without one it ends before the last step, which was for </s> only."""
    trail = [(step, int(np.searchsorted(step[0], sentence))) for step in steps]
    tokens = [int(step[1][row, place]) for step, row in trail]
    length = tokens.index(EOS) + 1 if EOS in tokens else len(tokens) - 1
    log_p = [float(step[2][row, place]) for step, row in trail[:length]]
    attention = [step[3][row, place] for step, row in trail[:length] if step[3] is not None]
    return output(tokens[:length], log_p, attention, alpha)
