"""From what a user asks for to jobs: the same pairs, tokenisers and budget for all, and what differs written down."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mirada.config.configfile import parse
from mirada.config.options import DataConfig, SearchConfig
from mirada.data.corpus import Corpus, chosen_files, read_files
from mirada.errors import ConfigError
from mirada.evaluation.compare import TASK_METRICS
from mirada.evaluation.metrics import resolve
from mirada.evaluation.units import Units
from mirada.files import expanded
from mirada.scaling.engine import LOCAL, EngineChoice
from mirada.store import checkpoint
from mirada.study.compare import items
from mirada.study.compare.jobs import SystemRun
from mirada.study.compare.runs import RunSettings, SharedInput, System, share, testing_job, trained_system
from mirada.study.compare.systems import (
    ENDLESS,
    Vocabularies,
    budgeted,
    count_weights,
    facts,
    match_weights,
    system_config,
)

GoldUnits = Literal["words", "punctuation"]


@dataclass(frozen=True)
class ComparisonRequest:
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
    gold: str | None = None  # a file of links, line by line with the test pairs
    units: GoldUnits | None = None  # what it counts (None: words); other units depend on a model's tokeniser
    given: items.Pairs | None = None  # that are in memory, instead of those in files
    embedded: int = 6000  # training pairs of the embedded corpus, where no others are given
    batch_size: int = 64
    quiet: bool = False
    engine: EngineChoice = LOCAL


class Plan(NamedTuple):
    """Everything that a comparison does, and what its report says about the conditions."""

    systems: tuple[System, ...]
    items: list[items.Item]
    metrics: tuple[str, ...]
    baseline: str
    conditions: dict[str, str]  # what is the same for all systems
    notes: tuple[str, ...]
    units: Units | None  # of the items' gold links; None: they have none


def make_plan(request: ComparisonRequest) -> Plan:
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
    _check_gold(request)
    return _plan_models(request) if request.models else _plan_training(request)


def _check_gold(request: ComparisonRequest) -> None:
    if request.units and not request.gold:
        raise ConfigError("--units says what the links of --gold count; give --gold, or leave --units out")
    if request.gold and request.multi_reference:
        raise ConfigError("--gold has links for one target a source, --multi-reference takes several; leave one out")
    if request.gold and not {"src", "tgt", "tsv", "jsonl", "dataset"} & set(request.test):
        raise ConfigError(
            "--gold goes line by line with test pairs of your own: give --test-src and --test-tgt, or --test-tsv, "
            "or --test-jsonl (the embedded corpus brings its gold links along)"
        )


def _plan_training(request: ComparisonRequest) -> Plan:
    values = budgeted(request.options, request.budget)
    for name in request.systems:  # before any file is read
        system_config(values, name)
    pairs = _pairs(request, parse({"data": values.get("data", {})}).data)
    shared = share(request.out, values, pairs, multi_reference=request.multi_reference)
    configs = {name: system_config(shared.values, name) for name in request.systems}
    if request.match_parameters:
        first, *others = request.systems
        goal = count_weights(configs[first].model, shared.sizes)
        configs |= {name: match_weights(configs[name], goal, shared.sizes) for name in others}
    place = _place(request, shared.units)
    systems = tuple(trained_system(place, name, config) for name, config in configs.items())
    training = configs[request.systems[0]].training
    patience = f"or {training.patience} validations without improvement"
    weights = "within 5 % of the first system's, by the width" if request.match_parameters else "as the sizes give"
    conditions = {
        **shared.conditions,
        "order of the pairs": "the same for the same seed",
        "budget": f"{request.budget} for every run, {patience if training.patience < ENDLESS else 'used whole'}",
        "seeds": ", ".join(str(training.seed + i) for i in range(request.seeds)),
        "model that is tested": f"the best on the dev pairs ({training.early_stopping_metric})",
        "weights": weights,
    }
    return _plan(request, systems, shared._replace(conditions=conditions))


def _place(request: ComparisonRequest, units: Units | None) -> RunSettings:
    return RunSettings(request.out, request.seeds, request.batch_size, request.quiet, units)


def _pairs(request: ComparisonRequest, data: DataConfig) -> items.Pairs:
    """The user's pairs, or the embedded corpus."""
    if request.given is not None:
        return request.given
    test = parse({"data": request.test}, where="test pairs").data
    if chosen_files(data):
        pairs = items.given_pairs(data, test)
        return pairs._replace(gold=_gold(request, pairs.test))
    if chosen_files(test, test=True) or chosen_files(data, dev=True):
        raise ConfigError("there are test or dev pairs but no training pairs; give --src and --tgt (or --tsv, --jsonl)")
    return items.embedded_pairs(request.embedded)


def _gold(request: ComparisonRequest, test: Corpus) -> items.GoldLines | None:
    return items.read_gold(request.gold, request.units or "words", test) if request.gold else None


def _plan_models(request: ComparisonRequest) -> Plan:
    """Models that exist already: the same test items, the same search."""
    options = request.options
    if useless := [f"{block}.{name}" for block in ("data", "model", "training") for name in options.get(block, {})]:
        device = useless == ["training.device"]
        if not device:
            raise ConfigError(f"{useless[0]} does nothing with --models, which are only tested; leave it out")
    test = parse({"data": request.test}, where="test pairs").data
    files = chosen_files(test, test=True)
    if files is None:
        raise ConfigError("--models needs test pairs: give --test-src and --test-tgt, or --test-tsv, or --test-jsonl")
    configs = {path: checkpoint.read_config(expanded(path)) for path in request.models}
    corpus = read_files(files, test)
    gold = _gold(request, corpus)
    found = items.to_items(corpus, multi_reference=request.multi_reference, gold=gold)
    tested = items.write_items(request.out / "data", found, gold)
    config = parse({"search": options.get("search", {}), "training": options.get("training", {})})
    systems = []
    for name, path in _model_names(request.models).items():
        folder = request.out / "runs" / name
        job = testing_job(_place(request, tested.units), config.search, path, config.training.device)
        seed = configs[path].training.seed
        systems.append(System(name, (SystemRun(name, seed, folder, job),), facts(configs[path].model)))
    kind = str(next(iter(configs.values())).data.target_tokenizer)
    conditions = {"test items": f"{len(found)}", "training": "the models' own: it may differ in everything"}
    values = {"search": config.search.model_dump()}
    shared = SharedInput(values, Vocabularies(0, 0), kind, tested.items, (), conditions, tested.units)
    return _plan(request, tuple(systems), shared)


def _model_names(paths: tuple[str, ...]) -> dict[str, str]:
    """Name each model by the last part of its path, by more parts where that is not enough."""
    for depth in range(1, 10):
        names = {"-".join(Path(os.path.abspath(path)).parts[-depth:]).strip("/-"): path for path in paths}
        if len(names) == len(paths):
            return names
    raise ConfigError(f"the models {' '.join(paths)} cannot be told apart by their paths; rename their folders")


def _plan(request: ComparisonRequest, systems: tuple[System, ...], shared: SharedInput) -> Plan:
    names = [system.name for system in systems]
    baseline = request.baseline or names[0]
    if baseline not in names:
        raise ConfigError(f"baseline {baseline!r} is none of the systems; choose one of {', '.join(names)}")
    search = SearchConfig.model_validate(shared.values.get("search", {}))
    how = (
        "random samples" if search.sample else "greedy search" if search.beam_size == 1 else f"beam {search.beam_size}"
    )
    conditions = {**shared.conditions, "search": f"{how}, α {search.alpha:g}, {request.batch_size} sentences together"}
    if request.engine.kind != "local":
        conditions["runs"] = f"several at once (engine {request.engine.kind}): times and speeds are of shared machines"
    metrics = resolve(request.metrics or TASK_METRICS[shared.kind])
    return Plan(systems, shared.items, metrics, baseline, conditions, shared.notes, shared.units)
