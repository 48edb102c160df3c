"""Outside strings made harmless, one function a medium: names of files and models, sentences, a model's outputs.

A terminal obeys escape sequences, a table calculator formulas, Markdown and XML their own marks; characters that turn
the direction of writing show another text than there is. Every string that mirada did not write itself goes through
the function of the medium that it is shown in, once. What is data stays as it is: outputs of `translate`, JSON.
"""

from __future__ import annotations

import re
import unicodedata
from html import escape

JOINERS = "\u200c\u200d"  # invisible, and part of the spelling of many languages
FORMULA = tuple("=+-@＝＋－＠")
MARKS = "\\`*_|<>"
BEGINNING = re.compile(r"\A(\d+(?=[.)]\s)|(?=#|[-+=~]+(?:\s|$)|\[[^\]]*\]:))")  # what would be a list, a heading, …


def terminal(text: str) -> str:
    r"""One line of text, with what a terminal would obey or hide written as an escape: `\x1b`, `\n`, `\u202e`."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    """A character, or the escape of one that controls the terminal or the direction of writing, or is none at all."""
    category = unicodedata.category(char)
    if category in ("Cc", "Cs", "Zl", "Zp") or char in "\ufffe\uffff" or (category == "Cf" and char not in JOINERS):
        return char.encode("unicode_escape").decode("ascii")
    return char


def markdown(text: str) -> str:
    """One line of Markdown that shows the text as it is."""
    text = terminal(" ".join(text.split()).replace("\\", "\\\\"))
    for mark in MARKS[1:]:
        text = text.replace(mark, f"\\{mark}")
    return BEGINNING.sub(r"\1\\", text.replace("](", "]\\(").replace("&", "&amp;"))


def csv_cell(text: str) -> str:
    """A cell that a table calculator takes for text: what would begin a formula has an apostrophe before it."""
    text = terminal(text)
    return f"'{text}" if text.startswith(FORMULA) else text


def xml(text: str) -> str:
    """The text within an element or an attribute of HTML or SVG, which must be without control characters."""
    return escape(terminal(text))
