"""Pairs of sentences from files: none shifted, none lost unseen."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mirada.config.options import DataConfig
from mirada.data.corpus import Corpus, load_pairs, read_jsonl, read_parallel, read_tsv, split_dev
from mirada.errors import ConfigError, DataError

FIELD = st.text(st.one_of(st.sampled_from("ab \"'\0\ufeff\u2028\x85\v\f\r"), st.characters(codec="utf-8"))).map(
    lambda text: text.replace("\n", "").replace("\t", "")
)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def fails_with(message: str):
    return pytest.raises(DataError, match=f"^{re.escape(message)}$")


# Two parallel files


def test_parallel_pairs(tmp_path):
    src, tgt = write(tmp_path / "a", "one\ntwo\u2028more\n"), write(tmp_path / "b", "uno\r\ndos\r\n")
    assert read_parallel(src, tgt) == Corpus(["one", "two\u2028more"], ["uno", "dos"], [1, 2], [], f"{src} | {tgt}")


def test_a_blank_side_takes_its_pair_out_and_no_other(tmp_path):
    src = write(tmp_path / "a", "s1\n\ns3\ns4\n \n")
    tgt = write(tmp_path / "b", "t1\nt2\n\u00a0\u3000\nt4\n\n")
    corpus = read_parallel(src, tgt)
    assert (corpus.sources, corpus.targets) == (["s1", "s4"], ["t1", "t4"])
    assert (corpus.lines, corpus.skipped) == ([1, 4], [2, 3, 5])
    assert len(corpus) == 2


def test_every_pair_blank(tmp_path):
    src, tgt = write(tmp_path / "a", "s1\n\n"), write(tmp_path / "b", "\nt2\n")
    with fails_with(f"{src} | {tgt}: no pair has text on both sides (2 lines read)"):
        read_parallel(src, tgt)


def test_unequal_counts_at_the_end(tmp_path):
    src, tgt = write(tmp_path / "a", "s1\ns2\ns3\n"), write(tmp_path / "b", "t1\nt2\n")
    with fails_with(f"{src} has 3 lines but {tgt} has 2; line 3 is the first that only {src} has"):
        read_parallel(src, tgt)
    with fails_with(f"{tgt} has 2 lines but {src} has 3; line 3 is the first that only {src} has"):
        read_parallel(tgt, src)


# Tab-separated columns


def test_tsv_splits_at_tabs_and_knows_no_quotes(tmp_path):
    path = write(tmp_path / "a.tsv", 'one\tuno\n"two\tdos\nthree\t"tres"\r\n')
    corpus = read_tsv(path)
    assert corpus.sources == ["one", '"two', "three"]
    assert corpus.targets == ["uno", "dos", '"tres"']
    assert corpus.name == str(path)


def test_tsv_columns_and_blank_lines(tmp_path):
    path = write(tmp_path / "a.tsv", "t1\tx\ts1\n\nt3\tx\t \nt4\tx\ts4\tmore\n")
    corpus = read_tsv(path, source_column=3, target_column=1)
    assert (corpus.sources, corpus.targets) == (["s1", "s4"], ["t1", "t4"])
    assert (corpus.lines, corpus.skipped) == ([1, 4], [2, 3])


@pytest.mark.parametrize(("line", "count"), [("two dos", "1 column"), ("two\tdos", "2 columns")])
def test_tsv_with_too_few_columns(tmp_path, line, count):
    path = write(tmp_path / "a.tsv", f"one\tuno\tx\n{line}\n")
    with fails_with(f"{path}:2: {count}, expected at least 3, separated by tabs"):
        read_tsv(path, target_column=3)


@given(st.lists(st.tuples(FIELD, FIELD), min_size=1))
def test_tsv_gives_back_what_was_written(tmp_path_factory, pairs):
    path = write(tmp_path_factory.getbasetemp() / "a.tsv", "".join(f".{s}\t{t}.\n" for s, t in pairs))
    corpus = read_tsv(path)
    assert corpus.sources == [f".{source}" for source, _ in pairs]
    assert corpus.targets == [f"{target}." for _, target in pairs]


# JSON lines


def jsonl(path: Path, *records: object) -> Path:
    return write(path, "".join(json.dumps(record) + "\n" for record in records))


def test_jsonl_pairs(tmp_path):
    path = write(
        tmp_path / "a.jsonl", '{"source": "one", "target": "uno"}\n\n{"target": "dos", "source": "two\\u2028"}\n'
    )
    assert read_jsonl(path) == Corpus(["one", "two\u2028"], ["uno", "dos"], [1, 3], [2], str(path))


def test_jsonl_nested_keys(tmp_path):
    path = jsonl(
        tmp_path / "a",
        {"translation": {"en": "one", "es": "uno"}},
        {"translation.en": "two", "translation": {"en": "no", "es": "dos"}},
    )
    corpus = read_jsonl(path, source_key="translation.en", target_key="translation.es")
    assert (corpus.sources, corpus.targets) == (["one", "two"], ["uno", "dos"])


GOOD = '{"source": "a", "target": "b"}'


@pytest.mark.parametrize("text", [f"[{GOOD}, {GOOD}]", f"[\n {GOOD}\n]", "[]"])
def test_one_array_is_told_apart_from_lines(tmp_path, text):
    path = write(tmp_path / "a.jsonl", text)
    said = "one JSON array; expected one JSON object a line (jq -c '.[]' FILE > FILE.jsonl makes them)"
    with fails_with(f"{path}:1: {said}"):
        read_jsonl(path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"source": "a"', "not valid JSON (Expecting ',' delimiter, column 15)"),
        ("[1, 2]", "expected a JSON object, got an array"),
        ("null", "expected a JSON object, got null"),
        ('"a"', "expected a JSON object, got text"),
        (
            '{"source": "a", "targets": "b"}',
            "no key 'target' (keys of the line: 'source', 'targets'); did you mean 'targets'?",
        ),
        ("{}", "no key 'source' (keys of the line: none)"),
        ('{"source": 3, "target": "b"}', "key 'source' holds a number, expected text"),
        ('{"source": true, "target": "b"}', "key 'source' holds a boolean, expected text"),
        ('{"source": "a", "target": null}', "key 'target' holds null, expected text"),
        ('{"source": "a", "target": {"x": 1}}', "key 'target' holds an object, expected text"),
        ('{"source": "a", "source": "c", "target": "b"}', "not usable JSON (key 'source' stands twice in an object)"),
        (
            '{"source": "a\\ud83d", "target": "b"}',
            "key 'source' holds half a surrogate pair (\\ud83d), which is no text",
        ),
    ],
)
def test_jsonl_errors(tmp_path, line, problem):
    path = write(tmp_path / "a.jsonl", f"{GOOD}\n{line}\n{GOOD}\n")
    with fails_with(f"{path}:2: {problem}"):
        read_jsonl(path)


def test_jsonl_nested_too_deep(tmp_path):
    path = write(tmp_path / "a.jsonl", "[" * 200_000 + "\n")
    with pytest.raises(DataError, match=f"^{re.escape(str(path))}:1: not usable JSON \\(.*recursion.*\\)$"):
        read_jsonl(path)


def test_jsonl_key_inside_text(tmp_path):
    path = jsonl(tmp_path / "a", {"source": "a", "target": "b"})
    with fails_with(f"{path}:1: no key 'source.en' (keys of the line: 'source', 'target'); did you mean 'source'?"):
        read_jsonl(path, source_key="source.en")


# Splitting off a dev set


def make(sources: Sequence[str], skipped: Sequence[int] = ()) -> Corpus:
    targets = [f"t{n}" for n in range(len(sources))]
    return Corpus(list(sources), targets, [10 + n for n in range(len(sources))], list(skipped), "f")


def rows(corpus: Corpus) -> list[tuple[int, str, str]]:
    return list(zip(corpus.lines, corpus.sources, corpus.targets, strict=True))


@given(st.lists(st.integers(0, 8), min_size=2).filter(lambda n: len(set(n)) > 1), st.integers(1, 5), st.integers(0, 9))
def test_split_parts_by_source_and_loses_nothing(numbers, size, seed):
    corpus = make([f"s{n}" for n in numbers])
    train, dev = split_dev(corpus, size=size, seed=seed)
    assert train.sources
    assert dev.sources
    assert not set(train.sources) & set(dev.sources)
    assert sorted(rows(train) + rows(dev)) == rows(corpus)
    assert rows(train) == sorted(rows(train))
    assert rows(dev) == sorted(rows(dev))
    wanted = min(size, max(1, len(numbers) // 10))
    smallest = min(numbers.count(n) for n in numbers)
    assert len(dev) <= max(wanted, smallest)


@pytest.mark.parametrize(("size", "expected"), [(1000, 20), (7, 7)])
def test_split_size(size, expected):
    train, dev = split_dev(make([f"s{n}" for n in range(200)], skipped=[3]), size=size, seed=1)
    assert (len(dev), len(train)) == (expected, 200 - expected)
    assert (train.skipped, dev.skipped) == ([3], [])
    assert (train.name, dev.name) == ("f", "f (dev)")


def test_split_keeps_a_words_pronunciations_together_but_fills_dev():
    corpus = make([f"s{n // 3}" for n in range(60)] + [f"u{n}" for n in range(40)])
    for seed in range(5):
        train, dev = split_dev(corpus, size=10, seed=seed)
        assert len(dev) == 10
        assert not set(train.sources) & set(dev.sources)


def test_split_is_drawn_by_the_seed():
    corpus = make([f"s{n}" for n in range(200)])
    assert split_dev(corpus, size=9, seed=4) == split_dev(corpus, size=9, seed=4)
    assert split_dev(corpus, size=9, seed=4)[1] != split_dev(corpus, size=9, seed=5)[1]


def test_split_where_every_source_has_many_pairs():
    train, dev = split_dev(make(["a"] * 30 + ["b"] * 20), size=1, seed=1)
    assert (set(train.sources), set(dev.sources)) == ({"a"}, {"b"})


@pytest.mark.parametrize("count", [1, 5])
def test_split_needs_two_sources(count):
    with fails_with("f: one distinct source is too few to split off a dev set; give dev_src and dev_tgt"):
        split_dev(make(["same"] * count), size=1, seed=1)


@given(st.lists(st.sampled_from("abcdefghij"), min_size=2, max_size=60), st.integers(1, 8), st.integers(0, 5))
def test_the_split_is_the_one_of_plain_groups(sources, size, seed):
    """Groups in the order in which they begin, permuted by the seed; each that still has room is taken."""
    groups: dict[str, list[int]] = {}
    for index, source in enumerate(sources):
        groups.setdefault(source, []).append(index)
    assume(len(groups) > 1)
    wanted, drawn = min(size, max(1, len(sources) // 10)), []
    ordered = list(groups.values())
    for place in np.random.default_rng(seed).permutation(len(ordered)):
        if len(drawn) + len(ordered[place]) <= wanted:
            drawn += ordered[place]
    drawn = sorted(drawn or min(ordered, key=len))
    assert split_dev(make(sources), size=size, seed=seed)[1].lines == [10 + index for index in drawn]


# From the options


def test_load_pairs_in_every_way(tmp_path):
    src, tgt = write(tmp_path / "s", "one\ntwo\n"), write(tmp_path / "t", "uno\ndos\n")
    tsv = write(tmp_path / "p.tsv", "uno\tone\ndos\ttwo\n")
    lines = jsonl(tmp_path / "p.jsonl", {"x": {"en": "one", "es": "uno"}}, {"x": {"en": "two", "es": "dos"}})
    more = {"source_column": 2, "target_column": 1, "source_key": "x.en", "target_key": "x.es"}
    ways = [{"src": str(src), "tgt": str(tgt)}, {"tsv": str(tsv)}, {"jsonl": str(lines)}]
    for train_way in ways:
        for dev_way in ways:
            dev_options = {f"dev_{name}": value for name, value in dev_way.items()}
            train, dev = load_pairs(DataConfig(**train_way, **dev_options, **more), seed=1)
            assert train.sources == dev.sources == ["one", "two"]
            assert train.targets == dev.targets == ["uno", "dos"]


def test_load_pairs_splits_without_dev(tmp_path):
    path = write(tmp_path / "p.tsv", "".join(f"s{n}\tt{n}\n" for n in range(50)))
    config = DataConfig(tsv=str(path), dev_size=3)
    assert load_pairs(config, seed=2) == split_dev(read_tsv(path), size=3, seed=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no training pairs: give them as --src and --tgt, or --tsv, or --jsonl, or --dataset"),
        ({"src": "a"}, "--src without --tgt; give pairs as --src and --tgt, or --tsv, or --jsonl, or --dataset"),
        ({"tgt": "a"}, "--tgt without --src; give pairs as --src and --tgt, or --tsv, or --jsonl, or --dataset"),
        (
            {"tsv": "a", "jsonl": "b"},
            "--tsv, --jsonl are too many together; give pairs as --src and --tgt, or --tsv, or --jsonl, or --dataset",
        ),
        (
            {"src": "a", "tgt": "b", "tsv": "c"},
            "--src, --tgt, --tsv are too many together; give pairs as --src and --tgt, or --tsv, or --jsonl, or "
            "--dataset",
        ),
        (
            {"tsv": "a", "dev_src": "b"},
            "--dev-src without --dev-tgt; give pairs as --dev-src and --dev-tgt, or --dev-tsv, or --dev-jsonl, or "
            "--dev-dataset",
        ),
        (
            {"tsv": "a", "dev_tsv": "b", "dev_jsonl": "c"},
            "--dev-tsv, --dev-jsonl are too many together; give pairs as --dev-src and --dev-tgt, or --dev-tsv, or "
            "--dev-jsonl, or --dev-dataset",
        ),
        (
            {"prepared": "a", "src": "b", "tgt": "c"},
            "src beside prepared, which has training and dev pairs; give one of them",
        ),
        (
            {"prepared": "a", "dev_tsv": "b"},
            "dev_tsv beside prepared, which has training and dev pairs; give one of them",
        ),
    ],
)
def test_load_pairs_in_no_or_several_ways(options, message):
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        load_pairs(DataConfig(**options), seed=1)
