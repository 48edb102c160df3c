"""The site: English and Spanish alike, every command one that parses, every Python block one that runs or compiles."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml

import mirada
from mirada.cli import COMMANDS, flags, main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS / "en").as_posix() for path in (DOCS / "en").rglob("*.md"))
LEARN = [page for page in PAGES if page.startswith("learn/")]
GLOSSARY = "glossary.md"
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)


def text(page: str, language: str) -> str:
    return (DOCS / language / page).read_text(encoding="utf-8")


def blocks(page: str, *kinds: str, language: str = "en") -> list[str]:
    return [code for kind, code in FENCED.findall(text(page, language)) if kind in kinds]


def without_remarks(code: str) -> str:
    """Code without comments and the blanks before them: these are in the page's own language."""
    return re.sub(r"\s*(?:^|(?<=\s))#.*$", "", code, flags=re.M)


def prose(page: str, language: str) -> str:
    return FENCED.sub("", text(page, language))


def test_both_languages_have_the_same_pages() -> None:
    spanish = sorted(path.relative_to(DOCS / "es").as_posix() for path in (DOCS / "es").rglob("*.md"))
    assert spanish == PAGES
    assert len(LEARN) == 8


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_have_the_same_parts(page: str) -> None:
    """Headings, equations, figures, folded answers, rows of tables, and code but for its comments."""
    shapes = []
    for language in ("en", "es"):
        said = prose(page, language)
        code = [(kind, without_remarks(code)) for kind, code in FENCED.findall(text(page, language))]
        equations = re.findall(r"^\$\$\n(.*?)\n\$\$$", said, re.S | re.M)
        figures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", said)
        levels = re.findall(r"^(#+) ", said, re.M)
        rows = len(re.findall(r"^\|", said, re.M))
        shapes.append((levels, code, equations, figures, said.count("<details"), rows))
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("language", ["en", "es"])
@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str, language: str) -> None:
    place = (DOCS / language / page).parent
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose(page, language))
    assert [name for name in targets if "://" not in name and not (place / name).exists()] == []


def test_every_page_is_in_the_menu() -> None:
    def leaves(part: object) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else []:
            yield from leaves(inner)

    listed = list(leaves(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))


def commands(code: str) -> Iterator[list[str]]:
    """The arguments of every `mirada …` in a block of shell."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars="<>|;&()")
        words.whitespace_split, words.commenters = True, "#"
        found: list[str] | None = None
        for word in [*words, ";"]:
            if found is not None and set(word) <= set("<>|;&()"):
                yield found
                found = None
            elif found is not None:
                found.append(word)
            elif word == "mirada":
                found = []


class Parsed(Exception):
    """The flags were read, and nothing more is to happen."""


def parse(arguments: Sequence[str]) -> None:
    """Read a command's flags, and the values of options, as the command itself does; nothing is run."""
    read = flags.Parser.read

    def stopped(parser: flags.Parser, given: Sequence[str]) -> None:
        from mirada.config.configfile import parse as options

        values = read(parser, given)
        if parser.prog in ("mirada train", "mirada translate"):
            options(flags.collect(values))
        raise Parsed

    with patch.object(flags.Parser, "read", stopped), patch("mirada.hub.fetch", Path), pytest.raises(Parsed):
        main([*arguments])


@pytest.mark.parametrize("page", PAGES)
def test_every_command_parses(page: str) -> None:
    for code in blocks(page, "bash"):
        for arguments in commands(code):
            assert arguments[0] in COMMANDS
            parse(arguments)


def test_a_command_that_does_not_parse_is_seen() -> None:
    (found,) = commands('echo "How are you?" | mirada translate runs/a \\\n  --beam 3 > out  # remark\n')
    assert found == ["translate", "runs/a", "--beam", "3"]
    with patch("mirada.cli.say") as said, pytest.raises(pytest.fail.Exception):
        parse(["train", "--hiden-size", "3"])
    assert "--hidden-size" in said.call_args[0][0]


def names(code: str) -> Iterator[tuple[str, str]]:
    """What a block takes from the package: (module, name)."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mirada"):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "mirada":
            yield "mirada", node.attr


@pytest.mark.parametrize("page", PAGES)
def test_every_python_block_compiles_and_its_names_are_there(page: str) -> None:
    for code in blocks(page, "python"):
        compile(code, page, "exec")
        for module, name in names(code):
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"
            assert module != "mirada" or name in (*mirada.__all__, "errors", "runtime")


@pytest.mark.parametrize("page", LEARN)
def test_the_pages_to_learn_from_say_what_comes_out(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every Python block runs, after those before it, and prints the block `output` behind it."""
    monkeypatch.chdir(ROOT)
    here: dict[str, object] = {}
    parts = [(kind, code) for kind, code in FENCED.findall(text(page, "en")) if kind in ("python", "output")]
    assert parts
    for number, (kind, code) in enumerate(parts):
        if kind == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(code, page, "exec"), here)
            expected = (
                parts[number + 1][1] if parts[number + 1 : number + 2] and parts[number + 1][0] == "output" else ""
            )
            assert said.getvalue() == expected


@pytest.mark.parametrize("page", LEARN)
def test_the_commands_to_learn_from_work(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that only look into the small models of docs/models."""
    monkeypatch.chdir(ROOT)
    for code in blocks(page, "bash"):
        for arguments in commands(code):
            if arguments[0] == "explain" and arguments[1].startswith("docs/models/") and "--output" not in arguments:
                with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
                    assert main(arguments) == 0


def test_both_glossaries_have_the_same_words_in_order() -> None:
    def order(word: str) -> bytes:
        return unicodedata.normalize("NFD", word.lower()).encode("ascii", "ignore")

    pairs = {}
    for language in ("en", "es"):
        rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text(GLOSSARY, language), re.M)[1:]
        assert len(rows) > 40
        words = [first for first, _, _ in rows]
        assert words == sorted(words, key=order)
        pairs[language] = {(first, second) if language == "en" else (second, first) for first, second, _ in rows}
    assert pairs["en"] == pairs["es"]


def test_small_models_stay_small() -> None:
    for folder in (DOCS / "models").iterdir():
        assert sum(path.stat().st_size for path in folder.iterdir()) < 1_000_000


def test_an_unknown_equation_is_no_surprise() -> None:
    """Every equation of the pages can be drawn, where the library that draws them is installed."""
    pytest.importorskip("latex2mathml", reason="pip install 'mirada[docs]'")
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "tools/site_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    for page in PAGES:
        drawn = hooks.on_page_markdown(text(page, "en"))
        assert "$$" not in drawn, page


def test_the_site_asks_nobody_else() -> None:
    """No font, script or picture of another host in the pages themselves or in the settings."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert settings["theme"]["font"] is False
    assert not {"extra_javascript", "extra_css"} & set(settings)
    for path in DOCS.rglob("*.md"):
        assert not re.search(r"!\[[^]]*\]\(https?:|<script|<img[^>]+https?:", path.read_text(encoding="utf-8")), path


def test_the_site_is_built_without_a_warning_and_whole_by_itself(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="pip install 'mirada[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert (built.returncode, built.stdout + built.stderr) == (0, "")
    for path in tmp_path.rglob("*.html"):
        foreign = re.findall(r"<(?:script|link|img)[^>]+https?://[^>]+>", path.read_text(encoding="utf-8"))
        assert foreign == [], path
    assert "<math" in (tmp_path / "es/learn/5-bahdanau.html").read_text(encoding="utf-8")
    assert "--max-minutes" in (tmp_path / "reference/commands.html").read_text(encoding="utf-8")
