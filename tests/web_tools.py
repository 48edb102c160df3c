"""What the tests of the page share: Node, the package onnxruntime-web, and scripts that import the page's modules."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from mirada.export.web import OWN, SHARED
from mirada.export.web_runtime import cached

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no Node on this machine (Debian: apt install nodejs)")
needs_runtime = pytest.mark.skipif(
    not cached().is_dir(),
    reason=f"no {cached()}: any `mirada export MODEL --to web` puts ONNX Runtime for the Web there",
)


def modules(folder: Path) -> Path:
    """The page's modules where Node finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, names in (("export", OWN), ("explain", SHARED)):
        for name in names:
            (folder / name).write_bytes(files("mirada").joinpath(part, "static", name).read_bytes())
    (folder / "package.json").write_text('{"type": "module"}')
    return folder


def node(folder: Path, script: str, given: Any) -> Any:
    """What a script prints as JSON, that reads `given` as JSON from given.json; folder holds the modules."""
    assert NODE is not None
    (folder / "given.json").write_text(json.dumps(given), encoding="utf-8")
    head = 'import {readFileSync} from "node:fs";\nconst given = JSON.parse(readFileSync("given.json", "utf-8"));\n'
    (folder / "script.js").write_text(head + script, encoding="utf-8")
    ran = subprocess.run([NODE, "script.js"], cwd=folder, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return json.loads(ran.stdout)
