"""Processes that answer: one, or several on the same port; signals; the end without a lost request."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType

from mirada.config.serving import ServeConfig
from mirada.errors import ConfigError

BACKLOG = 2048  # connections that wait to be accepted
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
SOONEST = 1.0  # seconds between two starts of a process that ends at once


def serve(settings: ServeConfig, say: Callable[[str], None]) -> int:
    """Answer until SIGTERM or Ctrl-C; returns the exit code. `say` is told the address once it can be reached."""
    listener = listen(settings)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    say(f"serving on http://{shown}:{port} (the page: /, the interface: /docs); Ctrl-C ends it")
    if settings.workers == 1:
        return answer(settings, listener)
    return supervise(settings, listener)


def listen(settings: ServeConfig) -> socket.socket:
    """A listening socket; raises ConfigError if the address cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"host {settings.host}, port {settings.port}: cannot be listened on ({error.strerror or error}); "
            "is another service there?"
        ) from None
    listener.set_inheritable(True)
    return listener


def answer(settings: ServeConfig, listener: socket.socket) -> int:
    """Answer in this process. SIGTERM: take no more, finish what was accepted, then end; SIGHUP: load models again."""
    import torch
    import uvicorn

    from mirada.serving.app import build
    from mirada.serving.logs import set_up
    from mirada.serving.protocol import Impatient

    set_up(settings.log_format)
    torch.set_num_threads(settings.threads)
    app, shelf = build(settings)
    if settings.preload:
        shelf.preload()
    signal.signal(signal.SIGTERM, lambda number, frame: None)  # for after uvicorn's own handler, which it puts back
    signal.signal(signal.SIGHUP, lambda number, frame: shelf.asked.set())
    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=15,
        timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def supervise(settings: ServeConfig, listener: socket.socket) -> int:
    """Keep so many processes answering; one that dies is replaced, the others go on. Signals go to all of them."""
    from mirada.serving.logs import set_up

    set_up(settings.log_format)
    log = logging.getLogger("mirada.serve")
    children: dict[int, float] = {}
    ending: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        ending.append(number)
        listener.close()
        _send(children, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGHUP, lambda number, frame: _send(children, signal.SIGHUP))
    while not ending or children:
        while not ending and len(children) < settings.workers:
            signal.pthread_sigmask(
                signal.SIG_BLOCK, SIGNALS
            )  # until the new process has its own handlers, and is known
            children[_fork(settings, listener)] = time.monotonic()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        child, status = _wait()
        began = children.pop(child, None)
        if began is not None and not ending:
            code = os.waitstatus_to_exitcode(status)
            log.error("process %d ended with %d; another takes its place", child, code)
            time.sleep(max(0.0, SOONEST - (time.monotonic() - began)))
    return 0


def _wait() -> tuple[int, int]:
    try:
        return os.wait()
    except ChildProcessError:
        return 0, 0


def _send(children: dict[int, float], number: int) -> None:
    for child in list(children):
        try:
            os.kill(child, number)
        except ProcessLookupError:
            continue


def _fork(settings: ServeConfig, listener: socket.socket) -> int:
    """Start a process before anything heavy is imported here, so that nothing of torch is in two processes."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = answer(settings, listener)
    except BaseException as error:
        logging.getLogger("mirada.serve").error("process %d: %s", os.getpid(), error)
    finally:
        sys.stderr.flush()
        os._exit(code)
