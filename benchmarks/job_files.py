"""The files of docs/jobs.md and docs/results.md: train.tsv, dev.tsv and test.tsv, from the data sets as they are.

`data` is a folder of data sets. Columns stay what they are in the set; where they do not, the maker says so.
"""

from __future__ import annotations

import gzip
import lzma
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from unicodedata import normalize

from mirada.files import write_text

Row = list[str]
Tables = Mapping[str, list[Row]]
SPLITS = ("train", "dev", "test")
MULTI30K = {
    "train": "train",
    "dev": "val",
    "test_2016": "test_2016_flickr",
    "test_2017": "test_2017_flickr",
    "test_coco": "test_2017_mscoco",
}
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


def inflection_2023(data: Path, language: str) -> Tables:
    """lemma, features, form."""
    return {part: table(data / "sigmorphon2023_inflection" / f"{language}.{part}.tsv") for part in SPLITS}


def inflection_2022(data: Path, language: str, size: str) -> Tables:
    """lemma, form, features; 700 (small) or 7,000 (large) rows to train on.

    Korean syllables come apart into their letters (Unicode's NFD), of which two forms have equal ones exactly if they
    are equal: so what is exact stays the same.
    """
    folder = data / "sigmorphon2022_inflection"
    parts = {"train": f"train_{size}", "dev": "dev", "test": "test"}
    rows = {part: table(folder / f"{language}.{name}.tsv") for part, name in parts.items()}
    if language != "kor":
        return rows
    return {part: [[normalize("NFD", text) for text in row] for row in several] for part, several in rows.items()}


def cmudict(data: Path) -> Tables:
    """word, phonemes with blanks between them; a word has a row for each of its pronunciations."""
    return {part: table(data / "cmudict_g2p" / f"{part}.tsv") for part in SPLITS}


def babi(data: Path) -> Tables:
    """task, story, question, answer, supporting facts."""
    return {part: table(data / "babi_qa_1k" / f"{part}.tsv") for part in SPLITS}


def names(data: Path, pair: str) -> Tables:
    """English name, letters of the other writing with blanks between them, count."""
    return {part: table(data / "wikidata_transliteration" / f"{pair}.{part}.tsv") for part in SPLITS}


def synopses(data: Path) -> Tables:
    """package, source package, long description, synopsis."""
    return {part: table(data / "debian_synopsis" / f"{part}.tsv") for part in SPLITS}


def acts(data: Path) -> Tables:
    """As the set: acts in column 6, the sentence in column 7; and the acts' values, for values.tsv."""
    return {part: table(data / "sgd_dialogue" / f"{part}.tsv") for part in SPLITS}


def act_values(row: Row) -> list[str]:
    """The values that a sentence for these acts must hold; True, False and words for "any" need not stand in it."""
    found = ACT_VALUE.findall(row[5])
    return [value for value in found if value.lower() not in ("true", "false", "dontcare")]


def tatoeba(data: Path, size: str = "") -> Tables:
    """English, Spanish: the first `size` training pairs (the set is shuffled), or all."""
    pairs = parallel(data / "tatoeba_en_es", ("en", "es"))
    return {**pairs, "train": pairs["train"][: int(size) if size else None]}


def debian(data: Path) -> Tables:
    """English, Spanish."""
    return parallel(data / "debian_en_es", ("en", "es"))


def multi30k(data: Path, source: str, target: str, kind: str) -> Tables:
    """Two sides of captions; `tokenised`: as the set's own tokenised files (moses.py), or raw."""
    from benchmarks.moses import lower_tokenised

    found = {}
    for part, name in MULTI30K.items():
        rows = parallel(data / "multi30k", (source, target), {part: name})[part]
        sides = zip((source, target), zip(*rows, strict=True), strict=True)
        columns = [lower_tokenised(side, language) if kind == "tokenised" else side for language, side in sides]
        found[part] = [[text.strip() for text in row] for row in zip(*columns, strict=True)]
    return found


def parallel(folder: Path, sides: tuple[str, str], parts: Mapping[str, str] | None = None) -> Tables:
    """Rows of two files of lines, whichever way they are packed; `parts`: how the set calls them."""
    found = {}
    for part, name in (parts or dict(zip(SPLITS, SPLITS, strict=True))).items():
        columns = [[" ".join(row) for row in table(folder / f"{name}.{side}")] for side in sides]
        found[part] = [list(pair) for pair in zip(*columns, strict=True)]
    return found


# By the name that a recipe's `files` begins with; what follows the name there is given to the maker.
MAKERS: Mapping[str, Callable[..., Tables]] = {
    "inflection-2022": inflection_2022,
    "inflection-2023": inflection_2023,
    "cmudict": cmudict,
    "babi": babi,
    "names": names,
    "synopses": synopses,
    "acts": acts,
    "tatoeba": tatoeba,
    "debian": debian,
    "multi30k": multi30k,
}


def prepare(files: str, data: Path, out: Path) -> None:
    """Write the files of a job, unless all are there, which the last one tells; `PART.values.tsv` too for acts.

    `files` is the name of a maker and what it is given, such as `inflection-2022 pol small`.
    """
    if (out / "train.tsv").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    name, *given = files.split()
    tables = MAKERS[name](data, *given)
    for part in sorted(tables, key="train".__eq__):
        if name == "acts":
            write(out / f"{part}.values.tsv", [act_values(row) for row in tables[part]])
        write(out / f"{part}.tsv", tables[part])


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as a tab-separated file."""
    write_text(path, "".join("\t".join(row) + "\n" for row in rows))
