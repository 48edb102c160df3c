"""Corpora of other jobs than translation, by name: commands (SCAN), inflection, questions about stories."""

from __future__ import annotations

from mirada.corpora import scan
from mirada.corpora.inflection import inflections
from mirada.corpora.stories import stories
from mirada.corpora.tables import Tables
from mirada.errors import ConfigError

SCAN = {"scan": scan.simple, "scan-length": scan.by_length, "scan-jump": scan.jump}
DRAWN = {"inflection": (inflections, 6000), "stories": (stories, 9000)}  # and how many training pairs unless said
KINDS = (*SCAN, *DRAWN)


def make_job(kind: str, *, pairs: int | None, seed: int) -> Tables:
    """Make the corpus of one of KINDS; raises ConfigError for `pairs` of SCAN, which is whole, and as the makers do."""
    if kind in SCAN:
        if pairs is not None:
            raise ConfigError(f"--pairs does nothing with --kind {kind}: its grammar has 20,910 commands, all are made")
        return SCAN[kind](seed)
    make, usual = DRAWN[kind]
    return make(usual if pairs is None else pairs, seed)
