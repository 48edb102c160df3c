"""Whatever bytes come, what is promised holds. `MIRADA_FUZZ=5000` tries more examples, `make faults` for minutes.

What such runs have found stands below as tests with names.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from faults.properties import PROPERTIES, Bench, Property, attempt, check_options, translated
from mirada.data.tokenizer import TokenizerOptions, train_tokenizer
from mirada.store.checkpoint import Archive, read_archive, write_archive

EXAMPLES = int(os.environ.get("MIRADA_FUZZ", "30"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("tested", PROPERTIES, ids=lambda tested: tested.name)
def test_property(tested: Property, bench: Bench) -> None:
    assert attempt(tested, bench, examples=EXAMPLES) >= min(EXAMPLES, 20)


# Found so


def test_a_special_token_s_name_is_text(bench: Bench) -> None:
    """A text that holds the word `<pad>`: a word like any other, never padding, whatever the kind."""
    for name in ("<pad>", "<s>", "</s>", "<unk>"):
        word = train_tokenizer([name, "a"], TokenizerOptions("word", 100))
        [[first, middle, last]] = word.encode([f"a {name} a"])
        assert first == last != middle
        assert min(first, middle) > 3
        for tokenizer in bench.tokenizers.values():
            assert not {1, 2, 3} & set(tokenizer.encode([f"the {name} fox{name}"])[0])


def test_the_same_tensors_are_the_same_file(tmp_path: Path) -> None:
    """The library wrote the header's metadata in an order of its own, another one each time."""
    archive = Archive({"a": torch.arange(3.0), "b": torch.ones(2, 2)}, {"é": [1, {"b": 2, "a": None}]})
    contents = set()
    for _ in range(20):
        write_archive(tmp_path / "a", archive)
        contents.add((tmp_path / "a").read_bytes())
    assert len(contents) == 1
    found = read_archive(tmp_path / "a")
    assert found.metadata == archive.metadata
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in archive.tensors.items())


def test_lines_before_one_that_is_no_text_are_not_lost(bench: Bench) -> None:
    """They were in the same batch as the bad one, and went with it."""
    content = b"the cat\na man\n\xff\nthe fox\n"
    code, output, said = translated(bench.model, content, [])
    assert (code, output.count("\n"), len(said)) == (2, 2, 1)


def test_numbers_and_kinds_that_yaml_promises_and_does_not_keep(bench: Bench) -> None:
    """Five thousand digits, a month 99, a boolean x, a number of no digits: each was a traceback."""
    empty = ("!!int", "!!float", "!!timestamp", "!!bool")
    false = ("!!bool x", "!!timestamp x", "!!int x", "!!float [1]", "9" * 5000, "2024-99-99", "0x", "1:60:99")
    for value in empty + false:
        check_options(f"model_dir: {value}\n".encode(), bench)
        check_options(f"training: {{seed: {value}}}\n".encode(), bench)
