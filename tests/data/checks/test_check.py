"""The report on a corpus: each finding is made where it should be, with its count and place, and nowhere else."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from good_pairs import SOURCES, check, kinds, put, the
from mirada.config.configfile import parse
from mirada.config.options import DataConfig
from mirada.data.checks.check import check_corpus
from mirada.data.checks.findings import Finding, Report, exit_code, to_json, to_text
from mirada.data.preparing import choose
from mirada.errors import ConfigError, DataError
from mirada.train import prepare


def test_good_pairs_give_no_error_and_no_warning(tmp_path):
    report = check(tmp_path)
    assert kinds(report, "error") == kinds(report, "warning") == []
    assert exit_code(report) == 0
    (train,) = report.sets
    assert (train.name, train.pairs, train.skipped) == ("train", 30, 0)
    assert train.source.size == sum(len(line.split()) for line in SOURCES)
    assert train.source.longest == max(len(line.split()) for line in SOURCES)
    assert train.source.unit == "tokens"
    assert train.source.characters == len(set("".join(SOURCES)))
    letters = sum(len(line.replace(" ", "")) for line in SOURCES)
    assert train.source.scripts == {"Latin": letters, "blanks": sum(line.count(" ") for line in SOURCES)}


def test_lengths_without_blanks_are_characters(tmp_path):
    path = put(tmp_path / "a.tsv", ["abc\tk a", "abcde\tk a b", "ab\tk"])
    (train,) = check_corpus(DataConfig(tsv=path)).sets
    assert (train.source.unit, train.source.size, train.source.median_length, train.source.longest) == (
        "characters",
        10,
        3,
        5,
    )
    assert (train.target.unit, train.target.size, train.target.median_length, train.target.longest) == (
        "tokens",
        6,
        2,
        3,
    )


# Reading


def test_unequal_counts_are_reported_not_raised(tmp_path):
    config = DataConfig(src=put(tmp_path / "s", ["a", "b", "c"]), tgt=put(tmp_path / "t", ["a", "b"]))
    report = check_corpus(config)
    finding = the(report, "line_counts")
    counts = f"{config.src} has 3 lines but {config.tgt} has 2"
    assert finding.message == f"train: {counts}; line 3 is the first that only {config.src} has"
    assert (finding.severity, finding.count, finding.total) == ("error", 1, 3)
    assert exit_code(report) == 1
    assert (report.sets[0].pairs, report.sets[0].skipped) == (0, 0)
    assert "no_pairs" not in kinds(report, "error")


def test_undecodable_bytes_are_reported_with_their_place(tmp_path):
    src, tgt = tmp_path / "s", tmp_path / "t"
    src.write_bytes(b"caf\xe9\nb\n\xff\n")
    report = check_corpus(DataConfig(src=str(src), tgt=put(tgt, ["a", "b", "c"])))
    finding = the(report, "undecodable")
    assert (finding.severity, finding.count, finding.total) == ("error", 2, 3)
    assert [example.split(" is not")[0] for example in finding.examples] == [
        f"{src}:1: byte 0xe9 at column 4",
        f"{src}:3: byte 0xff at column 1",
    ]
    assert finding.message == "train: 2 of 3 lines that are not UTF-8"
    assert kinds(report, "error") == ["undecodable"]


@pytest.mark.parametrize(
    ("way", "lines", "problem"),
    [
        ("tsv", ["a\tb", "no tab", "", "c\td"], "1 column, expected at least 2, separated by tabs"),
        (
            "jsonl",
            ['{"source": "a", "target": "b"}', "[]", "", '{"source": "c", "target": "d"}'],
            "expected a JSON object, got an array",
        ),
    ],
)
def test_rows_that_cannot_be_read(tmp_path, way, lines, problem):
    path = put(tmp_path / "a", lines)
    report = check_corpus(DataConfig(**{way: path}))
    finding = the(report, "bad_rows")
    assert (finding.severity, finding.count, finding.total) == ("error", 1, 4)
    assert finding.examples == (f"{path}:2: {problem}",)
    assert the(report, "blank_side").examples == (f"{path}:3:  → ",)
    assert (report.sets[0].pairs, report.sets[0].skipped) == (2, 1)


def test_no_pairs(tmp_path):
    report = check_corpus(DataConfig(src=put(tmp_path / "s", ["a", ""]), tgt=put(tmp_path / "t", ["", "b"])))
    finding = the(report, "no_pairs")
    assert finding.message == "train: no pair has text on both sides"
    assert (finding.severity, finding.count, finding.total, exit_code(report)) == ("error", 2, 2, 1)


def test_empty_files_have_no_pairs(tmp_path):
    assert kinds(check_corpus(DataConfig(src=put(tmp_path / "s", []), tgt=put(tmp_path / "t", []))), "error") == [
        "no_pairs"
    ]


def test_what_is_raised(tmp_path):
    with pytest.raises(
        ConfigError, match=r"^no training pairs: give them as --src and --tgt, or --tsv, or --jsonl, or --dataset$"
    ):
        check_corpus(DataConfig())
    path = put(tmp_path / "a.tsv", ["a\tb"])
    ways = "--test-src and --test-tgt, or --test-tsv, or --test-jsonl, or --test-dataset"
    with pytest.raises(ConfigError, match=f"^no test pairs: give them as {ways}$"):
        check_corpus(DataConfig(tsv=path), test=DataConfig())
    with pytest.raises(DataError, match=f"^{re.escape(str(tmp_path / 'no'))}: no such file$"):
        check_corpus(DataConfig(tsv=str(tmp_path / "no")))


# Pairs


def test_blank_sides(tmp_path):
    report = check(tmp_path, {2: "", 4: " \u3000"}, {2: " ", 6: ""})
    finding = the(report, "blank_side")
    assert (finding.severity, finding.count, finding.total) == ("warning", 3, 30)
    assert finding.message == "train: 3 of 30 pairs with a blank side, left out (2 with text on the other side)"
    assert [example.split(": ")[0] for example in finding.examples] == [f"{tmp_path / 'a.src'}:{n}" for n in (4, 6, 2)]
    assert (report.sets[0].pairs, report.sets[0].skipped) == (27, 3)
    assert "blanks" not in kinds(report, "warning")
    assert exit_code(report) == 0


def test_repeated_pairs_and_sources_with_several_targets(tmp_path):
    rows = ["a x\tb", "a x\tb", "a x\tc", "d x\te", "f x\tg", "d x\th", "a x\tb", "i x\tb"]
    path = put(tmp_path / "a.tsv", rows)
    report = check_corpus(DataConfig(tsv=path))
    again, several = the(report, "repeated_pairs"), the(report, "several_targets")
    assert (again.severity, again.count, again.total) == ("warning", 2, 8)
    assert again.examples == (f"{path}:2: a x → b", f"{path}:7: a x → b")
    assert (several.severity, several.count, several.total) == ("note", 2, 4)
    assert several.message == "train: 2 of 4 distinct sources with several targets"
    assert several.examples == (f"{path}:1: a x → b", f"{path}:4: d x → e")


def test_same_text_on_both_sides(tmp_path):
    finding = the(check(tmp_path, {6: "the lazy fox"}, {6: "the lazy fox"}), "same_sides")
    assert (finding.severity, finding.count, finding.total) == ("note", 1, 30)


def test_numbers_that_differ(tmp_path):
    path = put(
        tmp_path / "a.tsv", [f"at {n}:30 or {n}\t{n} o {n}.30" for n in range(9)] + ["in 1984\ten 1948", "no\tno"]
    )
    finding = the(check_corpus(DataConfig(tsv=path)), "numbers")
    assert (finding.severity, finding.count, finding.total) == ("note", 1, 11)
    assert finding.examples == (f"{path}:10: in 1984 → en 1948",)
    assert finding.message == "train: 1 of 11 pairs with other numbers on the other side (10 pairs have digits)"


def test_numbers_are_no_finding_where_sides_do_not_share_them(tmp_path):
    path = put(tmp_path / "a.tsv", ["at 7\ta las siete", "at 8\ta las ocho", "in 1984\ten 1984"])
    assert "numbers" not in kinds(check_corpus(DataConfig(tsv=path)), "note")


def test_lines_far_longer_than_the_rest(tmp_path):
    # All other lines have 4 words and the quartiles are equal, so the limit is 4·e^(3 · 0.35) = 11.4 words.
    pairs = [f"a b c d{n}\ta b c d{n}" for n in range(20)]
    edge, over = " ".join("w" * 11), " ".join("w" * 12)
    path = put(tmp_path / "a.tsv", [*pairs, f"{edge}\t{edge}", f"{over}\t{edge}"])
    report = check_corpus(DataConfig(tsv=path))
    finding = the(report, "long_lines")
    assert finding.message == "train source: 1 of 22 lines far longer than the rest (more than 11 tokens)"
    assert finding.examples == (f"{path}:22: {over}",)
    assert kinds(report, "warning") == ["long_lines"]


def test_unusual_ratio_of_lengths(tmp_path):
    pairs = [f"a b c d{n}\ta b c d e f g h{n}" for n in range(20)]  # ratio 2; the fences are 2·e^(±1.05): 0.7 and 5.7
    path = put(tmp_path / "a.tsv", [*pairs, "a b\ta", "a b c\ta b c", "a b c\ta b"])
    finding = the(check_corpus(DataConfig(tsv=path)), "length_ratio")
    assert finding.examples == (f"{path}:21: a b → a", f"{path}:23: a b c → a b")
    assert (finding.severity, finding.count, finding.total) == ("warning", 2, 23)
    assert "target tokens per source tokens: median 2.00, usual 0.70 to 5.72" in finding.message


def test_pairs_longer_than_training_takes(tmp_path):
    path = put(tmp_path / "a.tsv", ["a b c\ta b c d", "a b c\ta b c", "a b c d e\ta b c"])
    dev = put(tmp_path / "d.tsv", ["a b\ta b"])
    report = check_corpus(DataConfig(tsv=path, dev_tsv=dev, max_length=3, tokenizer="word"))
    finding = the(report, "too_long")
    assert (finding.severity, finding.count, finding.total) == ("warning", 2, 3)
    assert finding.message == (
        "train: 2 of 3 pairs with more than max_length 3 tokens on a side, left out; raise max_length, or cut sources "
        "by truncate_source first"
    )


@pytest.mark.parametrize("options", [{}, {"truncate_source": "last"}, {"tokenizer": "char"}, {"dev_tsv": None}])
def test_the_check_counts_what_training_leaves_out(tmp_path, options):
    """The same pairs and the same tokens: one function counts for both."""
    train = put(
        tmp_path / "t.tsv", [f"{'the lazy fox, ' * (n % 9 + 1)}{n}\t{'un zorro ' * (n % 7 + 1)}" for n in range(90)]
    )
    dev = put(tmp_path / "d.tsv", [f"{'a lazy fox ' * n}\t{'el zorro ' * n}" for n in range(1, 9)])
    config = parse({"data": {"tsv": train, "dev_tsv": dev, "max_length": 20, **options}})
    report = check_corpus(config.data)
    corpora = prepare.read(config)
    resolved = prepare.resolve(config, corpora)
    notes = prepare.encode(resolved, corpora, prepare.learn_tokenizers(resolved, corpora[0])).notes
    told = [
        int(number)
        for note in notes
        for number in re.findall(r"(\d+) (?:training|dev) (?:pairs have|sources are)", note)
    ]
    assert told == [finding.count for finding in _in_order(report)]
    assert told
    reasons = [finding.message for finding in report.findings if finding.kind == "tokens"]
    assert reasons == choose(config.data, corpora).notes()


def _in_order(report: Report) -> list[Finding]:
    found = [finding for finding in report.findings if finding.kind in ("too_long", "cut")]
    return sorted(found, key=lambda finding: (finding.message.startswith("dev"), finding.kind == "cut"))


def test_reserved_names_are_counted(tmp_path):
    path = put(tmp_path / "a.tsv", ["a </s> b\ta b c d", "a b c\ta b<s>", "<unk>\ta b c"] * 3)
    finding = the(check_corpus(DataConfig(tsv=path)), "reserved_names")
    assert (finding.severity, finding.count, finding.total) == ("note", 6, 9)
    assert finding.message.startswith("train source: 6 of 9 lines with words such as </s> and <unk>")


# Dev and test against train


def held_out(tmp_path: Path, train: Sequence[str], other: Sequence[str], **options) -> Report:
    path = put(tmp_path / "train.tsv", train)
    return check_corpus(DataConfig(tsv=path), test=DataConfig(tsv=put(tmp_path / "test.tsv", other)), **options)


def test_pairs_of_test_in_train_are_an_error(tmp_path):
    report = held_out(tmp_path, ["a b\tx", "c d\ty", "e f\tz"], ["c d\ty", "e f\tx", "a d\tx", "\t", "c d\ty"])
    pairs, sources = the(report, "overlap_pairs"), the(report, "overlap_sources")
    assert (pairs.severity, pairs.count, pairs.total) == ("error", 2, 5)
    assert pairs.examples == (f"{tmp_path / 'test.tsv'}:1: c d → y", f"{tmp_path / 'test.tsv'}:5: c d → y")
    assert (sources.severity, sources.count) == ("warning", 1)
    assert sources.message == "test: 1 of 5 pairs with a source that stands in train with another target"
    assert exit_code(report) == 1
    assert pairs in report.findings[:2]


def test_dev_is_checked_too(tmp_path):
    train, dev = put(tmp_path / "a.tsv", ["a b\tx", "c d\ty"]), put(tmp_path / "d.tsv", ["c d\ty", "c d\t"])
    report = check_corpus(DataConfig(tsv=train, dev_tsv=dev))
    assert [(summary.name, summary.pairs, summary.skipped) for summary in report.sets] == [
        ("train", 2, 0),
        ("dev", 1, 1),
    ]
    assert the(report, "overlap_pairs").message.startswith("dev: 1 of 2 pairs that stand in train too")
    assert the(report, "blank_side").message.startswith("dev: 1 of 2 pairs")


def test_characters_and_words_that_train_never_shows(tmp_path):
    report = held_out(tmp_path, ["a bé\tx"] * 3, ["a ab é\tx", "ñ bé\tx"])
    characters, words = the(report, "unseen_characters"), the(report, "unseen_words")
    assert characters.message == (
        "test source: 1 of 2 lines with characters that train never shows: U+00F1 ñ LATIN SMALL LETTER N WITH TILDE ×1"
    )
    assert characters.severity == "warning"
    assert words.message == "test source: 3 of 5 words (by blanks) that train never shows"
    assert words.examples == tuple(f"{tmp_path / 'test.tsv'}:{place}" for place in ("1: ab", "1: é", "2: ñ"))


@pytest.mark.parametrize(("known", "severity"), [(49, "note"), (48, "warning"), (9, "warning")])
def test_unknown_tokens(tmp_path, known, severity):
    def unknown(text: str) -> tuple[int, int]:
        return text.split().count("?"), len(text.split())

    line = " ".join("a" * known)
    report = held_out(tmp_path, ["a b\tx y"], [f"{line} b ?\tx", f"{line} a b\t?"], source_unknown=unknown)
    finding = the(report, "unknown_tokens")
    total = 2 * known + 4
    assert finding.message == f"test source: 1 of {total} tokens unknown to the vocabulary ({1 / total:.1%})"
    assert (finding.severity, finding.count, finding.total) == (severity, 1, total)
    assert len(finding.examples) == 1
    both = held_out(tmp_path, ["a b\tx y"], ["a b\t? x", "a b\tx y z"], source_unknown=unknown, target_unknown=unknown)
    assert the(both, "unknown_tokens").message == "test target: 1 of 5 tokens unknown to the vocabulary (20.0%)"


# The report


def test_report_as_json_and_text(tmp_path):
    report = check(tmp_path, {2: "", 3: "the\0 lazy dog runs"})
    values = json.loads(to_json(report))
    assert values["exit_code"] == 0
    assert values["sets"][0]["pairs"] == 29
    assert {"kind", "severity", "count", "total", "message", "examples"} == set(values["findings"][0])
    text = to_text(report)
    assert text.startswith("train: 29 pairs (1 more have a blank side and are left out)\n")
    cited = f"    {tmp_path / 'a.src'}:3: the\\u0000 lazy dog runs"
    assert f"U+0000 NUL ×1 [control]\n{cited}\n" in text
    assert text.splitlines()[-1].startswith("0 errors, 2 warnings, ")
    assert "\0" not in text


def test_at_most_five_examples(tmp_path):
    finding = the(check(tmp_path, {n: f"{line}  x" for n, line in enumerate(SOURCES, start=1)}), "blanks")
    assert (finding.count, len(finding.examples)) == (30, 5)


def test_exit_code_is_1_for_errors_only():
    found = [Finding("x", severity, 1, 1, "m", ()) for severity in ("error", "warning", "note")]
    assert [exit_code(Report((), tuple(found[n:]))) for n in range(4)] == [1, 0, 0, 0]
