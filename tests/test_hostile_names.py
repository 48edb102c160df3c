"""Names are texts as well: what stands in the name of a file, a folder or a model is shown, and not obeyed."""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

import tiny
from cli_tools import Ran, mirada, write
from compare_tools import in_this_process, request, write_pairs
from mirada import escape
from mirada.study import demo
from mirada.study.bottleneck import settings
from mirada.study.compare import jobs
from mirada.study.compare.comparison import compare

# A line end, escape sequences of two widths, right to left, a formula, marks of XML, of Markdown, of mathtext.
MONSTER = "=\x1b[2J\u202e\u009b\n<svg onload=alert(1)>$\\undefined{$|`"
NAMES = ("$\\undefined{$", "=cmd|calc!A1", "<svg onload=alert(1)>", "# a\nb", "\x1b[2J\ufffe", "\u202e\u009bx", "_ $x$")
OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def obeyed(text: str) -> set[str]:
    """The characters that a terminal would obey or hide."""
    return {char for char in text if unicodedata.category(char) in OBEYED and char != "\n"}


# --- one function a medium -------------------------------------------------------------------------------------------


def test_a_terminal_is_shown_escapes_and_letters_stay() -> None:
    assert escape.terminal("a\x1b[2J\u202e\u009b\n\udcff\u2028\ufffeb") == r"a\x1b[2J\u202e\x9b\n\udcff\u2028\ufffeb"
    for text in ("¿Cómo?", "قطة", "می\u200cخواهم", "क्\u200dष", "漢字\u3000、", "1\u00a0000", "👩\u200d🔬"):
        assert escape.terminal(text) == text


def test_markdown_shows_the_text() -> None:
    assert escape.markdown("a\n\n# b") == "a # b"
    assert escape.markdown("<svg onload=x>|`*_\\") == "\\<svg onload=x\\>\\|\\`\\*\\_\\\\"
    assert escape.markdown("[a](http://b) &lt;") == "[a]\\(http://b) &amp;lt;"
    assert [escape.markdown(text) for text in ("# a", "- a", "1. a", "[a]: b", "---", "-0.3 [1, 2]", "")] == [
        "\\# a",
        "\\- a",
        "1\\. a",
        "\\[a]: b",
        "\\---",
        "-0.3 [1, 2]",
        "",
    ]


def test_a_table_calculator_gets_no_formula() -> None:
    assert [escape.csv_cell(text) for text in ("=1", "+1", "-1", "@a", "＝1", "a=1", "\t=1", "")] == [
        "'=1",
        "'+1",
        "'-1",
        "'@a",
        "'＝1",
        "a=1",
        "\\t=1",
        "",
    ]


def test_xml_gets_text() -> None:
    text = escape.xml("<a b=\"c\" d='e'>&\x1b\ufffe")
    assert text == "&lt;a b=&quot;c&quot; d=&#x27;e&#x27;&gt;&amp;\\x1b\\ufffe"
    assert ElementTree.fromstring(f"<t>{text}</t>").text == "<a b=\"c\" d='e'>&\\x1b\\ufffe"


# --- every command ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of that name, with a model and pairs of that name in it."""
    root = tmp_path_factory.mktemp("names") / MONSTER
    tiny.write_folder(root / MONSTER, "luong")
    write(root / f"{MONSTER}.src", tiny.SOURCES)
    write(root / f"{MONSTER}.tgt", tiny.TARGETS)
    return root


def pairs(folder: Path, prefix: str = "") -> list[object]:
    return [part for side in ("src", "tgt") for part in (f"--{prefix}{side}", folder / f"{MONSTER}.{side}")]


def _train(folder: Path) -> Ran:
    sizes = ["--embedding-dim", 8, "--hidden-size", 8, "--vocab-size", 60]
    flags = [*pairs(folder), *pairs(folder, "dev-"), *sizes, "--max-updates", 1, "--device", "cpu"]
    return mirada("train", *flags, "--model-dir", folder / "trained")


def _compare(folder: Path) -> Ran:
    return mirada("compare", "--models", folder / MONSTER, *pairs(folder, "test-"), "--out", folder / "compared")


def _sweep(folder: Path) -> Ran:
    data = {f"{prefix}{side}": str(folder / f"{MONSTER}.{side}") for prefix in ("", "dev_") for side in ("src", "tgt")}
    training = {"max_updates": 1, "device": "cpu"}
    content = {"data": {**data, "vocab_size": 60}, "model": {"embedding_dim": 8}, "training": training}
    file = folder / f"{MONSTER}.yaml"
    file.write_text(json.dumps({**content, "sweep": {"vary": {"model.hidden_size": [8]}}}))
    return mirada("sweep", file, "--out", folder / "sweep")


COMMANDS: dict[str, Callable[[Path], Ran]] = {
    "train": _train,
    "translate": lambda folder: mirada("translate", folder / MONSTER, given="a cat\n"),
    "translate, no model": lambda folder: mirada("translate", folder / f"no{MONSTER}", given="a cat\n"),
    "score": lambda folder: mirada("score", folder / MONSTER, *pairs(folder)),
    "score, no file": lambda folder: mirada("score", folder / MONSTER, "--src", folder / "x", "--tgt", folder / "y"),
    "explain": lambda folder: mirada("explain", folder / MONSTER, f"a cat {MONSTER}"),
    "explain, lines": lambda folder: mirada("explain", folder / MONSTER, "--file", folder / f"{MONSTER}.src"),
    "explain, no traces": lambda folder: mirada("explain", "--verify", folder / f"{MONSTER}.src", folder / MONSTER),
    "align": lambda folder: mirada("align", folder / MONSTER, *pairs(folder)),
    "evaluate": lambda folder: mirada("evaluate", folder / MONSTER, *pairs(folder)),
    "evaluate, no reference": lambda folder: mirada("evaluate", "--hyp", folder / f"{MONSTER}.src", "--ref", folder),
    "compare": _compare,
    "bottleneck": lambda folder: mirada("bottleneck", "--quick", "--parts", "cost", "--out", folder / "bottleneck"),
    "bottleneck, again": lambda folder: mirada("bottleneck", "--quick", "--out", folder / "bottleneck"),
    "sweep": _sweep,
    "data check": lambda folder: mirada("data", "check", *pairs(folder)),
    "data make": lambda folder: mirada("data", "make", "--pairs", 3, "--out", folder / "made"),
    "demo": lambda folder: mirada("demo", "--out", folder / "demo", "--workers", 1),
    "no command": lambda folder: mirada(MONSTER),
    "no option": lambda folder: mirada("translate", folder / MONSTER, f"--{MONSTER}"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_lets_a_name_reach_the_terminal(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "in_a_process", in_this_process)
    small = {"cost_lengths": (3, 5), "cost_repeats": 2, "cost_width": 8, "cost_vocabulary": 20}
    monkeypatch.setattr(settings, "QUICK", settings.Settings(**small))
    monkeypatch.setattr(demo, "PAIRS", 40)
    monkeypatch.setattr(demo, "HELD_OUT", 8)
    monkeypatch.setattr(demo, "TRAINING", demo.TRAINING | {"max_updates": 4, "valid_every": 2, "warmup_steps": 1})
    monkeypatch.setattr(demo, "SYSTEMS", {"bahdanau": demo.SYSTEMS["bahdanau"]})
    ran = COMMANDS[name](folder)
    assert "Traceback" not in ran.errors
    assert ran.output + ran.errors
    assert obeyed(ran.output + ran.errors) == set()
    if "," not in name and not name.startswith("no "):
        assert ran.code == 0, ran.errors


@pytest.mark.parametrize("kind", ["svg", "html"])
def test_a_texts_own_marks_stay_text_in_figures_and_pages(folder: Path, kind: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / f"map.{kind}"
    ran = mirada("explain", folder / MONSTER, f"a cat {MONSTER}", "--format", kind, "--output", file)
    assert (ran.code, obeyed(ran.errors)) == (0, set())
    if kind == "svg":
        ElementTree.parse(file)
    else:
        assert tags(file.read_text(encoding="utf-8")).count("svg") == 0


# --- reports ---------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The elements of a page as a browser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the name; an element with a handler is none of ours."""
        assert not [name for name, _ in attrs if name.startswith("on")], attrs
        self.found.append(tag)


def tags(page: str) -> list[str]:
    parser = Tags()
    parser.feed(page)
    return parser.found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison of models with hostile names."""
    pytest.importorskip("matplotlib")
    root = tmp_path_factory.mktemp("report")
    kinds = [list(tiny.MODELS)[place % 4] for place in range(len(NAMES))]
    models = tuple(str(tiny.write_folder(root / name, kind)) for name, kind in zip(NAMES, kinds, strict=True))
    asked = request(root, systems=(), models=models, options={}, test=write_pairs(root), metrics=("chrf",))
    said: list[str] = []
    results = compare(asked, said.append, launch=in_this_process)
    assert [system["name"] for system in results["systems"]] == list(NAMES)
    assert not any(system["failed"] for system in results["systems"])
    return root / "out"


def test_the_page_has_no_element_of_a_name(report: Path) -> None:
    page = (report / "report.html").read_text(encoding="utf-8")
    assert tags(page).count("svg") == page.count("<svg ")
    assert obeyed(page) == set()


def test_markdown_has_no_line_and_no_element_of_a_name(report: Path) -> None:
    text = (report / "report.md").read_text(encoding="utf-8")
    assert re.findall(r"(?<!\\)<", text) == []
    assert [line for line in text.split("\n") if line.startswith("# ")] == ["# Systems compared"]
    assert "cmd\\|calc!A1" in text
    for path in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (report / path).exists()
    assert obeyed(text) == set()


def test_no_cell_is_a_formula(report: Path) -> None:
    with (report / "results.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["system"] for row in rows} == {escape.csv_cell(name) for name in NAMES}
    texts = [cell for row in rows for cell in (row["part"], row["system"], row["item"], row["measure"])]
    assert not any(text.startswith(escape.FORMULA) for text in texts)


def test_every_figure_is_whole_and_names_every_system(report: Path) -> None:
    figures = list((report / "figures").glob("*.svg"))
    assert {path.name for path in figures} > {"quality.svg", "by-length.svg", "attention-1-1.svg"}
    for path in figures:
        ElementTree.parse(path)
    drawn = "".join(ElementTree.parse(report / "figures/by-length.svg").getroot().itertext())
    for name in NAMES:
        assert escape.terminal(name) in drawn
