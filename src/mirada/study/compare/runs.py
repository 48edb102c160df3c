"""Runs under equal conditions: the same pairs in files, tokenisers learned once, and every run's options in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from mirada.config.configfile import changed, parse
from mirada.config.options import Config, DataConfig, SearchConfig
from mirada.data.preparing import Tokenizers
from mirada.errors import ConfigError
from mirada.evaluation.units import Units
from mirada.store import checkpoint
from mirada.study.compare import items
from mirada.study.compare.jobs import SystemRun
from mirada.study.compare.stored import RunJob
from mirada.study.compare.systems import Vocabularies, facts
from mirada.train import prepare


class RunSettings(NamedTuple):
    """Where runs are kept, and how each is made: seeds a system, test items searched together, progress or none.

    `units` says what the test items' gold links count; None: they have none.
    """

    out: Path
    seeds: int = 1
    batch_size: int = 64
    quiet: bool = False
    units: Units | None = None


class System(NamedTuple):
    """A system under its name: its runs, one a seed, and its make for the reader."""

    name: str
    tasks: tuple[SystemRun, ...]
    facts: dict[str, str]


class SharedInput(NamedTuple):
    """What every run reads."""

    values: dict[str, Any]  # options without a system's own
    sizes: Vocabularies
    kind: str  # of the target's tokens
    items: list[items.Item]
    notes: tuple[str, ...]
    conditions: dict[str, str]  # what a reader should know is equal
    units: Units | None = None  # of the items' gold links, if they have some


def share(out: Path, values: dict[str, Any], pairs: items.Pairs, *, multi_reference: bool = False) -> SharedInput:
    """Write the pairs below `out` and learn the tokenisers from the training pairs, or check what is there already.

    Raises TrainingError if `out` holds other pairs, ConfigError for options that cannot be compared.
    """
    data = parse({"data": values.get("data", {})}).data
    found = items.to_items(pairs.test, multi_reference=multi_reference, gold=pairs.gold)
    contents = {"train": items.pair_lines(pairs.train), "dev": items.pair_lines(pairs.dev)}
    items.write_parts(out / "data", contents)
    test = items.write_items(out / "data", found, pairs.gold)
    resolved = prepare.resolve(
        parse({**values, "data": _data_values(data, out / "data"), "model": {}}), (pairs.train, pairs.dev)
    )
    tokenizers = _tokenizers(out / "tokenizers", resolved, pairs)
    kinds = resolved.data.source_tokenizer, resolved.data.target_tokenizer
    conditions = {
        "training pairs": f"{len(pairs.train)} ({items.fingerprint(contents['train'])})",
        "dev pairs": f"{len(pairs.dev)}",
        "test items": f"{len(found)}",
        "tokens": f"{kinds[0]} and {kinds[1]}, vocabularies of {len(tokenizers[0])} and {len(tokenizers[1])} entries",
    }
    sizes = Vocabularies(*map(len, tokenizers))
    shared = {**values, "data": resolved.data.model_dump()}
    notes = tuple(filter(None, (*pairs.notes, test.note)))
    return SharedInput(shared, sizes, str(kinds[1]), test.items, notes, conditions, test.units)


def _data_values(data: DataConfig, folder: Path) -> dict[str, Any]:
    """The options about data, pointing at the runs' own files."""
    files = ("src", "tgt", "tsv", "dataset", "prepared", "dev_src", "dev_tgt", "dev_tsv", "dev_dataset")
    own = dict.fromkeys((*files, "dev_reference_column"))
    keys = {"source_key": "source", "target_key": "target", "source_tokenizer": _kinds(data)}
    written = {"jsonl": str(folder / "train.jsonl"), "dev_jsonl": str(folder / "dev.jsonl")}
    return {**data.model_dump(), **own, **keys, **written}


def _kinds(data: DataConfig) -> str | None:
    """The kinds of tokens of the source's parts, each named: the runs' own files have the parts joined."""
    if data.source_parts == 1:
        return data.source_tokenizer
    return ",".join(data.source_kinds * (data.source_parts // len(data.source_kinds)))


def _tokenizers(folder: Path, config: Config, pairs: items.Pairs) -> Tokenizers:
    """Learn the tokenisers that every run must arrive at, or read those learned before."""
    if "unigram" in (config.data.source_tokenizer, config.data.target_tokenizer):
        raise ConfigError(
            "tokenizer unigram may be learned a little differently each time, so that systems could not be compared; "
            "use bpe, word or char"
        )
    if not folder.exists():
        new = folder.with_name("tokenizers.new")
        new.mkdir(parents=True, exist_ok=True)
        source, target = prepare.learn_tokenizers(config, pairs.train)
        source.save(new / "source.json")
        target.save(new / "target.json")
        new.rename(folder)
    return checkpoint.read_tokenizers(folder, config)


def trained_system(place: RunSettings, name: str, config: Config, *, measure: str = "search") -> System:
    """A system to be trained, once a seed."""
    tasks = []
    for i in range(place.seeds):
        seed = config.training.seed + i
        folder = place.out / "runs" / f"{name}-{seed}"
        training = changed(config.training, {"seed": seed})
        own = changed(config, {"model_dir": str(folder / "model"), "training": training.model_dump()})
        job = testing_job(place, own.search, str(folder / "model"), config.training.device)
        tokenizers = str(place.out / "tokenizers")
        job = job._replace(training=own.model_dump(mode="json"), tokenizers=tokenizers, measure=measure)
        tasks.append(SystemRun(name, seed, folder, job))
    return System(name, tuple(tasks), facts(config.model))


def testing_job(place: RunSettings, search: SearchConfig, model: str, device: str) -> RunJob:
    """Test a model that stands in a folder already."""
    return RunJob(
        training=None,
        model=model,
        test=str(place.out / "data" / "test.jsonl"),
        search=search.model_dump(mode="json"),
        batch_size=place.batch_size,
        device=device,
        measure="search",
        tokenizers=None,
        quiet=place.quiet,
        units=place.units,
    )
