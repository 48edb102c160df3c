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


def test_trainings_beside_each_other_say_whole_lines_that_begin_with_their_names(monkeypatch: pytest.MonkeyPatch):
    """On a terminal too, where bars of both would overwrite each other; nothing of what they begin with."""
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monitor = Monitor(label="luong")
    monitor.note("12 pairs")
    monitor.start("luong", 10, 4)
    for done in range(5, 11):
        monitor.update(done, 1000, 2.5)
    monitor.note("epoch 1 [x]")
    monitor.stop()
    said = [f"{done} of 10 updates, loss 2.500" for done in (6, 8, 10)]
    assert stream.getvalue() == "".join(f"luong: {line}\n" for line in [*said, "epoch 1 [x]"])


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
