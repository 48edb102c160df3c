"""The language of what mirada says to people. The code says it in English; a catalogue of templates has it in others.

Data stays as it is in every language: what commands write for programs, JSON, names of options and metrics.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

LANGUAGES = ("en", "es")
VARIABLE = "MIRADA_LANG"  # what a command has chosen; in the environment, so that the processes it starts say the same
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")


def language() -> str:
    """What the command has chosen; without a command it is English."""
    chosen = os.environ.get(VARIABLE, "en")
    return chosen if chosen in LANGUAGES else "en"


def spoken(text: str) -> str:
    """What mirada says, in the language that the command has chosen."""
    if language() == "en":
        return text
    from mirada.messages.catalogue import catalogue

    return catalogue(language()).translated(text)


@contextmanager
def speaking(chosen: str) -> Iterator[None]:
    """Say everything in this language until the end of the block."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = chosen
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def language_of(arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """The language of a command: `--lang`, else what its environment asks for and there is, else English.

    The environment is read as gettext reads it: LANGUAGE (names with colons between, the best first) before LC_ALL,
    LC_MESSAGES and LANG, but not where these say C.
    """
    locale = next((environment[name] for name in LOCALE if environment.get(name)), "")
    plain = locale.split(".")[0] in ("C", "POSIX")
    names = locale if plain else environment.get("LANGUAGE") or locale
    wanted = [_asked(arguments), environment.get(VARIABLE, ""), *names.split(":")]
    known = (name[:2] for name in wanted if name[:2] in LANGUAGES and not name[2:3].isalnum())
    return next(known, "en")


def _asked(arguments: Sequence[str]) -> str:
    """What stands behind `--lang`; the command's parser says what is wrong with it."""
    for flag, following in zip(arguments, [*arguments, ""][1:], strict=True):
        if flag == "--":
            break
        if flag == "--lang" or flag.startswith("--lang="):
            return flag.removeprefix("--lang=") if "=" in flag else following
    return ""
