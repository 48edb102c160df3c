"""The files of the jobs in docs/jobs.md: train.tsv, dev.tsv and test.tsv of each, from the data sets as they are.

`DATA` is a folder of data sets as benchmarks/recipes/*.yaml name them. Columns stay what they are in the set; what a
job needs and no set has is added as a further column, said at each maker.
"""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

Row = list[str]
SPLITS = ("train", "dev", "test")
ACT_VALUE = re.compile(r"= (.*?) \)(?: ;|$)")


def lines(path: Path) -> Iterator[str]:
    """Lines of a plain, .gz or .xz file."""
    opened: dict[str, Callable[..., Iterable[bytes]]] = {".gz": gzip.open, ".xz": lzma.open}
    with opened.get(path.suffix, open)(path, "rb") as stream:
        for raw in stream:
            yield raw.decode("utf-8").removesuffix("\n")


def table(path: Path) -> list[Row]:
    """Rows of a tab-separated file, whichever way it is packed: PATH, PATH.gz or PATH.xz."""
    for ending in ("", ".gz", ".xz"):
        packed = path.with_name(path.name + ending)
        if packed.exists():
            return [line.split("\t") for line in lines(packed)]
    raise SystemExit(f"{path}: not there, nor as .gz or .xz; --data names the folder of data sets")


def spanish(data: Path) -> Mapping[str, list[Row]]:
    """lemma, features, form."""
    return {part: table(data / "sigmorphon2023_inflection" / f"spa.{part}.tsv") for part in SPLITS}


def polish(data: Path) -> Mapping[str, list[Row]]:
    """lemma, form, features; 700 rows to train on."""
    folder = data / "sigmorphon2022_inflection"
    parts = {"train": "train_small", "dev": "dev", "test": "test"}
    return {part: table(folder / f"pol.{name}.tsv") for part, name in parts.items()}


def babi(data: Path) -> Mapping[str, list[Row]]:
    """task, story, question, answer, supporting facts."""
    return {part: table(data / "babi_qa_1k" / f"{part}.tsv") for part in SPLITS}


def hebrew(data: Path) -> Mapping[str, list[Row]]:
    """English name, Hebrew letters with blanks between them, count."""
    return {part: table(data / "wikidata_transliteration" / f"en_hebrew.{part}.tsv") for part in SPLITS}


def synopses(data: Path) -> Mapping[str, list[Row]]:
    """package, source package, long description, synopsis."""
    return {part: table(data / "debian_synopsis" / f"{part}.tsv") for part in SPLITS}


def acts(data: Path) -> Mapping[str, list[Row]]:
    """As the set: acts in column 6, the sentence in column 7; and the acts' values, for values.tsv."""
    return {part: table(data / "sgd_dialogue" / f"{part}.tsv") for part in SPLITS}


def act_values(row: Row) -> list[str]:
    """The values that a sentence for these acts must hold; True, False and words for "any" need not stand in it."""
    found = ACT_VALUE.findall(row[5])
    return [value for value in found if value.lower() not in ("true", "false", "dontcare")]


def tatoeba(data: Path, size: int) -> Mapping[str, list[Row]]:
    """English, Spanish: the first `size` training pairs (the set is shuffled)."""
    sides = {}
    for part in SPLITS:
        ending = ".gz" if part == "train" else ""
        both = [lines(data / "tatoeba_en_es" / f"{part}.{side}{ending}") for side in ("en", "es")]
        sides[part] = [list(pair) for pair in zip(*both, strict=True)]
    return {**sides, "train": sides["train"][:size]}


MAKERS: Mapping[str, Callable[[Path], Mapping[str, list[Row]]]] = {
    "spanish": spanish,
    "polish": polish,
    "babi": babi,
    "hebrew": hebrew,
    "synopses": synopses,
    "acts": acts,
    "tatoeba-3000": lambda data: tatoeba(data, 3000),
    "tatoeba-50000": lambda data: tatoeba(data, 50000),
}


def prepare(name: str, data: Path, out: Path) -> None:
    """Write the three files of a job, unless they are there; `PART.values.tsv` too for acts."""
    if all((out / f"{part}.tsv").exists() for part in SPLITS):
        return
    out.mkdir(parents=True, exist_ok=True)
    for part, rows in MAKERS[name](data).items():
        write(out / f"{part}.tsv", rows)
        if name == "acts":
            write(out / f"{part}.values.tsv", [act_values(row) for row in rows])


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as a tab-separated file."""
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8", newline="\n")
