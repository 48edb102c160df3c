"""`mirada.train` from pairs in memory, in every form that they have in a notebook."""

from __future__ import annotations

import gc
import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import mirada
from cli_tools import flags, works, write
from mirada.config.model import applicable
from mirada.store.checkpoint import WEIGHTS, read_archive
from training_tools import PAIRS, SMALL, different

TRAIN, DEV = PAIRS[:50], PAIRS[50:]
OPTIONS = {name.replace("-", "_"): value for name, value in SMALL.items()} | {
    "max_updates": 3,
    "valid_metrics": (),
    "decoder": "luong",
}
COLUMNS = {"en": [source for source, _ in TRAIN], "n": list(range(50)), "es": [target for _, target in TRAIN]}
NAMED = {"source_column": "en", "target_column": "es"}


def trained(*given: Any, **options: Any) -> mirada.Model:
    return mirada.train(*given, quiet=True, **{**OPTIONS, "dev": DEV, **options})


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same training by the command line, from files."""
    folder = tmp_path_factory.mktemp("command")
    files = {f"{name}-jsonl".removeprefix("train-"): folder / f"{name}.jsonl" for name in ("train", "dev")}
    for path, pairs in zip(files.values(), (TRAIN, DEV), strict=True):
        write(path, [json.dumps({"source": source, "target": target}) for source, target in pairs])
    given = applicable({name.replace("-", "_"): value for name, value in SMALL.items()})
    works("train", *flags({**given, **files, "max-updates": 3, "decoder": "luong", "model-dir": folder / "m"}))
    return folder / "m"


class Frame:
    """As pandas and polars have it: names, and columns by name that become lists."""

    def __init__(self, columns: dict[str, list[Any]]):
        self._own, self.columns = columns, list(columns)

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(to_list=lambda: self._own[name])


class Rows:
    """As datasets has it: the names of columns, and columns that are gone through."""

    def __init__(self, columns: dict[str, list[Any]]):
        self._own, self.column_names = columns, list(columns)

    def __getitem__(self, name: str) -> Any:
        return iter(self._own[name])


FORMS = {
    "two lists": ((COLUMNS["en"], COLUMNS["es"]), {}),
    "two generators": ((iter(COLUMNS["en"]), iter(COLUMNS["es"])), {}),
    "pairs": ((TRAIN,), {}),
    "a generator": (((list(pair) for pair in TRAIN),), {}),
    "mappings": (([{"a": {"b": s}, "t": [t]} for s, t in TRAIN],), {"source_key": "a.b", "target_key": "t"}),
    "columns": ((COLUMNS,), NAMED),
    "columns by number": ((COLUMNS,), {"source_column": 1, "target_column": 3}),
    "pyarrow": ((pa.table(COLUMNS),), NAMED),
    "a frame": ((Frame(COLUMNS),), NAMED),
    "datasets": ((Rows({"pair": [{"en": s, "es": t} for s, t in TRAIN]}),),
                 {"source_key": "pair.en", "target_key": "pair.es"}),
}  # fmt: skip


@pytest.mark.parametrize("form", list(FORMS))
def test_every_form_is_the_training_of_the_command(form: str, by_command: Path) -> None:
    data, options = FORMS[form]
    dev = DEV if len(data) == 2 or form in ("pairs", "a generator") else None
    if dev is None:  # in the same form: dev's names are those of the training pairs
        dev = [dict(row) for row in _like(options)]
    model = trained(*data, dev=dev, **options)
    weights = [read_archive(folder / WEIGHTS).tensors for folder in (model.folders[0], by_command)]
    assert different(*weights) == []


def _like(options: dict[str, Any]) -> list[dict[str, Any]]:
    if options.get("source_key") == "a.b":
        return [{"a": {"b": s}, "t": t} for s, t in DEV]
    if "source_key" in options:
        return [{"pair": {"en": s, "es": t}} for s, t in DEV]
    return [{"en": s, "es": t} for s, t in DEV]


def test_several_columns_are_parts_of_the_source() -> None:
    table = {"lemma": COLUMNS["en"], "tag": ["x" if n % 2 else "y" for n in range(50)], "form": COLUMNS["es"]}
    model = trained(table, dev=None, source_column="lemma,tag", target_column="form")
    assert model.config.data.source_keys == ("lemma", "tag")
    assert isinstance(model.translate("a b\tx"), str)
    assert model.translate('{"lemma": "a b", "tag": "x"}') == model.translate("a b\tx")


def test_a_folder_that_nobody_named_goes_with_its_model(tmp_path: Path) -> None:
    model = trained(TRAIN)
    folder = model.folders[0]
    copied = model.save(tmp_path / "kept")
    assert folder.is_dir()
    del model
    gc.collect()
    assert not folder.exists()
    assert mirada.load(copied).config.model.decoder == "luong"


def test_a_folder_that_was_named_stays_and_is_gone_on_with(tmp_path: Path) -> None:
    first = trained(TRAIN, model_dir=tmp_path / "m")
    assert first.folders == (tmp_path / "m",)
    again = trained(TRAIN, model_dir=tmp_path / "m", max_updates=6)
    assert again.metrics != {}
    with pytest.raises(mirada.TrainingError, match="other"):
        trained(TRAIN[:40], model_dir=tmp_path / "m")


def test_files_are_options(tmp_path: Path) -> None:
    files = {"tsv": write(tmp_path / "a.tsv", ["\t".join(pair) for pair in TRAIN])}
    assert trained(dev=None, **files).translate(["a b"]) == trained(TRAIN, dev=None).translate(["a b"])


def test_a_failed_training_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(mirada.DataError):
        trained([("a", "b")], dev=None)
    assert list(tmp_path.iterdir()) == []


WRONG = {
    "an option": (
        (TRAIN,),
        {"decodr": "luong"},
        "unknown option 'decodr'; did you mean 'decoder'?",
    ),
    "a value": (
        (TRAIN,),
        {"decoder": "lung"},
        "options: model.decoder: input should be 'classic', 'bahdanau', 'luong' or 'transformer' (got 'lung')",
    ),
    "a text": (
        ("train.tsv",),
        {},
        "pairs: expected pairs or a table, got str 'train.tsv'; a file is given by an option: tsv=, jsonl=, or src= "
        "and tgt=",
    ),
    "a path": (
        (Path("train.tsv"),),
        {},
        "pairs: expected pairs or a table, got PosixPath 'train.tsv'; a file is given by an option: tsv=, jsonl=, or "
        "src= and tgt=",
    ),
    "a number": ((7,), {}, "pairs: expected pairs or a table, got int"),
    "two texts": (("a", "b"), {}, "expected a list of sources, got one source; write [source]"),
    "unequal": ((["a"], ["b", "c"]), {}, "1 sources and 2 targets; number n of both must belong together"),
    "None in a list": ((["a", None], ["b", "c"]), {}, "source 2 is NoneType, not a string"),
    "None in a pair": (([("a", None)],), {}, "pairs, row 1: key 'target' holds null, expected text"),
    "a path in a pair": (([("a", Path("b"))],), {}, "pairs, row 1: key 'target' holds PosixPath, expected text"),
    "three": (([("a", "b", "c")],), {}, "pairs, row 1: expected (source, target), got tuple of 3"),
    "sentences": ((["a b"],), {}, "pairs, row 1: expected (source, target), got str"),
    "NaN": (
        ({"en": ["a", float("nan")], "es": ["b", "c"]},),
        NAMED,
        "pairs, row 2: key 'en' holds a number, expected text",
    ),
    "a column": (
        (COLUMNS,),
        {"source_column": "eng", "target_column": "es"},
        "pairs: no column 'eng' (columns: 'en', 'n', 'es'); did you mean 'en'?",
    ),
    "a number of a column": (
        (COLUMNS,),
        {"source_column": 1, "target_column": 4},
        "pairs: no column '4' (columns: 'en', 'n', 'es')",
    ),
    "a key": (
        ([{"en": "a"}],),
        {"source_key": "en", "target_key": "es"},
        "pairs, row 1: no key 'es' (keys of the line: 'en'); did you mean 'en'?",
    ),
    "mixed": (([{"source": "a", "target": "b"}, 3],), {}, "pairs, row 2: expected a mapping like the first, got int"),
    "ragged": (({"a": ["b"], "c": []},), {}, "pairs: columns of different lengths (0, 1)"),
    "dev": (([("a", "b")],), {"dev": [("a",)]}, "dev pairs, row 1: expected (source, target), got tuple of 1"),
    "dev alone": (
        (),
        {"tsv": "a.tsv"},
        "dev pairs without pairs to train on; give those too, or name files (dev_tsv=)",
    ),
    "targets alone": ((None, ["a"]), {}, "targets without sources; give both, or pairs"),
    "nothing": (
        (),
        {"dev": None},
        "no pairs to train on: give sources and targets, pairs or a table, or name files (tsv=)",
    ),
    "none": (([],), {}, "pairs: no pair has text on both sides (0 lines read)"),
    "twice": ((TRAIN,), {"tsv": "a.tsv"}, "pairs are given twice, as tsv too; leave one of them out"),
}


@pytest.mark.parametrize("what", list(WRONG))
def test_mistakes_are_told_in_a_line(what: str) -> None:
    data, options, message = WRONG[what]
    with pytest.raises(mirada.MiradaError) as caught:
        trained(*data, **options)
    assert str(caught.value) == message


def test_a_config_is_the_other_road_and_takes_nothing_beside_it(tmp_path: Path) -> None:
    with pytest.raises(mirada.ConfigError, match=r"^a Config says everything; change it"):
        mirada.train(mirada.Config(), decoder="luong")


def test_the_function_and_the_room_of_its_name_are_called_alike() -> None:
    from mirada.notebook.training import train

    assert inspect.signature(mirada.train) == inspect.signature(train)
