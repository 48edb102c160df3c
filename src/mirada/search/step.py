"""What greedy choice, beam search and sampling share: the step function, the rules about tokens, the paths they return.

Letters for shapes: `B` sentences of the batch, `A` sentences still searched, `K` hypotheses a sentence, `N` = `A` × `K`
rows of a step (the rows of a sentence are neighbours), `V` vocabulary, `S` source positions, `T` steps, `n` outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, inf
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from mirada.data.beginnings import Spelling
from mirada.data.vocabulary import EOS, NEVER_WRITTEN, PAD
from mirada.devices import synchronous

BLOCK = 64
FEW = 1 << 14  # numbers that are looked through one by one as fast
Length = TypeVar("Length", float, Tensor)


class StepResult(Protocol):
    """What a search reads of one decoder step."""

    @property
    def logits(self) -> Tensor:
        """Scores of the next token before the softmax, `[N, V]`."""

    @property
    def state(self) -> Any:
        """The decoder's next state: a tree of tensors `[N, …]`."""

    @property
    def attention(self) -> Tensor | None:
        """Attention weights `[N, S]`, or None for a decoder without."""


class StepFunction(Protocol):
    """One decoder step: row i of the `N` previous tokens belongs to row i // (N / A) of the memory."""

    def __call__(self, token: Tensor, state: Any, memory: Any, /) -> StepResult:
        """Take the tokens `[N]`, the state (a tree of `[N, …]`) and the memory (a tree of `[A, …]`)."""


class Rules(NamedTuple):
    """How long outputs may become and which tokens may come next, for each of `A` sentences."""

    limits: Tensor  # [A] most tokens of each output, </s> not counted
    prefix: Tensor  # [A, P] tokens that each output must start with, padded at the right
    prefix_lengths: Tensor  # [A]
    shortest_prefix: int  # of those that came together
    min_length: int  # fewest tokens before </s>
    ngram_size: int  # no n-gram of this size comes twice; 0: no such rule
    rests: Tensor  # [A, R] characters that the tokens after the prefix must spell; what is below 2 is none
    spelling: Spelling | None  # by which they do, if any does

    @property
    def need_history(self) -> bool:
        """Whether all tokens of an output decide which may come next."""
        return self.ngram_size > 0 or self.spelling is not None


# What the steps of one sentence left behind, from its first on: the record of each step and the sentence's row in it.
Trail = list[tuple[Any, int]]


@dataclass(frozen=True)
class Hypothesis:
    """One output. Log-probabilities are natural and the model's own, whatever rules limited the choice."""

    tokens: tuple[int, ...]  # without </s>
    log_probability: float  # sum over the tokens, and </s> when finished
    score: float  # log_probability / ((5 + n) / 6)^α, where n counts the tokens, and </s> when finished
    token_log_probabilities: tuple[float, ...]  # one a token, and one for </s> when finished
    finished: bool  # </s> was produced
    attention: Tensor | None = field(default=None, compare=False)  # [n, S] the rows of exactly these steps


def hypothesis(
    tokens: Sequence[int], log_probabilities: Sequence[float], attention: Sequence[np.ndarray], alpha: float
) -> Hypothesis:
    """An output from its steps: tokens, `</s>` included where it was produced, and the attention `[S]` of each."""
    finished, total = tokens[-1] == EOS, fsum(log_probabilities)
    return Hypothesis(
        tokens=tuple(tokens[:-1] if finished else tokens),
        log_probability=total,
        score=total / penalty(len(tokens), alpha),
        token_log_probabilities=tuple(log_probabilities),
        finished=finished,
        attention=_stacked(attention) if len(attention) else None,
    )


def _stacked(rows: Sequence[np.ndarray]) -> Tensor:
    """Rows in memory of their own; where the padding of the sources changed in between, as wide as the widest."""
    stacked = np.zeros((len(rows), max(len(row) for row in rows)), rows[0].dtype)
    for t, row in enumerate(rows):
        stacked[t, : len(row)] = row
    with torch.inference_mode(mode=False):  # what the caller gets is an ordinary tensor
        return torch.from_numpy(stacked)


def host(tensor: Tensor) -> np.ndarray:
    """A tensor's numbers where Python reads them; on a CPU nothing is copied."""
    if tensor.is_floating_point():
        tensor = tensor.to(torch.promote_types(tensor.dtype, torch.float32))  # NumPy has no bfloat16
    array: np.ndarray = tensor.cpu().numpy()
    return array


def hosts(parts: Sequence[Tensor]) -> list[np.ndarray]:
    """Several tensors' numbers where Python reads them. A GPU is asked once, for numbers that float64 holds exactly."""
    device = parts[0].device
    if synchronous(device):
        return [host(part) for part in parts]
    wide = torch.float32 if device.type == "mps" else torch.float64
    flat = torch.cat([part.to(wide).flatten() for part in parts]).cpu().numpy()
    ends = np.cumsum([part.numel() for part in parts])[:-1]
    found = [part.reshape(like.shape) for part, like in zip(np.split(flat, ends), parts, strict=True)]
    return [
        part if like.is_floating_point() else part.astype(np.int64) for part, like in zip(found, parts, strict=True)
    ]


def perhaps_any(mask: Tensor) -> bool:
    """Whether any of a mask is True, where it costs nothing to ask; else that may be."""
    return not synchronous(mask.device) or bool(mask.any())


def penalty(length: Length, alpha: float) -> Length:
    """Length penalty ((5 + n) / 6)^α of a number or a float tensor (Wu et al. 2016, section 7, eq. 14)."""
    result: Length = ((5 + length) / 6) ** alpha
    return result


def attention_of(result: StepResult, sentences: int) -> list[Tensor]:
    """Attention of a step by sentence and row of the sentence, `[A, K, S]`; none where the decoder has it not."""
    return [] if result.attention is None else [result.attention.unflatten(0, (sentences, -1))]


def producible(logits: Tensor) -> Tensor:
    """Copy logits `[N, V]`, at least in float32, with −inf on `<pad>` and `<s>`, which no output contains.

    A softmax over the result gives those two no probability: every log-probability of mirada is normalised like this.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    logits[:, NEVER_WRITTEN].fill_(-inf)
    return logits


def log_probabilities(logits: Tensor) -> Tensor:
    """Log-probabilities `[N, V]`, at least in float32; −inf on `<pad>` and `<s>`. They take the place of the logits."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    logits[:, NEVER_WRITTEN].fill_(-inf)
    # In place, for fresh memory costs as much as the sums. A GPU may read a row again after it has begun to write it.
    return torch.log_softmax(logits, 1, out=logits) if logits.device.type == "cpu" else logits.log_softmax(1)


def largest(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the `k` largest of every row of `[N, V]`, largest first, and their columns: two tensors `[N, k]`."""
    return largest_sums(values[:, None], values.new_zeros(len(values), 1), k)


def largest_sums(values: Tensor, added: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The `k` largest of values `[A, K, V]` + added `[A, K]` for each of `A`, and where in `K` × `V`: twice `[A, k]`.

    On a CPU, `topk` reads one number at a time while `amax` is vectorised. The k largest numbers lie in the k blocks
    with the largest maxima, so those are found first and only they are searched: exact, and faster.
    """
    rows, beams, columns = values.shape
    if values.device.type != "cpu" or values.numel() < FEW or beams * columns < 8 * BLOCK * k:
        return (values + added[:, :, None]).flatten(1).topk(k, dim=1)
    blocks = columns // BLOCK
    whole = values[:, :, : blocks * BLOCK].unflatten(2, (blocks, BLOCK)).amax(3)
    rest = values[:, :, blocks * BLOCK :]
    maxima = whole if not rest.size(2) else torch.cat((whole, rest.amax(2, keepdim=True)), 2)  # [A, K, blocks]
    best = (maxima + added[:, :, None]).flatten(1).topk(k, dim=1).indices
    beam, start = best // maxima.size(2), best % maxima.size(2) * BLOCK
    column = start[:, :, None] + torch.arange(BLOCK, device=values.device)  # [A, k, BLOCK]
    index = (beam * columns)[:, :, None] + column.clamp(max=columns - 1)
    sums = values.view(rows, -1).gather(1, index.flatten(1)).view_as(index) + added.gather(1, beam)[:, :, None]
    if rest.size(2):
        sums = sums.masked_fill(column >= columns, -inf)
    found = sums.flatten(1).topk(k, dim=1)
    return found.values, index.flatten(1).gather(1, found.indices)


def allowed(logits: Tensor, rules: Rules, ages: Tensor, history: Tensor | None) -> Tensor:
    """Put −inf on the tokens that may not come next; the others keep their logits, so probabilities stay the model's.

    `logits` `[N, V]` (or log-probabilities) have −inf on `<pad>` and `<s>`, `ages` `[A]` says how many tokens each
    sentence has behind it; `history` `[N, t]` holds those tokens, the last one last, behind `<pad>`, and is only needed
    where `rules.need_history`. Where every token is forbidden, `</s>` is allowed.
    """
    choice, count = logits, len(logits) // len(ages)
    early = ages < rules.min_length if rules.min_length else None
    again = history if rules.ngram_size else None
    if (early is not None and perhaps_any(early)) or again is not None:
        choice = logits.clone()
        if early is not None:
            choice[:, EOS] = choice[:, EOS].masked_fill(early.repeat_interleave(count), -inf)
        if again is not None:
            choice.masked_fill_(repeats(again, rules.ngram_size, logits.shape[1]), -inf)
        stuck = choice.amax(1) == -inf
        choice[:, EOS] = torch.where(stuck, logits[:, EOS], choice[:, EOS])
    if rules.prefix.shape[1]:
        inside = rules.prefix_lengths > ages  # [A]
        if perhaps_any(inside):
            token = rules.prefix.gather(1, ages.clamp(max=rules.prefix.shape[1] - 1)[:, None])[:, 0]  # [A]
            choice = _forced(choice, logits, token.repeat_interleave(count), inside.repeat_interleave(count))
    return choice if history is None or rules.spelling is None else _spelled(choice, logits, rules, ages, history)


def repeats(history: Tensor, size: int, vocabulary: int) -> Tensor:
    """Mark the tokens that would complete an n-gram already in `history` `[N, t]`: `[N, V]` bool.

    `<pad>` before the first token changes nothing: it marks `<pad>` at most.
    """
    marks = torch.zeros(history.shape[0], vocabulary, dtype=torch.bool, device=history.device)
    if history.shape[1] < size:
        return marks
    ngrams = history.unfold(1, size, 1)  # [N, t - size + 1, size]
    start = history[:, history.shape[1] - size + 1 :]  # [N, size - 1]
    repeated = (ngrams[:, :, :-1] == start[:, None]).all(2)
    # n-grams that begin otherwise mark <pad>, which is forbidden anyway.
    return marks.scatter_(1, torch.where(repeated, ngrams[:, :, -1], PAD), True)


def _spelled(choice: Tensor, logits: Tensor, rules: Rules, ages: Tensor, history: Tensor) -> Tensor:
    """Leave only the tokens that spell the rest of its beginning to each row that is inside it."""
    spelling, count = rules.spelling, len(logits) // len(ages)
    texts = ["".join(chr(code) for code in row if code > PAD) for row in rules.rests.tolist()]
    behind = (ages - rules.prefix_lengths).tolist()  # tokens behind the prefix
    for row in range(len(logits)):
        text, made = texts[row // count], behind[row // count]
        if spelling is None or not 0 <= made < len(text):
            continue
        if left := spelling.left(text, history[row, history.shape[1] - made :].tolist()):
            index = torch.tensor(spelling.next(left), dtype=torch.long, device=logits.device)
            only = torch.full_like(logits[row], -inf).scatter_(0, index, logits[row, index])
            choice = choice.index_copy(0, torch.tensor([row], device=logits.device), only[None])
    return choice


def _forced(choice: Tensor, logits: Tensor, token: Tensor, inside: Tensor) -> Tensor:
    """Leave only the prefix's `token` `[N]` to the rows that are still `inside` `[N]` theirs."""
    only = torch.full_like(logits, -inf).scatter_(1, token[:, None], logits.gather(1, token[:, None]))
    return torch.where(inside[:, None], only, choice)
