"""HTTP/1.1 by uvicorn, with a limit on how long a client may take to send the head of a request."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0


class Impatient(H11Protocol):
    """A connection that is closed if no request has arrived in time: slow ones cannot hold all places."""

    def connection_made(self, transport: Any) -> None:
        """Begin to wait."""
        super().connection_made(transport)
        self._deadline = asyncio.get_running_loop().call_later(HEAD_SECONDS, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._deadline.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        idle: Any = self.cycle  # a request, once there was one
        if idle is None and not self.transport.is_closing():
            self.transport.close()
