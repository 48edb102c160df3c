"""What mkdocs calls while it builds the site: equations become MathML, and the commands' help is put in its page."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

EQUATION = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.S | re.M)
COMMANDS = "<!-- commands -->\n"


def mathml(found: re.Match[str]) -> str:
    """An equation between two lines of $$ as MathML, which browsers draw by themselves."""
    from latex2mathml.converter import convert

    rows = [convert(line, display="block") for line in found[1].split("\\\\\n")]
    return '<div class="equation" style="margin: 1em 0">' + "".join(rows) + "</div>"


def help_of(*command: str) -> str:
    """All that `mirada COMMAND --help-all` says."""
    from mirada.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        main([*command, "--help-all"])
    return said.getvalue()


def commands() -> str:
    """Every command's help, one section each."""
    from mirada.cli import COMMANDS as NAMES

    parts = [("data", "make"), ("data", "check"), ("data", "prepare"), ("data", "invent")]
    every = [one for name in NAMES for one in (parts if name == "data" else [(name,)])]
    return "\n".join(f"## {' '.join(one)}\n\n```text\n{help_of(*one)}```\n" for one in every)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Mkdocs hands over each page before it becomes HTML."""
    markdown = EQUATION.sub(mathml, markdown)
    return markdown.replace(COMMANDS, commands()) if COMMANDS in markdown else markdown
