"""What the searches share: the rules about tokens, and outputs as they are read back.

The same rules as search/step.py, on NumPy arrays; tests hold the two together. Letters for shapes: `B` sentences, `A`
still searched, `K` hypotheses a sentence, `N` = `A` × `K` rows, `V` vocabulary, `S` source positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, inf
from typing import NamedTuple

import numpy as np

from mirada.config.options import SearchConfig
from mirada.data.beginnings import Rest
from mirada.data.vocabulary import EOS, PAD

SOON_SORTED = 256  # numbers of a row that are sorted sooner than parted


class Rules(NamedTuple):
    """How long outputs may become and which tokens may come next."""

    limits: np.ndarray  # [B] most tokens of each output, </s> not counted
    prefix: np.ndarray  # [B, P] tokens that each output must start with, padded at the right
    prefix_lengths: np.ndarray  # [B]
    min_length: int  # fewest tokens before </s>
    ngram_size: int  # no n-gram of this size comes twice; 0: no such rule
    rests: tuple[Rest | None, ...]  # [B] what the tokens after the prefix must spell

    @property
    def need_history(self) -> bool:
        """Whether all tokens of an output decide which may come next."""
        return self.ngram_size > 0 or any(self.rests)

    def of(self, places: np.ndarray) -> Rules:
        """The rules of some of the sentences."""
        return self._replace(
            limits=self.limits[places],
            prefix=self.prefix[places],
            prefix_lengths=self.prefix_lengths[places],
            rests=tuple(self.rests[place] for place in places),
        )

    def act(self, age: int) -> bool:
        """Whether any of them limits the choice of the step that has `age` tokens behind it."""
        lengths = self.prefix_lengths + [len(rest.text) if rest else 0 for rest in self.rests]
        return bool(age < self.min_length or self.ngram_size or (lengths > age).any())


@dataclass(frozen=True)
class Output:
    """One output as ids. Log-probabilities are natural and the model's own, whatever rules limited the choice."""

    tokens: tuple[int, ...]  # without </s>
    log_probability: float  # sum over the tokens, and </s> when finished
    score: float  # log_probability / ((5 + n) / 6)^α, where n counts the tokens, and </s> when finished
    token_log_probabilities: tuple[float, ...]  # one a token, and one for </s> when finished
    finished: bool  # </s> was produced
    attention: np.ndarray | None = field(default=None, compare=False)  # [n, S]


def rules_of(
    prefixes: Sequence[Sequence[int]], rests: Sequence[Rest | None], limits: Sequence[int], options: SearchConfig
) -> Rules:
    """Lay out what is asked of each sentence; a beginning longer than its limit raises that limit to its length."""
    lengths = np.array([len(prefix) for prefix in prefixes])
    prefix = np.full((len(prefixes), int(lengths.max())), PAD, np.int64)
    for row, ids in zip(prefix, prefixes, strict=True):
        row[: len(ids)] = ids
    most = np.maximum(np.array(limits), lengths + [len(rest.text) if rest else 0 for rest in rests])
    return Rules(most, prefix, lengths, options.min_output_length, options.no_repeat_ngram_size, tuple(rests))


def penalty(length: float | np.ndarray, alpha: float) -> float | np.ndarray:
    """Length penalty ((5 + n) / 6)^α (Wu et al. 2016, section 7, equation 14)."""
    result: float | np.ndarray = ((5 + length) / 6) ** alpha
    return result


def allowed(log_p: np.ndarray, rules: Rules, age: int, history: np.ndarray | None) -> np.ndarray:
    """Put −inf on the tokens that may not come next, of log-probabilities `[N, V]`; the others keep theirs.

    `history` `[N, t]` holds the tokens so far. Where every token is forbidden, </s> is allowed.
    """
    choice, count = log_p.copy(), len(log_p) // len(rules.limits)
    if age < rules.min_length:
        choice[:, EOS] = -inf
    if history is not None and rules.ngram_size:
        choice[repeats(history, rules.ngram_size, log_p.shape[1])] = -inf
    stuck = choice.max(1) == -inf
    choice[stuck, EOS] = log_p[stuck, EOS]
    inside = np.repeat(rules.prefix_lengths > age, count)  # [N]
    if inside.any():
        token = np.repeat(rules.prefix[:, min(age, rules.prefix.shape[1] - 1)], count)[inside]
        choice[inside] = -inf
        choice[inside, token] = log_p[inside, token]
    if history is not None and any(rules.rests):
        _spell(choice, log_p, rules, age, history)
    return choice


def _spell(choice: np.ndarray, log_p: np.ndarray, rules: Rules, age: int, history: np.ndarray) -> None:
    """Leave only the tokens that spell the rest of its beginning to each row that is inside it."""
    count = len(log_p) // len(rules.limits)
    for row in range(len(log_p)):
        rest, made = rules.rests[row // count], age - int(rules.prefix_lengths[row // count])
        if rest is None or not 0 <= made < len(rest.text):
            continue
        if left := rest.spelling.left(rest.text, history[row, history.shape[1] - made :].tolist()):
            index = list(rest.spelling.next(left))
            choice[row] = -inf
            choice[row, index] = log_p[row, index]


def repeats(history: np.ndarray, size: int, vocabulary: int) -> np.ndarray:
    """Mark the tokens that would complete an n-gram already in `history` `[N, t]`: `[N, V]` bool."""
    marks = np.zeros((len(history), vocabulary), bool)
    start = history.shape[1] - size + 1
    for first in range(start):
        same = (history[:, first : first + size - 1] == history[:, start:]).all(1)
        marks[same, history[same, first + size - 1]] = True
    return marks


def there(values: np.ndarray | None) -> np.ndarray:
    """All log-probabilities, where a step was asked for them."""
    if values is None:
        raise TypeError("the step gave neither its best continuations nor all log-probabilities")
    return values


def largest(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The `count` largest of every row of `[N, V]`, largest first, and their columns: two arrays `[N, count]`."""
    columns = values.shape[1]
    places = np.argpartition(values, -count, axis=1)[:, -count:] if count < columns and columns > SOON_SORTED else None
    some = values if places is None else taken(values, places)
    order = np.argsort(-some, axis=1, kind="stable")[:, :count]
    return taken(some, order), order if places is None else taken(places, order)


def taken(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The columns `[N, C]` of every row of `[N, …]`; np.take_along_axis without its care, for steps make many."""
    return np.asarray(values[np.arange(len(values))[:, None], index])


def output(tokens: list[int], log_p: list[float], attention: list[np.ndarray], alpha: float) -> Output:
    """An output from its steps: tokens, </s> included where it was produced, and the attention `[S]` of each."""
    finished, total = bool(tokens) and tokens[-1] == EOS, fsum(log_p)
    return Output(
        tokens=tuple(tokens[:-1] if finished else tokens),
        log_probability=total,
        score=float(total / penalty(len(tokens), alpha)),
        token_log_probabilities=tuple(log_p),
        finished=finished,
        attention=np.stack(attention) if attention else None,
    )


def ranked(outputs: list[Output]) -> list[Output]:
    """Best first: finished ones before unfinished ones, then by score."""
    return sorted(outputs, key=lambda one: (not one.finished, -one.score))
