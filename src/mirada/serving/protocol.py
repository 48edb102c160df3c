"""HTTP/1.1 by uvicorn, with limits on how slowly a client may send the head of a request, or read its answer."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
STUCK_SECONDS = 30.0  # without a byte that the client takes, once more waits for it than buffers hold


class Impatient(H11Protocol):
    """A connection that is closed if no request has arrived in time, or if its answer is not read.

    Slow clients cannot hold all places.
    """

    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._deadline = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._deadline.cancel()
        self._moves()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads more slowly than it is written to: wait for it, but not for ever."""
        super().pause_writing()
        self._stuck = asyncio.get_running_loop().call_later(STUCK_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read."""
        self._moves()
        super().resume_writing()

    def _moves(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()

    def _check(self) -> None:
        idle: Any = self.cycle  # a request, once there was one
        if idle is None and not self.transport.is_closing():
            self.transport.close()
