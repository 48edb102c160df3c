"""What other systems lack, taken away in a process of its own: Windows has no fcntl, no fork and few signals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli_tools import ENVIRONMENT, write_pairs
from training_tools import PAIRS

# What is missing on Windows (macOS only lacks sched_getaffinity), gone before anything else is imported.
WITHOUT = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty"):
    sys.modules[name] = None
for name in ("SIGHUP", "SIGPIPE", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGKILL", "SIGCHLD", "SIGTSTP", "pthread_sigmask"):
    if hasattr(signal, name):
        delattr(signal, name)
for name in (
    # register_at_fork stays, for torch on Linux takes it for granted
    "fork", "forkpty", "sched_getaffinity", "set_blocking", "get_blocking", "geteuid", "getuid",
    "O_NONBLOCK", "O_NOCTTY", "mkfifo", "getloadavg",
):
    if hasattr(os, name):
        delattr(os, name)
from mirada.cli import main
codes = [main(arguments) for arguments in ARGUMENTS]
sys.exit(max(codes))
"""


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_training_and_translating_need_nothing_that_windows_lacks(model_folder: Path, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.tsv", PAIRS)
    (tmp_path / "source").write_text("the cat\n", encoding="utf-8")
    files = ["--input", tmp_path / "source", "--output", tmp_path / "output"]
    small = ["--max-updates", 1, "--embedding-dim", 8, "--hidden-size", 8, "--tokenizer", "word", "--device", "cpu"]
    commands = [
        ["translate", model_folder, "--device", "cpu", *files],
        ["train", "--tsv", pairs, "--model-dir", tmp_path / "model", "--valid-metrics", "", *small],
    ]
    text = WITHOUT.replace("ARGUMENTS", repr([[str(part) for part in command] for command in commands]))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert len((tmp_path / "output").read_text(encoding="utf-8").splitlines()) == 1
    assert (tmp_path / "model" / "model.safetensors").is_file()


def test_serving_says_what_it_needs() -> None:
    command = [["serve", "model"]]
    text = WITHOUT.replace("ARGUMENTS", repr(command))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, env=ENVIRONMENT, check=False)
    said = b"mirada: `mirada serve` runs on Linux and macOS; this system has no fork\n"
    assert (done.returncode, done.stderr) == (2, said)
