"""Messages in another language: templates with places `{0}`, `{1}` for what changes, from one gettext file a language.

A line is met by the template that has most words in common with it; what stands in its places may itself be a message.
"""

from __future__ import annotations

import itertools
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PLACE = re.compile(r"\{(\d+)\}")
ENTRY = re.compile(r'^msgid ((?:"(?:[^"\\]|\\.)*"\s*)+)^msgstr ((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE)
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
# What stands before the words of an indented line: a command and its arguments, or a name in a list.
COMMAND = re.compile(r" +(?:(?:mirada|echo|python|torchrun|-+[a-z]).*?(?:  # |$)|\S+ {2,}(?=\S))")
DEFAULT = re.compile(r"(.+?) \[([^\[\]]*)\]", re.DOTALL)
SEAM = re.compile(r"(?<=: )|(?=; )|(?<=; )|(?= \()|(?<=\()|(?=, )|(?<=, )")
SEVERAL = re.compile(r"(; |(?<=\)), )")
THOUSANDS = re.compile(r"(\d{1,3}(?:,\d{3})+)(\.\d+)?")
PERCENT = re.compile(r"\d+(?:\.\d+)?%")
FIXED = "\u00a0"  # a blank at which no line is broken
WIDTH = 118


class Catalogue:
    """What is said in English, and how in another language."""

    def __init__(self, entries: Mapping[str, str]) -> None:
        self._whole = {said: meant for said, meant in entries.items() if not PLACE.search(said)}
        templates = [(PLACE.split(said)[::2], meant) for said, meant in entries.items() if PLACE.search(said)]
        self._templates = sorted(templates, key=lambda template: -len("".join(template[0])))

    def translated(self, text: str) -> str:
        """A text of one line or several; what no template meets stays as it is."""
        return "".join(self._unit(part) if is_said else part for part, is_said in units(text))

    def _unit(self, text: str) -> str:
        core = one_line(text)
        if THOUSANDS.fullmatch(core):
            return numeral(core)
        found = self._phrase(core) or self._row(core) or self._tail(core)
        if found is None:
            return text
        return textwrap.fill(found, WIDTH, break_long_words=False, break_on_hyphens=False) if "\n" in text else found

    def _phrase(self, text: str) -> str | None:
        """The text as one template has it."""
        if text in self._whole:
            return self._whole[text]
        for literals, meant in self._templates:
            if (places := parted(text, literals)) is not None:
                said = [self._inner(place) for place in places]
                return PLACE.sub(lambda place, said=said: said[int(place[1])], meant)  # type: ignore[misc]
        return None

    def _tail(self, text: str) -> str | None:
        """The text with its last part as a template has it, behind a name or a number."""
        for seam in SEAM.finditer(text):
            head, tail = text[: seam.start()], text[seam.start() :]
            core = tail.strip()
            if (found := self._phrase(core) or self._row(core)) is not None:
                return self._inner(head) + tail[: len(tail) - len(tail.lstrip())] + found
        return None

    def _inner(self, text: str) -> str:
        """What stands in a place: names, numbers and quotations as they are, messages translated."""
        core = text.strip()
        if " " not in core:
            return text.replace(core, numeral(core))
        if core[0] in "'\"" and core[-1] == core[0]:
            return text
        found = self._row(core) or self._phrase(core) or self._tail(core)
        return text if found is None else text.replace(core, found)

    def _row(self, text: str) -> str | None:
        """Several messages in a row, each as a template has it."""
        parts = SEVERAL.split(text)
        found = [self._phrase(part) for part in parts[::2]]
        if len(parts) == 1 or None in found:
            return None
        return "".join(map(str, itertools.chain.from_iterable(itertools.zip_longest(found, parts[1::2], fillvalue=""))))


def numeral(text: str) -> str:
    """A number as Spanish has it: thousands by blanks where there are five digits or more, a blank before a percent."""
    if found := THOUSANDS.fullmatch(text):
        return found[1].replace(",", FIXED if len(found[1]) > len("9,999") else "") + (found[2] or "")
    return text.replace("%", f"{FIXED}%") if PERCENT.fullmatch(text) else text


def parted(text: str, literals: list[str]) -> list[str] | None:
    """What stands between the fixed parts of a template; None where the text is not of that template."""
    first, *middle, last = literals
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return None
    rest, places = text[len(first) : len(text) - len(last)], []
    for literal in middle:
        place, found, rest = rest.partition(literal)
        if not found:
            return None
        places.append(place)
    return [*places, rest]


def units(text: str) -> Iterator[tuple[str, bool]]:
    """A text in pieces, each with whether it is said: paragraphs, and lines where some are indented.

    Commands, names in lists, and blanks around are not; nor are the brackets around a default.
    """
    for paragraph in re.split(r"(\n\s*\n)", text):
        indented = re.search(r"^[ ]", paragraph, re.MULTILINE)
        for line in re.split(r"(\n)", paragraph) if indented else [paragraph]:
            yield from _line(line)


def _line(line: str) -> Iterator[tuple[str, bool]]:
    before = COMMAND.match(line)
    start = before.end() if before else 0
    rest = line[start:]
    core = rest.strip()
    at = rest.find(core)
    yield line[:start] + rest[:at], False
    if default := DEFAULT.fullmatch(core):
        yield from ((default[1], True), (" [", False), (default[2], True), ("]", False))
    else:
        yield core, bool(core)
    yield rest[at + len(core) :], False


def one_line(text: str) -> str:
    """A paragraph as one line."""
    return re.sub(r"\s*\n\s*", " ", text)


def entries(text: str) -> dict[str, str]:
    """What a gettext file (.po) holds: msgid and msgstr, its head left out."""
    found = {_joined(said): _joined(meant) for said, meant in ENTRY.findall(text)}
    return {said: meant for said, meant in found.items() if said and meant}


def _joined(quoted: str) -> str:
    return "".join(json.loads(part) for part in QUOTED.findall(quoted))


@cache
def catalogue(language: str) -> Catalogue:
    """The catalogue of a language."""
    return Catalogue(entries((Path(__file__).parent / f"{language}.po").read_text(encoding="utf-8")))
