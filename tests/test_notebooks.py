"""The notebooks of docs/: every cell runs, in order, where Jupyter would run it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

FOLDER = Path(__file__).parent.parent / "docs/notebooks"
SHORTER = {"range(3000)": "range(400)", "pairs[200:]": "pairs[40:]", "max_updates=300": "max_updates=3"}
SHORTER |= {"pairs[:100], pairs[100:200]": "pairs[:20], pairs[20:40]", "hidden_size=64": "hidden_size=8"}


def cells(name: str) -> list[str]:
    """The code of a notebook's cells; none has outputs, which would grow old."""
    found = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert found["nbformat"] == 4
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    return ["".join(cell["source"]) for cell in code]


def run(code: str, here: dict[str, Any]) -> Any:
    """Run a cell; returns the value of its last line, drawn as a notebook draws it."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), here)
    if not isinstance(last, ast.Expr):
        return None
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), here)
    assert repr(value)
    if hasattr(value, "_repr_html_") and type(value).__module__.startswith("mirada"):
        assert value._repr_html_()
    return value


@pytest.mark.parametrize("name", ["learn.ipynb", "use.ipynb"])
def test_every_cell_runs(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(FOLDER)
    mpl.use("agg")
    here: dict[str, Any] = {}
    values = []
    for code in cells(name):
        for long, short in SHORTER.items():
            code = code.replace(long, short)  # noqa: PLW2901
        values.append(run(code, here))
    if name == "learn.ipynb":
        assert "¿Por qué estamos en Lima?" in capsys.readouterr().out
        assert max(next(value for value in values if isinstance(value, tuple))) < 1e-6
    else:
        assert isinstance(values[-1], str)


def test_what_is_made_shorter_is_there() -> None:
    code = "\n".join(cells("use.ipynb"))
    assert [part for part in SHORTER if part not in code] == []
