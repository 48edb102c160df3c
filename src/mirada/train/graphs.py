"""A batch's gradients as one graph of kernels (torch.cuda.CUDAGraph), recorded once for each shape that batches have.

The loop of a recurrent decoder is thousands of kernels of some microseconds each, and it is Python that decides how
soon a GPU gets the next; a graph is asked for once. Batches are filled up to shapes of a few sizes, and what is filled
in has no loss. The first batch of a shape is computed both ways from the same random numbers: where the gradients
differ, or torch cannot record, this training goes on without graphs, and a line says so. (torch.compile would need a
compiler on the user's machine, and minutes for loops unrolled in every length.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from mirada.data.batches import Batch
from mirada.data.vocabulary import PAD

Work = Callable[[Batch, Tensor], Tensor]  # adds a batch's part of a mean over so many tokens; gives its −Σ log p
Replay = Callable[[], Tensor]
ROWS, WIDTHS = 8, 4  # shapes are multiples of so many sentences and positions
MOST = 96  # shapes; a batch of another is computed plainly
NEAR = 1e-2  # of the gradient's norm: what the order of additions may change, in bfloat16 too


class Recorded(NamedTuple):
    """A shape's graph, and where it reads a batch."""

    batch: Batch
    tokens: Tensor  # []
    replay: Replay


class Graphs:
    """Adds the gradients of batches, as `work` does; parameters keep the tensors in which their gradients are."""

    def __init__(
        self, work: Work, parameters: Sequence[nn.Parameter], note: Callable[[str], None], recorder: Recorder | None
    ):
        self.work, self.parameters, self.note = work, parameters, note
        self.recorder = recorder  # None: graphs are given up
        self.shapes: dict[tuple[int, int, int], Recorded] = {}

    def __call__(self, batch: Batch, tokens: int) -> Tensor:
        """Add the gradients of a batch's part of a mean loss over so many tokens; returns its −Σ log p."""
        shape = shape_of(batch)
        if shape in self.shapes:
            recorded = self.shapes[shape]
            _put(recorded.batch, batch)
            recorded.tokens.fill_(tokens)
            return recorded.replay()
        counted = self.parameters[0].new_full((), tokens)
        if self.recorder is None or len(self.shapes) == MOST:
            return self.work(batch, counted)
        return self._first(self.recorder, shape, batch, counted)

    def _first(self, recorder: Recorder, shape: tuple[int, int, int], batch: Batch, tokens: Tensor) -> Tensor:
        """The first batch of a shape, computed plainly and as a graph."""
        space = _space(shape, batch)
        _put(space, batch)
        random, before = recorder.random_state(), self._gradients()
        nll = self.work(space, tokens)
        plain = self._gradients()
        self._set(before)
        try:
            replay = recorder.record(partial(self.work, space, tokens))
            recorder.set_random_state(random)
            again = replay()
            trouble = "" if self._near(plain, before) else "their gradients are others"
        except RuntimeError as error:  # of CUDA, or that its memory does not suffice for graphs
            trouble = str(error).split("\n")[0]
        if trouble:
            self.note(f"batches are computed without CUDA graphs, slower: {trouble}")
            self.recorder = None
            self.shapes.clear()
            self._set(plain)
            return nll
        self.shapes[shape] = Recorded(space, tokens, replay)
        return again

    def _gradients(self) -> list[Tensor | None]:
        return [None if part.grad is None else part.grad.clone() for part in self.parameters]

    def _set(self, wanted: Sequence[Tensor | None]) -> None:
        """Write gradients where they are read; one that there was not is 0."""
        for part, value in zip(self.parameters, wanted, strict=True):
            if part.grad is not None:
                part.grad.zero_() if value is None else part.grad.copy_(value)

    def _near(self, plain: Sequence[Tensor | None], before: Sequence[Tensor | None]) -> bool:
        """Whether what has been added is what the plain way added."""
        rows = [
            (part.grad - exact, exact if old is None else exact - old)
            for part, exact, old in zip(self.parameters, plain, before, strict=True)
            if part.grad is not None and exact is not None
        ]
        off, size = (torch.cat([row[i].flatten() for row in rows]).norm() for i in (0, 1))
        return bool(off <= NEAR * size) or not bool(size.isfinite())


class Recorder:
    """CUDA's graphs, which share the memory of what they compute in between: one runs at a time."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()

    def record(self, work: Replay) -> Replay:
        """Record what `work` asks the GPU for; nothing of it is computed. Raises RuntimeError for what cannot be."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            found = work()

        def replay() -> Tensor:
            graph.replay()
            return found.clone()

        return replay

    def random_state(self) -> Tensor:
        """The state of the GPU's random numbers."""
        return torch.cuda.get_rng_state()

    def set_random_state(self, state: Tensor) -> None:
        """Put it back."""
        torch.cuda.set_rng_state(state)


def shape_of(batch: Batch) -> tuple[int, int, int]:
    """The shape that a batch is filled up to: sentences, source positions, target positions."""
    sizes = (*batch.source.shape, batch.target_in.size(1))
    rows, source, target = (-(-size // of) * of for size, of in zip(sizes, (ROWS, WIDTHS, WIDTHS), strict=True))
    return rows, source, target


def _space(shape: tuple[int, int, int], like: Batch) -> Batch:
    """Room for batches of a shape: sentences of one <pad>."""
    rows, source, target = shape
    words, copies, before, after = (
        like.source.new_full((rows, width), PAD) for width in (source, source, target, target)
    )
    return Batch(words, like.lengths.new_ones(rows), before, after, 0, None if like.copies is None else copies)


def _put(space: Batch, batch: Batch) -> None:
    """Write a batch into the room for it, padding around it."""
    space.lengths.fill_(1)[: len(batch.lengths)].copy_(batch.lengths)
    for place, part in zip(space, batch, strict=True):
        if isinstance(place, Tensor) and isinstance(part, Tensor) and part.dim() == 2:
            place.fill_(PAD)[: part.size(0), : part.size(1)].copy_(part)
