"""What a person sees of a training: lines where there is no terminal, a bar where there is one, or nothing."""

from __future__ import annotations

import io
import sys

import pytest

from mirada.train.progress import Monitor


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def show(monitor: Monitor) -> None:
    monitor.note("before [bold]")
    monitor.start("luong", 10, 4)
    monitor.update(5, 1000, 2.5)
    monitor.note("epoch 1: 100% [x]")
    monitor.stop()
    monitor.stop()
    monitor.note("after")


def test_plain_lines_without_a_terminal(capsys):
    show(Monitor())
    shown = capsys.readouterr()
    assert shown.err == "before [bold]\nepoch 1: 100% [x]\nafter\n"
    assert shown.out == ""


def test_quiet_shows_nothing(capsys, monkeypatch):
    show(Monitor(quiet=True))
    monkeypatch.setattr(sys, "stderr", Terminal())
    show(Monitor(quiet=True))
    assert sys.stderr.getvalue() == ""
    assert capsys.readouterr() == ("", "")


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    show(Monitor())
    shown = stream.getvalue()
    assert "luong" in shown
    assert "5/10" in shown
    assert "tokens/s · loss 2.500" in shown
    for line in ("before [bold]", "epoch 1: 100% [x]", "after"):  # as they are: no markup is read in them
        assert line in shown
