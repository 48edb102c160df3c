"""What is chosen from the number of pairs where it is not given: how wide, how careful, how large a batch, how long.

The sizes are the field's habits for little data, not yet measured on several data sets; the rate of small recurrent
models is measured on three: see docs/training.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from statistics import median
from typing import Any, NamedTuple

from mirada.config.configfile import changed
from mirada.config.options import Config, ModelConfig, TrainingConfig
from mirada.data.corpus import Corpus
from mirada.data.preparing import SUBWORDS
from mirada.devices import choose_device
from mirada.errors import ConfigError
from mirada.evaluation.compare import TASK_METRICS
from mirada.evaluation.measurable import cannot_measure

UPDATES = 3000  # a plan has so many at least, however few the pairs
EPOCHS = 20  # … and so many passes
WARMUP = 400  # updates, or a tenth of the plan
VALIDATIONS = 25  # in a plan, about, where an epoch is shorter than that
ENDLESS = 1_000_000
SYMBOLS = 300  # different words of targets that are symbols, not texts, at most
LONG = 40  # characters of a target that is a text
COPIED = 0.5  # of a target stands in its source where copying letters is worth it
RARE, RARE_COPIED = 10, 0.25  # words seen so rarely, of which so many stand in their sources where copying is worth it
LOOKED_AT = 1000  # pairs, about: more tell nothing new


class Recommended(NamedTuple):
    """What suits a number of pairs."""

    below: int  # pairs
    embedding_dim: int
    hidden_size: int
    ff_size: int
    dropout: float
    batch_size: int


RECOMMENDED = (
    Recommended(2_000, 128, 256, 512, 0.3, 16),
    Recommended(20_000, 128, 256, 512, 0.3, 32),
    Recommended(100_000, 256, 512, 1024, 0.2, 64),
    Recommended(1 << 60, 256, 512, 1024, 0.1, 64),
)
HOUR = 60  # minutes
TOKENS = 4096  # batch_size where it counts tokens
NARROW, FASTER = 256, 3e-3  # a recurrent model up to this hidden_size learns better with this rate (docs/training.md)


class Length(NamedTuple):
    """How long a training is: updates or time, and how they are divided."""

    epochs: int
    updates: int  # of all epochs, or fewer if fewer were asked for
    seconds: float | None
    warmup: int
    valid_every: int | None  # updates; None: each epoch, or a tenth of the time


def choose(config: Config, pairs: int) -> tuple[Config, list[str]]:
    """Fill in what was not given; returns also a line for each kind of choice, with its reason and who overrides it."""
    sizes = next(sizes for sizes in RECOMMENDED if pairs < sizes.below)
    training = config.training
    if (training.max_minutes or HOUR) < HOUR and choose_device(training.device).type == "cpu":
        sizes = sizes._replace(hidden_size=min(sizes.hidden_size, NARROW))  # a wide model would hardly have begun
    model, widths = _sized(config.model, sizes)
    how: dict[str, Any] = {"batch_size": TOKENS if training.batch_type == "token" else sizes.batch_size}
    if model.decoder != "transformer" and model.hidden_size <= NARROW and training.init_from is None:
        how["learning_rate"] = FASTER
    if training.max_minutes is not None:
        how |= {"scheduling": "linear", "patience": ENDLESS}
    how = {name: value for name, value in how.items() if name not in training.model_fields_set}
    values = {"model": model.model_dump(), "training": changed(training, how).model_dump()}
    shown = {name: value for name, value in {**widths, **how}.items() if name != "patience"}
    return changed(config, values), [_said(pairs, shown)] if shown else []


def for_processes(config: Config, processes: int) -> Config:
    """A batch an update for each process unless told otherwise; raises ConfigError if some would have none."""
    options = config.training
    if processes == 1:
        return config
    if "accum_count" not in options.model_fields_set:
        return config.model_copy(update={"training": options.model_copy(update={"accum_count": processes})})
    if options.accum_count < processes:
        raise ConfigError(
            f"accum_count {options.accum_count} with {processes} processes: it counts the batches of an update, of all "
            f"processes together; give a multiple of {processes}"
        )
    return config


def _sized(model: ModelConfig, sizes: Recommended) -> tuple[ModelConfig, dict[str, Any]]:
    """The model in the sizes that were not given; where those that were rule the widths out, only its dropout."""
    own = {"ff_size"} if model.decoder == "transformer" else {"hidden_size"}
    wanted = {name: getattr(sizes, name) for name in ("embedding_dim", *own, "dropout")}
    wanted = {name: value for name, value in wanted.items() if name not in model.model_fields_set}
    try:
        return changed(model, wanted), wanted
    except ConfigError:
        wanted = {name: value for name, value in wanted.items() if name == "dropout"}
        return changed(model, wanted), wanted


def choose_metrics(config: Config, targets: Sequence[str], given: Collection[str]) -> Config:
    """Report the metric that fits the targets: exact for symbols and single words, BLEU and chrF for texts.

    Exact or chrF, unless another is `given`, also says which model is the best: with little data the loss rises again
    long before the outputs stop getting better (docs/training.md).
    """
    kind, some = config.data.target_tokenizer, targets[:: max(1, len(targets) // 2000)]
    words = [text.split() for text in some]
    single = median(map(len, words)) < 2
    few = len({word for row in words for word in row}) <= SYMBOLS
    short = median(map(len, some)) <= LONG
    symbols = single and short if kind == "char" else kind == "word" and (single or few)
    metrics = TASK_METRICS["word"][:1] if symbols else TASK_METRICS["bpe"][:2]  # of those that reports show
    usable = [name for name in metrics if not cannot_measure(name, [[text] for text in some])]
    values: dict[str, Any] = {"valid_metrics": usable}
    if usable and "early_stopping_metric" not in given:
        values["early_stopping_metric"] = usable[-1]
    return changed(config, {"training": changed(config.training, values).model_dump()})


def choose_ties(config: Config, given: Collection[str]) -> tuple[Config, list[str]]:
    """One embedding for sources, targets and (where widths allow it) the output layer (Press & Wolf 2017, section 3.3).

    For sides of one language, whose vocabulary is one: what a word means is then learned thrice as often.
    """
    for ties in ("tied_embeddings", "tied_softmax"), ("tied_embeddings",):
        names = [name for name in ties if name not in given]
        try:
            model = changed(config.model, dict.fromkeys(names, True))
        except ConfigError:
            continue
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in names)
        said = f"chosen for one vocabulary: {', '.join(f'{name} true' for name in names)} ({flags} say otherwise)"
        return changed(config, {"model": model.model_dump()}), [said] if names else []
    return config, []


def choose_copying(config: Config, corpus: Corpus) -> tuple[Config, list[str]]:
    """Let letters or words be copied where both sides have the same ones, and sources hold what targets need.

    Letters where most of a target stands in its source: inflection and old spellings are such jobs, other writings and
    sounds are not. Words where sources hold many of the rare ones: summaries, and sentences about names and times.
    Returns also the line that says so.
    """
    data, model = config.data, config.model
    if not model.has_attention or model.attention_window == "local-p" or data.bpe_dropout:
        return config, []
    if data.target_tokenizer == "char" and "char" in data.source_kinds:
        share, wanted, what = copied_share(corpus), COPIED, "targets of which {:.0%} stands in their sources"
    elif data.target_tokenizer in SUBWORDS and data.share_vocab:
        share, wanted, what = rare_share(corpus), RARE_COPIED, "targets whose rare words stand in their sources, {:.0%}"
    else:
        return config, []
    if share < wanted:
        return config, []
    said = f"chosen for {what.format(share)}: copy_attn true (--copy-attn says otherwise)"
    return changed(config, {"model": changed(model, {"copy_attn": True}).model_dump()}), [said]


def copied_share(corpus: Corpus) -> float:
    """How much of a target stands in its source in the same order, in pieces of two letters at least; the mean."""
    step = max(1, len(corpus.targets) // LOOKED_AT)
    shares = []
    for source, target in zip(corpus.sources[::step], corpus.targets[::step], strict=True):
        blocks = SequenceMatcher(None, source, target, autojunk=False).get_matching_blocks()
        shares.append(sum(block.size for block in blocks if block.size > 1) / max(1, len(target)))
    return sum(shares) / max(1, len(shares))


def rare_share(corpus: Corpus) -> float:
    """How many of the targets' rare running words stand in their sources: names, numbers, terms.

    0.48 and 0.44 in dialogue acts and synopses, 0.02 to 0.07 between languages.
    """
    counts = Counter(word for target in corpus.targets for word in target.split())
    step = max(1, len(corpus.targets) // LOOKED_AT)
    pairs = zip(corpus.sources[::step], corpus.targets[::step], strict=True)
    words = ((set(source.split()), target.split()) for source, target in pairs)
    copied = [word in known for known, written in words for word in written if counts[word] <= RARE]
    return sum(copied) / max(1, len(copied))


def choose_judge(metric: str, references: Sequence[Sequence[str]]) -> tuple[str, list[str]]:
    """What says which model is the best: the metric asked for, or the loss where that cannot measure the texts."""
    doubt = "" if metric == "loss" else cannot_measure(metric, references)
    return ("loss", [f"{doubt}; the loss says what is best"]) if doubt else (metric, [])


def plan_length(options: TrainingConfig, batches: int, spent: float) -> Length:
    """The length of a training whose epoch has so many batches, and which has `spent` seconds behind it already."""
    updates = options.max_updates or (ENDLESS if options.max_minutes else UPDATES)
    epochs = options.epochs or max(EPOCHS, -(-updates // batches))
    updates = min(epochs * batches, options.max_updates or epochs * batches)
    warmup = min(WARMUP, updates // 10) if options.warmup_steps is None else options.warmup_steps
    seconds = None if options.max_minutes is None else max(1e-9, 60 * options.max_minutes - spent)
    every = options.valid_every
    if every is None and seconds is None and batches < updates // VALIDATIONS:
        every = updates // VALIDATIONS
    return Length(epochs, updates, seconds, warmup, every)


def describe(options: TrainingConfig, length: Length, batches: int) -> str:
    """One line about what was planned, and which options say otherwise."""
    if length.seconds is not None:
        ends = f"until {options.max_minutes:g} minutes are over, {batches:,} updates an epoch"
    else:
        ends = f"{length.updates:,} updates at most, {batches:,} an epoch"
    every = "each epoch" if length.seconds is None else "each tenth of the time"
    every = f"every {length.valid_every:,} updates" if length.valid_every else every
    tenth = "" if length.seconds is None else " (or a tenth of all)"
    return (
        f"plan: {ends}, the first {length.warmup:,}{tenth} with a rising rate, then {options.scheduling}; "
        f"validation {every} "
        "(--epochs, --max-updates, --max-minutes, --warmup-steps, --scheduling, --valid-every say otherwise)"
    )


def _said(pairs: int, shown: dict[str, Any]) -> str:
    choices = ", ".join(f"{name} {value}" for name, value in shown.items())
    flags = ", ".join(f"--{name.replace('_', '-')}" for name in shown)
    return f"chosen for {pairs:,} pairs: {choices} ({flags} say otherwise)"
