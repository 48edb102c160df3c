"""The four forms of a report say the same, whatever stands in the text, and need nothing from outside."""

from __future__ import annotations

import csv
import io
import re

import pytest

from mirada.study.report import numbers
from mirada.study.report.document import Conclusion, Grid, Map, NumberRow, Plot, Section, Series, StudyReport
from mirada.study.report.figures import INK, PAPER, draw, draw_map, inline
from mirada.study.report.html import to_html
from mirada.study.report.markdown import to_markdown
from mirada.study.report.write import to_csv, write_report

NASTY = "a < b & c | `d` *e* <script>alert(1)</script> [f](http://g)"
PLOT = Plot("one", "caption", "x", "y", [Series("s", [1, 2], [3.0, 4.0], [2.5, 3.0], [3.5, 5.0])])
POINTS = Plot("two", "caption", "", "y", [Series("s", [0, 1], [3.0, 4.0])], ["a", "b"], joined=False)
MAP = Map("three", "caption", [[0.25, 0.75], [1.0, 0.0]], ["▁uno", "</s>"], ["▁one", "الكتاب"])
REPORT = StudyReport(
    "Title",
    "below",
    [
        Section(
            "First",
            ["words", Conclusion("found"), Grid("numbers", ("a", "b", "c"), [(NASTY, "1.0", "2.0")]), PLOT, MAP],
        )
    ],
)


def test_text_of_data_stays_text():
    page = to_html(REPORT, {"one": "<svg></svg>", "three": "<svg></svg>"})
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    markdown = to_markdown(REPORT)
    row = next(line for line in markdown.split("\n") if "alert" in line)
    assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert r"\<script\>" in row
    assert r"[f]\(http" in row


def test_markdown_has_every_block():
    markdown = to_markdown(REPORT)
    assert markdown.startswith("# Title\n\nbelow\n\n## First\n\nwords\n\n**found**\n\n")
    assert "| a | b | c |\n| --- | ---: | ---: |\n" in markdown
    assert "![caption](figures/one.png)" in markdown
    assert "![caption](figures/three.svg)" in markdown


def test_rows_of_numbers():
    text = to_csv(
        [NumberRow("quality", "a, b", "all", "bleu", 1.5, 1.0, 2.0, 7), NumberRow("cost", "c", "all", "seconds", 3.0)]
    )
    found = list(csv.DictReader(io.StringIO(text)))
    assert found[0] == dict(
        zip(NumberRow._fields, ("quality", "a, b", "all", "bleu", "1.5", "1.0", "2.0", "7"), strict=True)
    )
    assert found[1]["low"] == found[1]["items"] == ""


@pytest.mark.parametrize("plot", [PLOT, POINTS])
def test_figures_are_the_same_every_time(plot):
    first, second = draw(plot), draw(plot)
    assert first["svg"] == second["svg"]
    assert first["png"].startswith(b"\x89PNG\r\n")


def test_figures_take_the_colours_of_the_page():
    svg = draw(PLOT)["svg"].decode()
    assert PAPER in svg
    found = inline(svg, "one")
    assert "currentColor" in found
    assert not re.search(rf"https?://|xmlns|{INK}|{PAPER}|<\?xml|<!DOCTYPE|metadata", found)
    assert ">y</text>" in found
    ids = set(re.findall(r'\bid="([^"]+)"', found))
    assert all(name.startswith("one-") for name in ids)
    assert set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', found)[0]) - {""} <= ids


def test_maps_show_tokens_and_weights_in_the_colours_of_the_page():
    svg = draw_map(MAP)
    shown = [" ".join(text.split()) for text in re.findall(r"<text[^>]*>([^<]+)</text>", svg)]
    assert shown == ["one", "الكتاب", "uno", "&lt;/s&gt;", "0.25", "0.75", "1.00"]
    found = inline(svg, "three")
    assert "currentColor" in found
    assert not re.search(rf"https?://|xmlns|{INK}|<image|<\?xml", found)


def test_everything_is_written(tmp_path):
    paths = write_report(REPORT, {"a": [1]}, [NumberRow("p", "s", "i", "m", 1.0)], tmp_path)
    names = {str(path.relative_to(tmp_path)) for path in paths}
    assert names == {
        "report.html",
        "report.md",
        "results.csv",
        "results.json",
        "figures/one.svg",
        "figures/one.png",
        "figures/three.svg",
    }
    assert all(path.stat().st_size for path in paths)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "prefers-color-scheme: dark" in page


def test_numbers():
    assert numbers.with_span(1.25, -1, 2.04) == "1.2 [-1.0, 2.0]"
    assert (numbers.signed(0.5), numbers.signed(-0.5)) == ("+0.5", "-0.5")
    assert (numbers.count(1234567.0), numbers.count(None), numbers.value(None)) == ("1,234,567", "–", "–")
    assert [numbers.duration(seconds) for seconds in (None, 90, 600)] == ["–", "90 s", "10.0 min"]


@pytest.mark.parametrize(
    ("places", "labels"),
    [([64, 128, 256, 512], ["100", "200", "300"]), ([70, 80, 95], ["70", "80", "90"]), ([9, 2e6], ["1,000"])],
    ids=str,
)
def test_logarithmic_axes_have_numbers_as_people_write_them(places, labels):
    line = Series("s", places, [1.0] * len(places))
    svg = draw(Plot("log", "", "x", "y", [line], log_x=True))["svg"].decode()
    shown = re.findall(r">([^<>]+)</text>", svg)
    assert set(labels) <= set(shown)
    assert not [text for text in shown if "×" in text or "mathdefault" in text or "$" in text]
