"""The command `mirada serve` as a process: where it listens, who answers, and how it ends."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

import tiny
from cli_tools import ENVIRONMENT, command, refusal
from mirada.config.serving import ServeConfig, load_serving, parse_serving
from mirada.errors import ConfigError
from mirada.translator import load
from serving.test_shelf import replace


@contextmanager
def serving(*arguments: object, log: Path, **limits: Any) -> Iterator[tuple[subprocess.Popen, str]]:
    """A service on a free port; yields the process and its address once it answers."""
    with log.open("w") as stream:
        process = subprocess.Popen(command("serve", *arguments, "--port", 0), stderr=stream, env=ENVIRONMENT, **limits)
    try:
        address = _address(process, log)
        for _ in range(600):
            try:
                if httpx.get(f"{address}/readyz", timeout=5).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        yield process, address
    finally:
        process.kill()
        process.wait()


def _address(process: subprocess.Popen, log: Path) -> str:
    for _ in range(600):
        if found := re.search(r"http://[^ ]+", log.read_text()):
            return found[0]
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_sigterm_answers_what_was_accepted_and_ends_with_0(folders, tmp_path):
    offline = load(folders["luong"], device="cpu").translate(tiny.SOURCES)
    with serving(folders["luong"], "--preload", "--log-format", "json", log=tmp_path / "log") as (process, address):
        body = {"text": tiny.SOURCES}
        host, port = address.removeprefix("http://").split(":")
        content = str(body).replace("'", '"').encode()
        lines = ["POST /v1/translate HTTP/1.1", "Host: x", "Content-Type: application/json"]
        head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head.encode() + content[:10])
            time.sleep(0.3)  # it has been accepted, and is not whole
            process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            connection.sendall(content[10:])
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert all(text.encode() in answer for text in offline if text.isascii())
        assert process.wait(30) == 0
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{address}/healthz")
    assert '"message": "model luong: loaded"' in (tmp_path / "log").read_text()


def test_several_processes_answer_and_one_that_is_killed_is_replaced(folders, tmp_path):
    with serving(folders["luong"], "--workers", 2, log=tmp_path / "log") as (process, address):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        if not children.exists():
            pytest.skip("no /proc with children on this system")
        first = children.read_text().split()
        assert len(first) == 2
        os.kill(int(first[0]), signal.SIGKILL)
        for _ in range(20):  # the other one goes on meanwhile
            try:
                answer = httpx.post(f"{address}/v1/translate", json={"text": "the cat"}, timeout=60)
                assert answer.status_code == 200
            except httpx.ReadError:  # it was with the one that died
                continue
        for _ in range(100):
            if len(now := children.read_text().split()) == 2 and now != first:
                break
            time.sleep(0.1)
        assert first[1] in now
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert f"process {first[0]} ended with -9; another takes its place" in (tmp_path / "log").read_text()


def test_under_load_a_model_is_replaced_and_what_was_accepted_is_answered(folders, tmp_path):
    """SIGHUP, then SIGTERM, while others ask and some leave: nothing lost, nothing but old or new answers."""
    folder = shutil.copytree(folders["luong"], tmp_path / "luong")
    text, answers = tiny.SOURCES[0], list[tuple[int, str]]()
    old = load(folder, device="cpu").translate([text])[0]
    with serving(folder, "--preload", "--reload-seconds", 0, log=tmp_path / "log") as (process, address):
        stop = Event()

        def ask() -> None:
            with httpx.Client(base_url=address, timeout=60) as client:
                while not stop.is_set():
                    found = client.post("/v1/translate", json={"text": text})
                    answers.append((found.status_code, found.json()["translations"][0]["text"]))

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask) for _ in range(4)]
            leave_midway(address)
            replace(folder, "luong", 9)
            new = load(folder, device="cpu").translate([text])[0]
            process.send_signal(signal.SIGHUP)
            wait_until(lambda: answers and answers[-1] == (200, new))
            stop.set()
            for one in asking:
                one.result(60)
            assert set(answers) == {(200, old), (200, new)}
            wait_until(lambda: 'status="499"' in httpx.get(f"{address}/metrics").text)
            assert 'mirada_queue{model="luong"} 0.0' in httpx.get(f"{address}/metrics").text
            last = [pool.submit(httpx.post, f"{address}/v1/translate", json=long(i), timeout=60) for i in range(4)]
            wait_until(lambda: "mirada_requests_running 5.0" in httpx.get(f"{address}/metrics").text)
            process.send_signal(signal.SIGTERM)
            assert [one.result(60).status_code for one in last] == [200] * 4
        assert process.wait(30) == 0


def long(number: int) -> dict[str, object]:
    """A request that takes a while."""
    return {"text": [tiny.SOURCES[number]] * 2, "beam_size": 4, "max_output_length": 500, "min_output_length": 490}


def leave_midway(address: str) -> None:
    """Ask for much, and go."""
    content = json.dumps(long(5)).encode()
    host, port = address.removeprefix("http://").split(":")
    lines = ["POST /v1/translate HTTP/1.1", "Host: x", "Content-Type: application/json"]
    head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + content)
        time.sleep(0.1)


def wait_until(condition: Callable[[], object]) -> None:
    """For a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_disk_that_is_full_for_the_log_stops_no_answer(folders, tmp_path):
    small = (resource.RLIMIT_FSIZE, (2000, 2000))
    limits = {"preexec_fn": lambda: resource.setrlimit(*small)}
    with serving(folders["luong"], log=tmp_path / "log", **limits) as (_, address), httpx.Client() as client:
        statuses = [client.post(f"{address}/v1/translate", json={"text": "a"}).status_code for _ in range(30)]
        assert statuses == [200] * 30
    assert (tmp_path / "log").stat().st_size == 2000, "30 lines are longer"


def test_a_client_package_of_libretranslate_works(folders, tmp_path):
    libretranslatepy = pytest.importorskip("libretranslatepy")
    offline = load(folders["luong"], device="cpu").translate(tiny.SOURCES[:1])
    with serving(folders["luong"], "--languages", "luong=en-es", log=tmp_path / "log") as (_, address):
        api = libretranslatepy.LibreTranslateAPI(address)
        assert api.translate(tiny.SOURCES[0], "en", "es") == offline[0]
        assert api.languages() == [{"code": "en", "name": "English", "targets": ["es"]}]


# Options


def test_a_port_that_is_taken(folders):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = refusal("serve", folders["luong"], "--port", port)
    assert message == (
        f"host 127.0.0.1, port {port}: cannot be listened on (Address already in use); is another service there?"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--prot", "1"), "unknown argument '--prot'; did you mean '--port'?; see `mirada serve --help-all`"),
        (("--port", "99999"), "options: port: input should be less than or equal to 65535 (got '99999')"),
        (("--log-format", "xml"), "options: log_format: input should be 'text' or 'json' (got 'xml')"),
    ],
)
def test_flags_that_are_refused(arguments, message):
    assert refusal("serve", "x", *arguments) == message


def test_files_of_options(tmp_path):
    file = tmp_path / "serve.yaml"
    file.write_text("models: [a, b=c]\nport: 5000\ncors_origins: [https://a.example]\n")
    settings = parse_serving(load_serving(file))
    assert (settings.models, settings.port, settings.host) == (("a", "b=c"), 5000, "127.0.0.1")
    file.write_text("ports: 5000\n")
    with pytest.raises(ConfigError, match=r"serve.yaml: unknown option 'ports'; did you mean 'port'\?$"):
        load_serving(file)
    assert refusal("serve", "--config", file) == f"{file}: unknown option 'ports'; did you mean 'port'?"


def test_every_option_is_described():
    assert all(field.description for field in ServeConfig.model_fields.values())
