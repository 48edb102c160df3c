"""What README and pages show is run, in a folder of small files and models: each command, each block of Python.

Trainings make two updates there. The Spanish pages have the same code (test_site.py, test_readme.py).
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

import mirada
import tiny
from cli_tools import mirada as run
from compare_tools import TINY, in_this_process
from mirada.study.bottleneck import settings
from mirada.study.compare import jobs

ROOT = Path(__file__).parent.parent
GUIDES = ("anywhere", "data", "metrics", "notebook", "serve", "training")
PAGES = [
    Path("README.md"),
    *(Path(f"docs/{name}.md") for name in GUIDES),
    *sorted(path.relative_to(ROOT) for path in ROOT.glob("docs/en/**/*.md") if "learn" not in path.parts),
    *sorted(path.relative_to(ROOT) for path in ROOT.glob("docs/en/learn/*.md")),
]
MODEL = re.compile(r"(?:runs|mirada-demo)/[\w-]+")
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
# What stands on the pages and is no command of mirada's: it installs, asks a service, or begins processes.
OTHERS = {"pip", "curl", "python", "make", "torchrun", "git", "cd", "benchmarks/gpu.sh"}
SOURCES, TARGETS = tiny.SOURCES * 2, tiny.TARGETS * 2
LINES = 20  # of the files that `mirada data make` makes
OTHERWISE = {"train": ("", ""), "dev": (" today", " hoy"), "test": (" here", " aquí")}  # what the splits end in
KEYS = {
    "article": "source",
    "question": "source",
    "story": "source",
    "turns": "source",
    "summary": "target",
    "answer": "target",
    "reply": "target",
}


class Shown(NamedTuple):
    """A command as a page shows it: its words, what it is given, and the file that takes its output."""

    words: list[str]
    given: str
    output: str


def shown(code: str) -> Iterator[Shown]:
    """The commands of a block, line by line; what echo and printf say is given to the next."""
    for line in code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="<>|;&()")
        lexer.whitespace_split, lexer.commenters = True, "#"
        words: list[str] = []
        files = {"<": "", ">": ""}
        said = ""
        pending = ""
        for word in [*lexer, ";"]:
            if pending:
                files[pending], pending = word, ""
            elif word in files:
                pending = word
            elif word in ("|", ";", "&&"):
                if words and words[0] in ("echo", "printf"):
                    said = words[1].replace("\\n", "\n").replace("\\t", "\t") + "\n" * (words[0] == "echo")
                elif words:
                    yield Shown(words, Path(files["<"]).read_text(encoding="utf-8") if files["<"] else said, files[">"])
                words, files = [], {"<": "", ">": ""}
            else:
                words.append(word)


def left_out(arguments: list[str]) -> str:
    """Why a command is not run here, but only read (test_site.py); an empty string for one that is."""
    reasons = {
        "serve": "answers until it is stopped: tests/serving",
        "push": "asks the hub: tests/hub",
        "import": "wants a model of another toolkit: tests/importing",
        "demo": "has a test of its own: tests/study",
    }
    signs = {"--server": "asks a service: tests/test_client.py", "ray": "wants a cluster: tests/scaling"}
    signs |= {"web": "fetches a package: tests/export", "ctranslate2": "wants a package: tests/export"}
    if any(one.startswith("hf:") for one in arguments):
        return "asks the hub: tests/hub"
    return reasons.get(arguments[0]) or next((signs[one] for one in arguments if one in signs), "")


SIZES = ["--embedding-dim", "16", "--hidden-size", "16"]
FEWER = {
    "train": ["--max-updates", "2", "--valid-every", "1", *SIZES],
    "compare": ["--budget", "2updates", "--seeds", "1", "--quiet", *SIZES],
    "bottleneck": ["--parts", "cost", "--quiet"],
    "data make": ["--pairs", "60"],
    "data invent": ["--pairs", "9"],
}


def in_small(arguments: list[str]) -> list[str]:
    """The same command, for a test: two updates, few pairs, one process."""
    name = " ".join(arguments[:2]) if arguments[0] == "data" else arguments[0]
    more = FEWER.get(name, [])
    if name == "train" and "transformer" in arguments:
        more = more[:-2]  # it has no hidden_size
    if "--models" in arguments or ("--kind" in arguments and name == "data make"):
        more = []
    elif name == "compare" and "--src" not in arguments:
        more = [*more, "--src", "train.en", "--tgt", "train.es"]
    if "--engine" in arguments:
        place = arguments.index("--engine")
        arguments = arguments[:place] + arguments[place + 2 :]
    if "--workers" in arguments and name != "translate":
        place = arguments.index("--workers")
        arguments = arguments[:place] + arguments[place + 2 :]
    return [*arguments, *more]


def prepared(arguments: list[str]) -> list[str]:
    """Arguments with patterns filled in; models that are read are there, those that are made are not."""
    made = {arguments[place + 1] for place, one in enumerate(arguments[:-1]) if one in ("--model-dir", "--out")}
    for one in made:
        shutil.rmtree(one, ignore_errors=True)
    models = [one for one in arguments if MODEL.fullmatch(one) and one not in made]
    if not all(Path(one).exists() for one in models):  # all of them, so that they have one vocabulary
        for one in models:
            shutil.rmtree(one, ignore_errors=True)
            tiny.write_folder(Path(one), one.split("/")[1] if one.split("/")[1] in tiny.MODELS else "luong")
    found: list[str] = []
    for one in arguments:
        found += sorted(map(str, Path().glob(one))) if "*" in one else [one]
    return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that pages name; trainings and experiments in small, in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jobs, "in_a_process", in_this_process)
    monkeypatch.setattr(settings, "QUICK", TINY)
    monkeypatch.setattr(settings, "Settings", lambda: TINY)
    small = {"embedding_dim": 16, "hidden_size": 16}
    monkeypatch.setattr(mirada, "train", partial(mirada.train, max_updates=2, quiet=True, **small))
    monkeypatch.setattr(mirada, "compare", partial(mirada.compare, budget="2updates", **small))
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (tmp_path / "translation").mkdir()
    for name in ("train", "dev", "test", "new", "corpus", "all", "a", "b", "out", "translation/train", "words"):
        put_pairs(name, *OTHERWISE.get(name, ("", "")))
    for name in ("names", "old-new", "mine", "lemmas"):
        Path(f"{name}.tsv").symlink_to("words.tsv")
    for name in ("talks", "asked"):
        Path(f"{name}.jsonl").symlink_to("words.jsonl")
    for name in ("new", "out", "first", "summaries"):
        put(f"{name}.txt", TARGETS)
    put("test.align", ["0-0"] * len(SOURCES))
    put("values.tsv", TARGETS)
    files = "data: {src: train.en, tgt: train.es, dev_src: dev.en, dev_tgt: dev.es}"
    put("sweep.yaml", [files, "training: {max_updates: 2}", "sweep: {vary: {model.decoder: [luong, classic]}}"])
    return tmp_path


def put_pairs(name: str, *ends: str) -> None:
    """Write the pairs in every form: two files, a table of columns, JSON lines."""
    sources, targets = ([line + end for line in side] for side, end in zip((SOURCES, TARGETS), ends, strict=True))
    put(f"{name}.en", sources)
    put(f"{name}.es", targets)
    pairs = list(zip(sources, targets, strict=True))
    put(f"{name}.tsv", [f"{source}\t{target}\tV;SG\t{target}" for source, target in pairs])
    texts = [{"source": source, "target": target} for source, target in pairs]
    put(f"{name}.jsonl", [json.dumps({key: row[side] for key, side in KEYS.items()}) for row in texts])


def put(name: str, lines: list[str]) -> None:
    """Write a file of lines, and the same packed."""
    content = "".join(f"{line}\n" for line in lines).encode()
    Path(name).write_bytes(content)
    Path(f"{name}.gz").write_bytes(gzip.compress(content))


def run_block(code: str) -> None:
    """Run the commands of a block of shell."""
    for words, given, output in shown(code):
        assert words[0] in {"mirada", *OTHERS}, words
        if words[0] != "mirada" or left_out(words[1:]):
            continue
        ran = run(*in_small(prepared(words[1:])), given=given)
        assert ran.code == 0, (words, ran.errors)
        if words[1:3] == ["data", "make"]:
            shorten(Path(words[words.index("--out") + 1]))
        if output:
            Path(output).write_text(ran.output, encoding="utf-8")


def shorten(folder: Path) -> None:
    """Leave the first lines of each file."""
    for path in folder.iterdir():
        lines = path.read_text(encoding="utf-8").split("\n")[:LINES]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=str)
@pytest.mark.usefixtures("world")
def test_what_a_page_shows_runs(page: Path) -> None:
    names: dict[str, object] = {
        "mirada": mirada,
        "sources": SOURCES,
        "targets": TARGETS,
        "test_sources": SOURCES,
        "test_targets": TARGETS,
        "pairs": list(zip(SOURCES, TARGETS, strict=True)),
    }
    for kind, code in FENCED.findall((ROOT / page).read_text(encoding="utf-8")):
        if kind == "python" and "learn" not in page.parts and "Client(" not in code and "ana/" not in code:
            prepared(re.findall(r'load\("([^"]+)"\)', code))
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, str(page), "exec"), names)
        elif kind == "yaml":
            Path("sweep.yaml").write_text(code.replace("2000", "2").replace("trials: 20", "trials: 1"))
        elif kind in ("bash", ""):
            run_block(code)
