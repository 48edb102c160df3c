"""What greedy choice, beam search and sampling share: the step function, the rules about tokens, the paths they return.

Letters for shapes: `B` sentences of the batch, `A` sentences still searched, `K` hypotheses a sentence, `N` = `A` × `K`
rows of a step (the rows of a sentence are neighbours), `V` vocabulary, `S` source positions, `T` steps, `n` outputs.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

BLOCK = 64
FEW = 1 << 14  # numbers that are looked through one by one as fast
Length = TypeVar("Length", float, Tensor)


class Specials(NamedTuple):
    """Ids of the four special tokens, the same in every vocabulary."""

    unk: int = 0
    pad: int = 1
    bos: int = 2
    eos: int = 3


SPECIALS = Specials()


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
    """How long outputs may become and which tokens may come next."""

    limits: Tensor  # [B] most tokens of each output, </s> not counted
    prefix: Tensor  # [B, P] tokens that each output must start with, padded at the right
    prefix_lengths: Tensor  # [B]
    shortest_prefix: int  # min(prefix_lengths), as a number
    min_length: int  # fewest tokens before </s>
    ngram_size: int  # no n-gram of this size comes twice; 0: no such rule


class Paths(NamedTuple):
    """Outputs of a search, </s> included where it was produced. What lies beyond an output's length has no meaning."""

    tokens: Tensor  # [B, n, T]
    log_probabilities: Tensor  # [B, n, T] of each token
    lengths: Tensor  # [B, n] tokens of each output; 0 marks a place that was never filled
    attention: Tensor | None  # [B, n, T, S]


def penalty(length: Length, alpha: float) -> Length:
    """Length penalty ((5 + n) / 6)^α of a number or a float tensor (Wu et al. 2016, section 7, eq. 14)."""
    result: Length = ((5 + length) / 6) ** alpha
    return result


def attention_of(result: StepResult, sentences: int) -> Tensor | None:
    """Attention of a step by sentence and row of the sentence, `[A, K, S]`, where the decoder has it."""
    return None if result.attention is None else result.attention.unflatten(0, (sentences, -1))


def producible(logits: Tensor) -> Tensor:
    """Copy logits `[N, V]`, at least in float32, with −inf on `<pad>` and `<s>`, which no output contains.

    A softmax over the result gives those two no probability: every log-probability of mirada is normalised like this.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    logits[:, SPECIALS.pad] = -inf
    logits[:, SPECIALS.bos] = -inf
    return logits


def log_probabilities(logits: Tensor) -> Tensor:
    """Log-probabilities `[N, V]`, at least in float32; −inf on `<pad>` and `<s>`. They take the place of the logits."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    logits[:, SPECIALS.pad : SPECIALS.bos + 1] = -inf  # neighbours
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


def allowed(logits: Tensor, rules: Rules, sentences: Tensor, ages: Tensor, history: Tensor | None) -> Tensor:
    """Put −inf on the tokens that may not come next; the others keep their logits, so probabilities stay the model's.

    `logits` `[N, V]` (or log-probabilities) have −inf on `<pad>` and `<s>`, `sentences` `[A]` says whose rows they are,
    `ages` `[A]` how many tokens each has behind it; `history` `[N, t]` holds those tokens, the last one last, behind
    `<pad>`, and is only needed for the rule about n-grams. Where every token is forbidden, `</s>` is allowed.
    """
    choice, count = logits, len(logits) // len(sentences)
    early = ages < rules.min_length if rules.min_length else None
    if (early is not None and early.any()) or history is not None:
        choice = logits.clone()
        if early is not None:
            choice[:, SPECIALS.eos] = choice[:, SPECIALS.eos].masked_fill(early.repeat_interleave(count), -inf)
        if history is not None:
            choice.masked_fill_(repeats(history, rules.ngram_size, logits.shape[1]), -inf)
        stuck = choice.amax(1) == -inf
        choice[:, SPECIALS.eos] = torch.where(stuck, logits[:, SPECIALS.eos], choice[:, SPECIALS.eos])
    if rules.prefix.shape[1]:
        inside = rules.prefix_lengths[sentences] > ages  # [A]
        if inside.any():
            token = rules.prefix[sentences, ages.clamp(max=rules.prefix.shape[1] - 1)]  # [A]
            choice = _forced(choice, logits, token.repeat_interleave(count), inside.repeat_interleave(count))
    return choice


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
    return marks.scatter_(1, torch.where(repeated, ngrams[:, :, -1], SPECIALS.pad), True)


def _forced(choice: Tensor, logits: Tensor, token: Tensor, inside: Tensor) -> Tensor:
    """Leave only the prefix's `token` `[N]` to the rows that are still `inside` `[N]` theirs."""
    only = torch.full_like(logits, -inf).scatter_(1, token[:, None], logits.gather(1, token[:, None]))
    return torch.where(inside[:, None], only, choice)
