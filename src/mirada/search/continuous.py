"""Many sentences in few places: one that is done gives its place to the next, so that the steps of a batch stay full.

A batch that only shrinks makes half of its steps for the few longest outputs. Here sentences of different ages share a
step: each has its own number of steps behind it, and nothing that is computed for one depends on another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from mirada.search.step import SPECIALS, Rules
from mirada.trees import Tree, map_tensors, put_rows, select_rows


class NewRequests(NamedTuple):
    """Sentences that the encoder has read."""

    rows: int  # sentences
    memory: Any  # a tree of so many rows
    state: Any  # the same


class RequestSource(Protocol):
    """Where the sentences come from, in their order."""

    @property
    def can_insert(self) -> bool:
        """Whether `put` can be called at all."""

    def next(self) -> NewRequests | None:
        """Some more; None when all have come."""

    def put(self, live: tuple[Any, Any], places: tuple[Tensor, Tensor], fresh: tuple[Any, Any], /) -> tuple[Any, Any]:
        """Memory and state of a group in which others took places: rows of the memory and rows of the state.

        What it is given is not used any more, so this may be done in place, if the state holds no tensor of the search.
        """


class SingleBatch:
    """All sentences at once."""

    can_insert = False

    def __init__(self, new: NewRequests):
        self.new: NewRequests | None = new

    def next(self) -> NewRequests | None:
        """They come together."""
        new, self.new = self.new, None
        return new

    def put(self, live: tuple[Any, Any], places: tuple[Tensor, Tensor], fresh: tuple[Any, Any], /) -> tuple[Any, Any]:
        """Nobody else comes."""
        raise NotImplementedError


class Group(NamedTuple):
    """Sentences that are searched together, with `K` beams each, and what every search knows of them."""

    sentences: Tensor  # [A] numbers in the order of arrival
    ages: Tensor  # [A] steps that each has made
    tokens: Tensor  # [A, K] last tokens
    history: Tensor | None  # [A, K, t] all tokens, the last one last; kept only for the rule about n-grams
    own: Any  # what else the search knows: a tree of [A, …]
    memory: Any  # a tree of [A, …]
    state: Any  # a tree of [N, …]


class Advanced(NamedTuple):
    """A group after a step, whose state still has the rows of the step itself."""

    group: Group
    rows: Tensor | None  # [A, K] the row that each beam goes on from; None: its own
    finished: Tensor  # [A] bool: nothing can change the result any more


class Search(NamedTuple):
    """What searches differ in."""

    begin: Callable[[int], tuple[int, Any]]  # for so many sentences: beams of each, and `own`
    advance: Callable[[Group], Advanced]
    width: int  # beams of each sentence as soon as its search has spread


def follow(search: Search, request_source: RequestSource, rules: Rules) -> None:
    """Advance until every sentence has come and left."""
    groups = _groups(search, request_source, rules)
    waiting: list[Group] = []  # at most one
    while (group := waiting.pop() if waiting else next(groups, None)) is not None:
        while len(group.sentences):
            advanced = search.advance(group)
            places = advanced.finished.nonzero().flatten()
            if not request_source.can_insert:
                group = _selected(advanced, places)
                continue
            group = advanced.group._replace(state=_reordered(advanced.group.state, advanced.rows))
            for part in _taken(len(places), waiting, groups):
                here, places = places.split((len(part.sentences), len(places) - len(part.sentences)))
                group = _put(group, here, part, request_source)
            group = _closed_up(group, places, request_source) if len(places) else group


def _taken(count: int, waiting: list[Group], groups: Iterator[Group]) -> Iterator[Group]:
    """Take so many sentences, or all that there are, from the group that waits and those behind it."""
    while count and (group := waiting.pop() if waiting else next(groups, None)) is not None:
        taken = min(count, len(group.sentences))
        count -= taken
        if taken < len(group.sentences):
            waiting.append(_cut(group, slice(taken, None)))
        yield _cut(group, slice(taken))


def _groups(search: Search, request_source: RequestSource, rules: Rules) -> Iterator[Group]:
    """Groups as they arrive, searched by themselves until they have as many beams as all others."""
    seen, device = 0, rules.limits.device
    while (new := request_source.next()) is not None:
        beams, own = search.begin(new.rows)
        sentences = torch.arange(seen, seen + new.rows, device=device)
        tokens = torch.full((new.rows, beams), SPECIALS.bos, device=device)
        history = tokens.new_empty(*tokens.shape, 0) if rules.ngram_size else None
        state = new.state
        if beams > 1:
            state = select_rows(state, torch.arange(new.rows, device=device).repeat_interleave(beams))
        group = Group(sentences, torch.zeros_like(sentences), tokens, history, own, new.memory, state)
        seen += new.rows
        while len(group.sentences) and group.tokens.size(1) < search.width:
            advanced = search.advance(group)
            group = _selected(advanced, advanced.finished.nonzero().flatten())
        if len(group.sentences):
            yield group


def _selected(advanced: Advanced, finished: Tensor) -> Group:
    """The group without the sentences in some places, everything copied."""
    group, rows, _ = advanced
    if not len(finished):
        return group._replace(state=_reordered(group.state, rows))
    stay = _others(finished, len(group.sentences))
    if rows is None:
        rows = torch.arange(group.tokens.numel(), device=stay.device).view_as(group.tokens)
    state = select_rows(group.state, rows[stay].flatten())
    return select_rows(group._replace(state=None), stay)._replace(state=state)


def _closed_up(group: Group, finished: Tensor, request_source: RequestSource) -> Group:
    """The same, but only the last sentences are copied, over those that are finished; the rest stays where it is."""
    left = len(group.sentences) - len(finished)
    head, places = _cut(group, slice(left)), finished[finished < left]
    if not len(places):
        return head
    last = left + _others(finished[finished >= left] - left, len(finished))
    beams = group.tokens.size(1)
    rows = (last[:, None] * beams + torch.arange(beams, device=last.device)).flatten()
    movers = select_rows(group._replace(state=None), last)._replace(state=select_rows(group.state, rows))
    return _put(head, places, movers, request_source)


def _others(places: Tensor, count: int) -> Tensor:
    """All places of `count` but these."""
    stay = torch.ones(count, dtype=torch.bool, device=places.device)
    stay[places] = False
    return stay.nonzero().flatten()


def _reordered(state: Tree, rows: Tensor | None) -> Tree:
    """Take `rows` of a state; one whose order stays is left alone."""
    if rows is None or torch.equal(rows.flatten(), torch.arange(rows.numel(), device=rows.device)):
        return state
    return select_rows(state, rows.flatten())


def _cut(group: Group, part: slice) -> Group:
    """Some of a group's sentences."""
    beams = group.tokens.size(1)
    rows = slice(*(None if end is None else end * beams for end in (part.start, part.stop)))
    cut: Group = map_tensors(lambda leaf: leaf[part], group._replace(state=None))
    return cut._replace(state=map_tensors(lambda leaf: leaf[rows], group.state))


def _put(group: Group, places: Tensor, fresh: Group, request_source: RequestSource) -> Group:
    """Give the places, whose sentences are done, to others. What the steps before left behind stays as it is."""
    beams = group.tokens.size(1)
    rows = (places[:, None] * beams + torch.arange(beams, device=places.device)).flatten()
    memory, state = request_source.put((group.memory, group.state), (places, rows), (fresh.memory, fresh.state))
    plain = map_tensors(Tensor.clone, group._replace(history=None, memory=None, state=None))
    put_rows(plain, places, fresh._replace(history=None, memory=None, state=None))
    history = group.history
    if history is not None and fresh.history is not None:
        history = _beside(history, places, fresh.history)[:, :, -int(plain.ages.max()) :]
    return plain._replace(history=history, memory=memory, state=state)


def _beside(history: Tensor, places: Tensor, fresh: Tensor) -> Tensor:
    """The tokens of others in some places; <pad> before the first token of a younger one."""
    width = max(history.size(2), fresh.size(2))
    history, fresh = (pad(part, (width - part.size(2), 0), value=SPECIALS.pad) for part in (history, fresh))
    return history.index_copy(0, places, fresh)
