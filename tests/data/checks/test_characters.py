"""What the characters of a side show."""

from __future__ import annotations

import unicodedata

import pytest

from good_pairs import SOURCES, changed, check, kinds, put, the
from mirada.config.options import DataConfig
from mirada.data.checks.characters import excerpt, script
from mirada.data.checks.check import check_corpus


@pytest.mark.parametrize(
    ("char", "kind", "severity", "described"),
    [
        ("\0", "control", "warning", "U+0000 NUL ×1"),
        ("\t", "control", "warning", "U+0009 TAB ×1"),
        ("\v", "control", "warning", "U+000B VT ×1"),
        ("\f", "control", "warning", "U+000C FF ×1"),
        ("\x1f", "control", "warning", "U+001F ×1"),
        ("\x85", "control", "warning", "U+0085 NEL ×1"),
        ("\u2028", "control", "warning", "U+2028 LINE SEPARATOR ×1"),
        ("\u200b", "control", "warning", "U+200B ZERO WIDTH SPACE ×1"),
        ("\ufeff", "control", "warning", "U+FEFF ZERO WIDTH NO-BREAK SPACE ×1"),
        ("\ufffd", "control", "warning", "U+FFFD � REPLACEMENT CHARACTER ×1"),
        ("\r", "carriage_return", "warning", "U+000D CR ×1"),
        ("\u200d", "invisible", "note", "U+200D ZERO WIDTH JOINER ×1"),
        ("\u00ad", "invisible", "note", "U+00AD SOFT HYPHEN ×1"),
    ],
)
def test_characters_that_are_no_text(tmp_path, char, kind, severity, described):
    report = check(tmp_path, targets={7: f"LAZY{char}DOG AND FOX RUNS"})
    finding = the(report, kind)
    assert (finding.severity, finding.count, finding.total) == (severity, 1, 30)
    assert finding.message.startswith("train target: 1 of 30 lines with ")
    assert finding.message.endswith(f": {described}")
    shown = char if char == "\ufffd" else f"\\u{ord(char):04x}"
    assert finding.examples == (f"{tmp_path / 'a.tgt'}:7: LAZY{shown}DOG AND FOX RUNS",)
    assert kinds(report, "warning") == ([kind] if severity == "warning" else [])


def test_windows_line_ends_are_no_finding(tmp_path):
    report = check(tmp_path, {n: f"{line}\r" for n, line in enumerate(SOURCES, start=1)})
    assert kinds(report, "warning") == []


@pytest.mark.parametrize(
    "line", [" the lazy dog runs", "the lazy dog runs ", "the lazy  dog runs", "the lazy dog runs\u00a0"]
)
def test_blanks(tmp_path, line):
    report = check(tmp_path, {2: line})
    assert kinds(report, "warning") == ["blanks"]
    assert the(report, "blanks").message == "train source: 1 of 30 lines with blanks at an end or several in a row"


def test_two_unicode_forms(tmp_path):
    composed, apart = "the café runs far", unicodedata.normalize("NFD", "the café runs here")
    finding = the(check(tmp_path, {2: composed, 3: composed + " a", 4: apart}), "unicode_form")
    assert (finding.severity, finding.count, finding.total) == ("warning", 1, 30)
    assert finding.examples == (f"{tmp_path / 'a.src'}:4: {apart}",)
    assert "1 of 30 lines not in Unicode form NFC, while 2 have composed characters" in finding.message
    alone = the(check(tmp_path, {4: apart}), "unicode_form")
    assert (alone.severity, alone.count) == ("note", 1)
    assert "unicode_form" not in kinds(check(tmp_path, {2: composed}), "warning")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        *(("café", "latin1"), ("“hi” – ‘ho’", "latin1"), ("Ärger", "latin1"), ("año", "cp1252"), ("Ärger", "cp1252")),
        *(("it’s", "cp1252"), ("5 €", "cp1252")),
    ],
)
def test_text_encoded_twice(tmp_path, text, wrong):
    report = check(tmp_path, {5: f"the {text.encode().decode(wrong)} runs far"})
    assert the(report, "twice_encoded").examples[0].startswith(f"{tmp_path / 'a.src'}:5: the ")
    assert "twice_encoded" not in kinds(check(tmp_path, {5: f"the {text} runs far"}), "warning")


def test_lines_of_another_script(tmp_path):
    report = check(
        tmp_path, {3: "быстрая лиса и dog", 4: "the quick лиса runs", 5: "日本 の 猫 カフェ", 6: "лиса dogs"}
    )
    finding = the(report, "script_mix")
    assert (finding.severity, finding.count) == ("warning", 2)
    assert finding.message == "train source: 2 of 30 lines not mainly Latin, as the rest are: Cyrillic 1, Han/Kana 1"
    assert [example.split(": ")[0] for example in finding.examples] == [f"{tmp_path / 'a.src'}:{n}" for n in (3, 5)]


def test_japanese_is_one_script(tmp_path):
    path = put(tmp_path / "a.tsv", [f"東京タワー\t{n}" for n in range(5)] + ["ひらがな\t6", "漢字\t7"])
    assert "script_mix" not in kinds(check_corpus(DataConfig(tsv=path)), "warning")


@pytest.mark.parametrize(
    ("char", "name"),
    [
        *(("a", "Latin"), ("ñ", "Latin"), ("ｱ", "Han/Kana"), ("ー", "Han/Kana"), ("漢", "Han/Kana"), ("한", "Hangul")),
        *(("ж", "Cyrillic"), ("א", "Hebrew"), ("ª", "other letters"), ("5", "digits"), ("\u0301", "combining marks")),
        *(("!", "punctuation"), ("€", "symbols"), ("\u00a0", "blanks"), ("\0", "control"), ("\U000e1000", "control")),
    ],
)
def test_script_names(char, name):
    assert script(char) == name


def test_rare_characters(tmp_path):
    report = check(tmp_path, {2: "the § dog ßß", 9: "the dog ¶¶¶"})
    finding = next(finding for finding in report.findings if finding.kind == "rare_characters")
    assert finding.severity == "note"
    assert finding.count == 2
    assert finding.total == len(set("".join(changed(SOURCES, {2: "§ß", 9: "¶"}))))
    assert finding.message.endswith("U+00DF ß LATIN SMALL LETTER SHARP S ×2, U+00A7 § SECTION SIGN ×1")
    assert finding.examples == (f"{tmp_path / 'a.src'}:2: the § dog ßß",)


def test_an_excerpt_is_cut_around_the_place():
    line = "a" * 100 + "\0" + "b" * 100
    assert excerpt(line, 100) == f"…{'a' * 30}\\u0000{'b' * 29}…"
    assert excerpt("a\u00a0b\u202e") == "a\\u00a0b\\u202e"
