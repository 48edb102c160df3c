"""HTTP/1.1 by uvicorn, with limits on the length and the slowness of requests, and on how slowly answers are read."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0
MOST_HEAD = 65_536  # bytes of the head of a request
TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
STUCK_SECONDS = 30.0  # without a byte that the client takes, once more waits for it than buffers hold


class Impatient(HttpToolsProtocol):
    """A connection that is closed if a request's head is too long or too late, or if its answer is not read.

    Slow clients cannot hold all places.
    """

    _stuck: asyncio.TimerHandle | None = None
    _head: int | None = 0  # bytes of a head that is not whole; None: it is

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._deadline = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._deadline.cancel()
        self._moves()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the head has become too long."""
        if self._head is not None:
            self._head += len(data)
        super().data_received(data)
        if (self._head or 0) > MOST_HEAD and not self.transport.is_closing():
            self.transport.write(TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A head begins; if it begins inside what was just received, the rest of that counts for little."""
        self._head = self._head or 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._head = None
        super().on_headers_complete()

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
