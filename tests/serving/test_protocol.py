"""Slow clients over real connections: those that never end a request, and those that never read an answer."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import httpx
import pytest
import uvicorn

from mirada.serving import protocol
from mirada.serving.protocol import Impatient

CHUNK, CHUNKS = b"x" * 1_000_000, 60  # more than the buffers of a connection hold


@pytest.fixture
def server(monkeypatch):
    """The address of a server with short limits, and an event for the end of /long, which answers at great length."""
    ended = threading.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(CHUNKS if scope["path"] == "/long" else 0):
            await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if scope["path"] == "/long":
            ended.set()

    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "STUCK_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, http=Impatient, lifespan="off", log_config=None)
        running = uvicorn.Server(config)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        yield listener.getsockname(), ended
        running.should_exit = True
        thread.join(20)


def test_heads_that_never_end_are_closed_and_hold_up_nobody(server):
    address, _ = server
    slow = [socket.create_connection(address) for _ in range(100)]
    for connection in slow:
        connection.sendall(b"GET / HTTP/1.1\r\nHost:")
    assert httpx.get(f"http://127.0.0.1:{address[1]}/").status_code == 200
    for connection in slow:
        connection.settimeout(20)
        assert connection.recv(1) == b""
        connection.close()


def test_an_answer_that_nobody_reads_is_given_up(server):
    address, ended = server
    with socket.create_connection(address) as connection:
        connection.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\n\r\n")
        assert ended.wait(20)
        got = sum(map(len, iter(lambda: connection.recv(1 << 20), b"")))
    assert got < CHUNKS * len(CHUNK)


def test_one_that_reads_slowly_gets_all(server):
    address, _ = server
    size = 0
    with socket.create_connection(address) as connection:
        connection.sendall(b"GET /long HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while part := connection.recv(1 << 22):
            size += len(part)
            time.sleep(0.005)
    assert size > CHUNKS * len(CHUNK)


@pytest.mark.parametrize("first", [True, False])
def test_a_head_without_end_is_refused_on_a_new_connection_and_on_one_that_stayed_open(server, first):
    address, _ = server
    with socket.create_connection(address) as connection:
        if not first:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = connection.recv(1 << 16)
            assert answer.startswith(b"HTTP/1.1 200")
            while not answer.endswith(b"0\r\n\r\n"):  # its end may come by itself
                answer += connection.recv(1 << 16)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        with contextlib.suppress(ConnectionError):  # closed while it still sends
            for _ in range(40):
                connection.sendall(b"y" * 10_000)
                time.sleep(0.002)
        connection.settimeout(20)
        with contextlib.suppress(ConnectionError):
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 431")


def test_a_long_head_that_ends_is_read(server):
    address, _ = server
    headers = {f"x-{i}": "y" * 1000 for i in range(30)}
    assert httpx.get(f"http://127.0.0.1:{address[1]}/", headers=headers).status_code == 200
