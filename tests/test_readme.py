"""The READMEs say what is there: every file in the tree, every command a real one, both languages alike."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from mirada.cli import COMMANDS

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.es.md")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_tree_is_the_one_the_docstrings_make():
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from file_tree import with_tree
    finally:
        sys.path.pop(0)
    page = text("docs/architecture.md")
    assert with_tree(page) == page, "run: python tools/file_tree.py"


@pytest.mark.parametrize("name", READMES)
def test_every_command_shown_exists(name):
    shown = set(re.findall(r"mirada (\w+) ", " ".join(re.findall(r"^```\w*\n(.*?)^```", text(name), re.S | re.M))))
    assert shown <= set(COMMANDS) | {"data"}
    assert set(COMMANDS) - {"demo"} <= shown


@pytest.mark.parametrize("name", READMES)
def test_every_flag_shown_is_one_that_train_or_another_command_knows(name):
    from mirada.config.configfile import leaves

    known = {leaf.replace("_", "-") for _, leaf in leaves()}
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/mirada/cli").glob("*.py"))
    for flag in re.findall(r"--([a-z][a-z-]+)", text(name)):
        assert flag in known or f'"--{flag}"' in sources, flag


def test_both_languages_have_the_same_sections_and_commands():
    english, spanish = (text(name) for name in READMES)
    assert english.count("\n## ") == spanish.count("\n## ")
    commands = [re.findall(r"^mirada [^#\n]+", part, re.M) for part in (english, spanish)]
    assert [line.split("#")[0].rstrip() for line in commands[0]] == [line.rstrip() for line in commands[1]]


def test_the_align_command_works_on_the_projects_own_data(tmp_path):
    """Its gold counts the marks at the ends of words as words of their own, which the command must say."""
    import shlex

    import tiny
    from cli_tools import works

    (line,) = re.findall(r"^mirada (align runs/luong [^#\n]+)", text("README.md"), re.M)
    works("data", "make", "--pairs", 30, "--out", tmp_path)
    model = tiny.write_folder(tmp_path / "luong", "luong")
    paths = {"runs/luong": model, **{f"test.{end}": tmp_path / f"test.{end}" for end in ("en", "es", "align")}}
    ran = works(*(paths.get(part, part) for part in shlex.split(line)))
    assert "against gold:" in ran.errors


def test_every_file_that_the_architecture_names_is_there():
    page = text("docs/architecture.md").split("<!-- tree -->")[0]
    named = {name for name in re.findall(r"`([\w./]+)`", page) if name.endswith((".py", "/"))}
    assert len(named) > 50
    assert {name for name in named if not any((root / name).exists() for root in (ROOT, ROOT / "src/mirada"))} == set()


def test_the_architecture_has_a_row_for_every_room():
    rooms = {path.parent.name for path in (ROOT / "src/mirada").glob("*/__init__.py")}  # no folder that git left empty
    table = text("docs/architecture.md").split("## The way of a sentence")[0]
    assert {room for room in rooms if f"`{room}/`" not in table} == set()
