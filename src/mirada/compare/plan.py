"""From what a user asks for to jobs: the same pairs, tokenisers and budget for all, and what differs written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from mirada import checkpoint, prepare
from mirada.compare import items
from mirada.compare.jobs import Job, Task
from mirada.compare.systems import (
    ENDLESS,
    Vocabularies,
    budgeted,
    count_weights,
    facts,
    match_weights,
    system_config,
)
from mirada.config import Config, DataConfig, SearchConfig
from mirada.configfile import changed, parse
from mirada.data.corpus import chosen_files, read_files
from mirada.data.tokenizer import Tokenizer
from mirada.errors import ConfigError
from mirada.evaluation.compare import TASK_METRICS
from mirada.evaluation.metrics import resolve


@dataclass(frozen=True)
class Request:
    """What to compare: systems to be trained, or models that exist already (then only tested).

    `options` are shared by all systems, nested by block as in a file of options; `test` names the test pairs as a
    block `data` does.
    """

    out: Path
    systems: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    test: dict[str, Any] = field(default_factory=dict)
    budget: str = "10epochs"
    seeds: int = 1
    match_parameters: bool = False
    baseline: str | None = None
    metrics: tuple[str, ...] = ()
    multi_reference: bool = False
    embedded: int = 6000  # training pairs of the embedded corpus, where no others are given
    batch_size: int = 64
    quiet: bool = False


class System(NamedTuple):
    """A system under its name: its runs, one a seed, and its make for the reader."""

    name: str
    tasks: tuple[Task, ...]
    facts: dict[str, str]


class Plan(NamedTuple):
    """Everything that a comparison does, and what its report says about the conditions."""

    systems: tuple[System, ...]
    items: list[items.Item]
    metrics: tuple[str, ...]
    baseline: str
    conditions: dict[str, str]  # what is the same for all systems
    notes: tuple[str, ...]


class Shared(NamedTuple):
    """What every run of a comparison reads."""

    values: dict[str, Any]  # options without a system's own
    sizes: Vocabularies
    kind: str  # of the target's tokens
    items: list[items.Item]
    notes: tuple[str, ...]
    conditions: dict[str, str]


def make_plan(request: Request) -> Plan:
    """Read the pairs, learn the tokenisers once, and write down every run's options; nothing is trained yet.

    Raises ConfigError, DataError, TrainingError (other pairs than before) or ModelFolderError.
    """
    if bool(request.systems) == bool(request.models):
        raise ConfigError("name systems to train (--systems) or models to test (--models), one of the two")
    names = request.systems or tuple(request.models)
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"{sorted(twice)[0]} is named twice; name each system once")
    if request.seeds < 1:
        raise ConfigError(f"seeds {request.seeds}: expected 1 or more")
    return _plan_models(request) if request.models else _plan_training(request)


def _plan_training(request: Request) -> Plan:
    values = budgeted(request.options, request.budget)
    for name in request.systems:  # before any file is read
        system_config(values, name)
    shared = _share(request, values)
    configs = {name: system_config(shared.values, name) for name in request.systems}
    if request.match_parameters:
        goal = count_weights(configs[request.systems[0]].model, shared.sizes)
        configs = {name: match_weights(config, goal, shared.sizes) for name, config in configs.items()}
    systems = tuple(_system(request, name, config) for name, config in configs.items())
    first = configs[request.systems[0]].training
    patience = f"or {first.patience} validations without improvement" if first.patience < ENDLESS else "used whole"
    weights = "within 5 % of the first system's, by the width" if request.match_parameters else "as the sizes give"
    conditions = {
        **shared.conditions,
        "order of the pairs": "the same for the same seed",
        "budget": f"{request.budget} for every run, {patience}",
        "seeds": ", ".join(str(first.seed + i) for i in range(request.seeds)),
        "model that is tested": f"the best on the dev pairs ({first.early_stopping_metric})",
        "weights": weights,
    }
    return _plan(request, systems, shared._replace(conditions=conditions))


def _share(request: Request, values: dict[str, Any]) -> Shared:
    """Write the pairs into the folder and learn the tokenisers from them."""
    data = parse({"data": values.get("data", {})}).data
    test = parse({"data": request.test}, where="test pairs").data
    if not chosen_files(data) and (chosen_files(test) or chosen_files(data, dev=True)):
        raise ConfigError("there are test or dev pairs but no training pairs; give --src and --tgt (or --tsv, --jsonl)")
    pairs = items.given_pairs(data, test) if chosen_files(data) else items.embedded_pairs(request.embedded)
    folder = request.out / "data"
    test_items = items.test_items(pairs.test, multi_reference=request.multi_reference)
    contents = {"train": items.pair_lines(pairs.train), "dev": items.pair_lines(pairs.dev)}
    items.write_parts(folder, {**contents, "test": items.item_lines(test_items)})
    resolved = prepare.resolve(parse({**values, "data": _data_values(data, folder), "model": {}}), pairs.train)
    tokenizers = _tokenizers(request.out / "tokenizers", resolved, pairs)
    kinds = resolved.data.source_tokenizer, resolved.data.target_tokenizer
    conditions = {
        "training pairs": f"{len(pairs.train)} ({items.fingerprint(contents['train'])})",
        "dev pairs": f"{len(pairs.dev)}",
        "test items": f"{len(test_items)}",
        "tokens": f"{kinds[0]} and {kinds[1]}, vocabularies of {len(tokenizers[0])} and {len(tokenizers[1])} entries",
    }
    sizes = Vocabularies(*map(len, tokenizers))
    shared = {**values, "data": resolved.data.model_dump()}
    return Shared(shared, sizes, str(kinds[1]), test_items, tuple(filter(None, pairs.notes)), conditions)


def _data_values(data: DataConfig, folder: Path) -> dict[str, Any]:
    """The options about data, pointing at the comparison's own files."""
    own = dict.fromkeys(("src", "tgt", "tsv", "dev_src", "dev_tgt", "dev_tsv"))
    keys = {"source_key": "source", "target_key": "target"}
    files = {"jsonl": str(folder / "train.jsonl"), "dev_jsonl": str(folder / "dev.jsonl")}
    return {**data.model_dump(), **own, **keys, **files}


def _tokenizers(folder: Path, config: Config, pairs: items.Pairs) -> tuple[Tokenizer, Tokenizer]:
    """Learn the tokenisers that every run must arrive at, or read those learned before."""
    kinds = str(config.data.source_tokenizer), str(config.data.target_tokenizer)
    if "unigram" in kinds:
        raise ConfigError(
            "tokenizer unigram may be learned a little differently each time, so that systems could not be compared; "
            "use bpe, word or char"
        )
    if not (folder / "target.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        source, target = prepare.learn_tokenizers(config, pairs.train)
        source.save(folder / "source.json")
        target.save(folder / "target.json")
    return checkpoint.read_tokenizers(folder, config)


def _system(request: Request, name: str, config: Config) -> System:
    tasks = []
    for i in range(request.seeds):
        seed = config.training.seed + i
        folder = request.out / "runs" / f"{name}-{seed}"
        training = changed(config.training, {"seed": seed})
        own = changed(config, {"model_dir": str(folder / "model"), "training": training.model_dump()})
        job = _job(request, own.search, str(folder / "model"), config.training.device)
        job = job._replace(training=own.model_dump(mode="json"), tokenizers=str(request.out / "tokenizers"))
        tasks.append(Task(name, seed, folder, job))
    return System(name, tuple(tasks), facts(config.model))


def _job(request: Request, search: SearchConfig, model: str, device: str) -> Job:
    return Job(
        training=None,
        model=model,
        test=str(request.out / "data" / "test.jsonl"),
        search=search.model_dump(mode="json"),
        batch_size=request.batch_size,
        device=device,
        measure="search",
        tokenizers=None,
        quiet=request.quiet,
    )


def _plan_models(request: Request) -> Plan:
    """Models that exist already: the same test items, the same search."""
    options = request.options
    if useless := [f"{block}.{name}" for block in ("data", "model", "training") for name in options.get(block, {})]:
        device = useless == ["training.device"]
        if not device:
            raise ConfigError(f"{useless[0]} does nothing with --models, which are only tested; leave it out")
    test = parse({"data": request.test}, where="test pairs").data
    files = chosen_files(test)
    if files is None:
        raise ConfigError("--models needs test pairs: give --test-src and --test-tgt, or --test-tsv, or --test-jsonl")
    configs = {path: checkpoint.read_config(Path(path)) for path in request.models}
    found = items.test_items(read_files(files, test), multi_reference=request.multi_reference)
    items.write_parts(request.out / "data", {"test": items.item_lines(found)})
    config = parse({"search": options.get("search", {}), "training": options.get("training", {})})
    systems = []
    for name, path in _model_names(request.models).items():
        folder = request.out / "runs" / name
        job = _job(request, config.search, path, config.training.device)
        seed = configs[path].training.seed
        systems.append(System(name, (Task(name, seed, folder, job),), facts(configs[path].model)))
    kind = str(next(iter(configs.values())).data.target_tokenizer)
    conditions = {"test items": f"{len(found)}", "training": "the models' own: it may differ in everything"}
    shared = Shared({"search": config.search.model_dump()}, Vocabularies(0, 0), kind, found, (), conditions)
    return _plan(request, tuple(systems), shared)


def _model_names(paths: tuple[str, ...]) -> dict[str, str]:
    """Name each model by the last part of its path, by more parts where that is not enough."""
    for depth in range(1, 10):
        names = {"-".join(Path(path).parts[-depth:]).strip("/-"): path for path in paths}
        if len(names) == len(paths):
            return names
    raise ConfigError(f"the models {' '.join(paths)} cannot be told apart by their paths; rename their folders")


def _plan(request: Request, systems: tuple[System, ...], shared: Shared) -> Plan:
    names = [system.name for system in systems]
    baseline = request.baseline or names[0]
    if baseline not in names:
        raise ConfigError(f"baseline {baseline!r} is none of the systems; choose one of {', '.join(names)}")
    search = SearchConfig.model_validate(shared.values.get("search", {}))
    how = "sampled" if search.sample else "greedy" if search.beam_size == 1 else f"beam {search.beam_size}"
    conditions = {**shared.conditions, "search": f"{how}, α {search.alpha:g}, {request.batch_size} sentences together"}
    metrics = resolve(request.metrics or TASK_METRICS[shared.kind])
    return Plan(systems, shared.items, metrics, baseline, conditions, shared.notes)
