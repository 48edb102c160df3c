"""A process that is started imports nothing from the working directory: a user's numpy.py is data, not a module."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import mirada
from compare_tools import TINY, in_this_process, request
from mirada.study.bottleneck.experiment import bottleneck
from mirada.study.bottleneck.settings import BottleneckRequest
from mirada.study.compare.comparison import compare
from mirada.study.compare.jobs import in_a_process

ROOT = Path(mirada.__file__).parent
TRAP = "open('ran', 'w').write('a file beside the data was executed'); raise SystemExit(9)\n"


@pytest.fixture
def trapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files named like modules that every run imports."""
    for name in ("numpy", "torch", "json", "mirada"):
        (tmp_path / f"{name}.py").write_text(TRAP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def first_in_a_process(folder: Path) -> int:
    """The first job of a study as users have it, the others without the seconds that a process takes."""
    first = not any(folder.parent.glob("*/test.json"))
    return (in_a_process if first else in_this_process)(folder)


def test_compare_runs_no_file_of_the_working_directory(trapped: Path) -> None:
    results = compare(request(trapped, systems=("luong-dot",)), print, launch=in_a_process)
    assert results["systems"][0]["failed"] == {}
    assert not (trapped / "ran").exists()


@pytest.mark.slow
def test_bottleneck_runs_no_file_of_the_working_directory(trapped: Path) -> None:
    small = BottleneckRequest(
        trapped / "out", settings=replace(TINY, classic_widths=(6,)), parts=("lengths",), device="cpu", quiet=True
    )
    assert bottleneck(small, print, launch=first_in_a_process)["failed"] == {}
    assert not (trapped / "ran").exists()


def commands(tree: ast.Module) -> list[list[str]]:
    """Every command line written out in a module: a list that begins with this Python."""
    return [
        [ast.unparse(part) for part in node.elts]
        for node in ast.walk(tree)
        if isinstance(node, ast.List) and node.elts and ast.unparse(node.elts[0]) == "sys.executable"
    ]


def test_every_process_that_is_started_is_isolated() -> None:
    """Wherever a process is started, the command is this Python with -P; by no other road is one started."""
    for path in sorted(ROOT.rglob("*.py")):
        tree, where = ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT)
        found = commands(tree)
        assert all(command[1] == "'-P'" for command in found), f"{where}: {found}"
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        names = [ast.unparse(call.func) for call in calls]
        started = [name for name in names if name.startswith("subprocess.")]
        assert len(started) <= len(found), f"{where} starts {started}, with {len(found)} isolated commands"
        other = ("os.system", "os.popen", "os.exec", "os.spawn", "os.posix_spawn", "pty.", "multiprocessing.")
        assert not [name for name in names if name.startswith(other)], where
