"""An exported model runs where torch is not installed, and the command line asks for nothing more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli_tools import ENVIRONMENT, works

ONE = pytest.mark.parametrize("model_folder", ["transformer"], indirect=True)
NO_TORCH = "import sys; sys.modules['torch'] = None; from mirada.cli import main; sys.exit(main({!r}))"


@ONE
@pytest.mark.parametrize("command", [["translate", "--alignment", "hard"], ["score", "--src", "one", "--tgt", "one"]])
def test_commands_run_without_torch(exported_folder: Path, tmp_path: Path, command: list[str]) -> None:
    """A process in which `import torch` fails."""
    (tmp_path / "one").write_text("the red fox\n")
    arguments = [command[0], str(exported_folder), *command[1:]]
    ran = subprocess.run(
        [sys.executable, "-c", NO_TORCH.format(arguments)],
        cwd=tmp_path,
        input=b"the red fox\n" if command[0] == "translate" else b"",
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )
    here = works(*[part if part != "one" else str(tmp_path / "one") for part in arguments], given="the red fox\n")
    assert (ran.returncode, ran.stderr.decode(), ran.stdout.decode()) == (0, here.errors, here.output)
