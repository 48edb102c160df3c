"""Continuous batching: sentences of different ages share a step, and one that is done gives its place to the next.

A batch that only shrinks makes half of its steps for the few longest outputs. Here each sentence has its own number of
steps behind it, and nothing that is computed for one depends on another's. No result waits for another's either: what
a step leaves behind is kept as long as a sentence that made it is still searched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from mirada.data.vocabulary import BOS, PAD
from mirada.devices import synchronous
from mirada.search.memory import put
from mirada.search.step import Hypothesis, Rules, Trail
from mirada.trees import Tree, map_tensors, put_rows, select_rows

Insert = Callable[[Any, Tensor, Any], Any]  # `insert` of a decoder
Done = tuple[int, list[Hypothesis]]  # a sentence's ticket and its outputs
FULL = 128  # rows of a step from which on more rows are not faster a row


class NewRequests(NamedTuple):
    """Sentences that the encoder has read, and what the caller says about each."""

    tickets: Sequence[int]  # names for the results, each given once
    seeds: Sequence[int]  # numbers for sampling
    rules: Rules  # of so many rows
    memory: Any  # a tree of so many rows
    state: Any  # the same


class Group(NamedTuple):
    """Sentences that are searched together, with `K` beams each, and what every search knows of them."""

    tickets: Tensor  # [A]
    ages: Tensor  # [A] steps that each has made
    tokens: Tensor  # [A, K] last tokens
    history: Tensor | None  # [A, K, t] all tokens, the last one last; kept only where rules need it
    rules: Rules
    own: Any  # what else the search knows: a tree of [A, …]
    memory: Any  # a tree of [A, …]
    state: Any  # a tree of [N, …]


class Advanced(NamedTuple):
    """A group after a step, whose state still has the rows of the step itself."""

    group: Group
    rows: Tensor | None  # [A, K] the row that each beam goes on from; None: its own
    record: Any  # what the search needs of this step to read outputs back
    finished: Tensor  # [F] places of the sentences whose result nothing can change any more; on the CPU
    ends: Any  # of each of those, how its outputs end: a sequence as long


class Search(NamedTuple):
    """What searches differ in."""

    begin: Callable[[NewRequests], tuple[int, Any]]  # beams of each new sentence, and `own`
    advance: Callable[[Group], Advanced]
    read_back: Callable[[Trail, Any], list[Hypothesis]]  # outputs from the records of a sentence's steps and its ends
    width: int  # beams of each sentence as soon as its search has spread


class RunningBatch:
    """Sentences that share the steps of one search.

    `insert` brings new ones, `step` makes one step for all and returns the results of those that are done. Without a
    decoder's `insert` nobody joins while it runs: the batch only shrinks.
    """

    def __init__(self, search: Search, insert: Insert | None):
        self._search, self._insert = search, insert
        self._group: Group | None = None
        self._waiting: Group | None = None  # encoded, spread, without a place
        self._trails: dict[int, Trail] = {}
        self._known: tuple[Tensor | None, list[int]] = (None, [])  # the tickets that were read last

    @property
    def empty(self) -> bool:
        """Whether no sentence is searched or waits."""
        return self._group is None

    @property
    def can_grow(self) -> bool:
        """Whether others may join now: not without `insert`, and not where more rows are not faster a row."""
        if self._group is None:
            return True
        return self._insert is not None and self._waiting is None and self._group.tokens.numel() <= FULL

    def room(self, places: int) -> int:
        """How many new sentences may come now, where `places` are searched together at most.

        As many as there are places, though fewer may be free: the others wait for the next ones, for an encoder is
        faster a sentence on many of them.
        """
        return places if self.can_grow else 0

    def insert(self, new: NewRequests, places: int) -> list[Done]:
        """Let new sentences join. They are searched by themselves until they have as many beams as all others."""
        self._trails |= {ticket: [] for ticket in new.tickets}
        group, done = _begun(self._search, new), list[Done]()
        while len(group.tickets) and group.tokens.size(1) < self._search.width:
            group = _selected(self._advance(group, done))
        if len(group.tickets):
            self._waiting = group
            self._fill_free(places)
        return done

    def step(self, places: int) -> list[Done]:
        """Make a step; those that wait take the places of those that are done."""
        done: list[Done] = []
        if self._group is None:
            return done
        advanced = self._advance(self._group, done)
        finished = advanced.finished
        if len(finished) == len(self._group.tickets) and self._waiting is None:
            self._group = None
            return done
        if self._insert is None:
            self._keep(_selected(advanced))
            return done
        group = advanced.group._replace(state=_reordered(advanced.group.state, advanced.rows))
        free = min(len(finished), len(finished) + places - len(group.tickets))
        if self._waiting is not None and free > 0:
            count = min(free, len(self._waiting.tickets))
            group = _put(group, finished[:count].to(group.tickets.device), self._taken(count), self._insert)
            finished = finished[count:]
        self._keep(_closed_up(group, finished, self._insert) if len(finished) else group)
        self._fill_free(places)
        return done

    def drop(self, tickets: Collection[int]) -> None:
        """Forget some sentences: they leave at once, without a result."""
        if not tickets:
            return
        self._trails = {ticket: trail for ticket, trail in self._trails.items() if ticket not in tickets}
        self._group, self._waiting = (_without(group, tickets) for group in (self._group, self._waiting))
        if self._group is None:
            self._group, self._waiting = self._waiting, None

    def _advance(self, group: Group, done: list[Done]) -> Advanced:
        """Make a step of a group; adds the results of those that are done to `done`."""
        if self._known[0] is not group.tickets:  # a GPU is asked only where sentences have come or gone
            self._known = (group.tickets, group.tickets.tolist())
        tickets = self._known[1]
        advanced = self._search.advance(group)
        for row, ticket in enumerate(tickets):
            self._trails[ticket].append((advanced.record, row))
        for place, ends in zip(advanced.finished.tolist(), advanced.ends, strict=True):
            done.append((tickets[place], self._search.read_back(self._trails.pop(tickets[place]), ends)))
        return advanced

    def _keep(self, group: Group) -> None:
        self._group = group if len(group.tickets) else None

    def _fill_free(self, places: int) -> None:
        """Give free places to those that wait."""
        if self._group is None:
            self._group, self._waiting = self._waiting, None
        elif self._waiting is not None and self._insert and (free := places - len(self._group.tickets)) > 0:
            fresh = self._taken(min(free, len(self._waiting.tickets)))
            self._group = _grown(self._group, fresh, self._insert)

    def _taken(self, count: int) -> Group:
        """Take the first of those that wait."""
        waiting: Any = self._waiting
        self._waiting = _cut(waiting, slice(count, None)) if count < len(waiting.tickets) else None
        return _cut(waiting, slice(count))


def _begun(search: Search, new: NewRequests) -> Group:
    """A group of sentences that have not made a step."""
    device = new.rules.limits.device
    beams, own = search.begin(new)
    tickets = torch.tensor(new.tickets, device=device)
    tokens = torch.full((len(tickets), beams), BOS, device=device)
    history = tokens.new_empty(*tokens.shape, 0) if new.rules.need_history else None
    state = new.state
    if beams > 1:
        state = select_rows(state, torch.arange(len(tickets), device=device).repeat_interleave(beams))
    return Group(tickets, torch.zeros_like(tickets), tokens, history, new.rules, own, new.memory, state)


def _selected(advanced: Advanced) -> Group:
    """The group without the sentences that are done, everything copied."""
    group, rows, finished = advanced.group, advanced.rows, advanced.finished
    if not len(finished):
        return group._replace(state=_reordered(group.state, rows))
    stay = _others(finished, len(group.tickets)).to(group.tickets.device)
    if rows is None:
        rows = torch.arange(group.tokens.numel(), device=stay.device).view_as(group.tokens)
    state = select_rows(group.state, rows[stay].flatten())
    return select_rows(group._replace(state=None), stay)._replace(state=state)


def _without(group: Group | None, tickets: Collection[int]) -> Group | None:
    """A group between two steps, without some of its sentences."""
    if group is None:
        return None
    stay = [place for place, ticket in enumerate(group.tickets.tolist()) if ticket not in tickets]
    if len(stay) == len(group.tickets) or not stay:
        return group if stay else None
    places = torch.tensor(stay, device=group.tickets.device)
    state = select_rows(group.state, _rows_of(places, group))
    return select_rows(group._replace(state=None), places)._replace(state=state)


def _closed_up(group: Group, finished: Tensor, insert: Insert) -> Group:
    """The same, but of memory and state only the last sentences' are copied, over those that are finished."""
    left, beams, device = len(group.tickets) - len(finished), group.tokens.size(1), group.tickets.device
    places = finished[finished < left]
    if not len(places):
        return _cut(group, slice(left))
    last = left + _others(finished[finished >= left] - left, len(finished))
    order = torch.arange(left).index_copy_(0, places, last).to(device)
    places, last = places.to(device), last.to(device)
    small = select_rows(group._replace(memory=None, state=None), order)
    memory = map_tensors(lambda leaf: leaf[:left], group.memory)
    state = map_tensors(lambda leaf: leaf[: left * beams], group.state)
    return small._replace(
        memory=put(memory, places, select_rows(group.memory, last)),
        state=insert(state, _rows_of(places, group), select_rows(group.state, _rows_of(last, group))),
    )


def _grown(group: Group, fresh: Group, insert: Insert) -> Group:
    """The group with others behind it: its first sentence again, so many times, and the others over those."""
    before, count = len(group.tickets), len(fresh.tickets)
    places = torch.arange(before, before + count, device=group.tickets.device)
    chosen = torch.cat((torch.arange(before, device=places.device), torch.zeros_like(places)))
    state = select_rows(group.state, _rows_of(chosen, group))
    return _put(select_rows(group._replace(state=None), chosen)._replace(state=state), places, fresh, insert)


def _rows_of(places: Tensor, group: Group) -> Tensor:
    """Rows of the sentences in some places in the decoder's state."""
    beams = group.tokens.size(1)
    return (places[:, None] * beams + torch.arange(beams, device=places.device)).flatten()


def _others(places: Tensor, count: int) -> Tensor:
    """All places of `count` but these."""
    stay = torch.ones(count, dtype=torch.bool, device=places.device)
    stay[places] = False
    return stay.nonzero().flatten()


def _reordered(state: Tree, rows: Tensor | None) -> Tree:
    """Take `rows` of a state; one whose order stays is left alone, where it costs nothing to ask."""
    if rows is None or (synchronous(rows.device) and torch.equal(rows.flatten(), torch.arange(rows.numel()))):
        return state
    return select_rows(state, rows.flatten())


def _cut(group: Group, part: slice) -> Group:
    """Some of a group's sentences."""
    beams = group.tokens.size(1)
    rows = slice(*(None if end is None else end * beams for end in (part.start, part.stop)))
    cut: Group = map_tensors(lambda leaf: leaf[part], group._replace(state=None))
    return cut._replace(state=map_tensors(lambda leaf: leaf[rows], group.state))


def _put(group: Group, places: Tensor, fresh: Group, insert: Insert) -> Group:
    """Give the places, whose sentences are done, to others. What the steps before left behind stays as it is."""
    rows, fresh_plain = _rows_of(places, group), fresh._replace(history=None, memory=None, state=None)
    plain = _widened(group._replace(history=None, memory=None, state=None), fresh_plain)
    put_rows(plain, places, fresh_plain)
    history = group.history
    if history is not None and fresh.history is not None:
        history = _beside(history, places, fresh.history)[:, :, -int(plain.ages.max()) :]
    memory = put(group.memory, places, fresh.memory)
    joined: Group = plain._replace(history=history, memory=memory, state=insert(group.state, rows, fresh.state))
    return joined


def _widened(tree: Any, fresh: Any) -> Any:
    """A copy of a tree, wide enough for the rows of another (prefixes, random numbers: what is added is never read)."""
    if isinstance(tree, Tensor):
        more = [max(0, new - own) for own, new in zip(tree.shape[1:], fresh.shape[1:], strict=True)]
        return pad(tree, [end for size in reversed(more) for end in (0, size)]) if any(more) else tree.clone()
    if isinstance(tree, tuple):
        branches = [_widened(*pair) for pair in zip(tree, fresh, strict=True)]
        return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)
    return tree


def _beside(history: Tensor, places: Tensor, fresh: Tensor) -> Tensor:
    """The tokens of others in some places; <pad> before the first token of a younger one."""
    width = max(history.size(2), fresh.size(2))
    history, fresh = (pad(part, (width - part.size(2), 0), value=PAD) for part in (history, fresh))
    return history.index_copy(0, places, fresh)
