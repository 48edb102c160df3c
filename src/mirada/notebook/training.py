"""`mirada.train`: a model from pairs in memory, or from the files that options name."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from mirada.config.configfile import by_block, parse
from mirada.config.options import Config
from mirada.data.corpus import WAYS, Corpus, split_dev
from mirada.errors import ConfigError
from mirada.notebook import pairs
from mirada.notebook.model import Model, load

if TYPE_CHECKING:
    from mirada.train.loop import Result
    from mirada.train.progress import Monitor

FROM_PYTHON = "pairs given from Python"  # in place of a file's name
FILES = (*WAYS, "prepared", *(f"dev_{name}" for name in WAYS))


@overload
def train(data: Config, *, monitor: Monitor | None = None) -> Result: ...


@overload
def train(
    data: Any = None,
    targets: Iterable[str] | None = None,
    *,
    dev: Any = None,
    model_dir: str | Path | None = None,
    quiet: bool = False,
    monitor: Monitor | None = None,
    **options: Any,
) -> Model: ...


def train(
    data: Any = None,
    targets: Iterable[str] | None = None,
    *,
    dev: Any = None,
    model_dir: str | Path | None = None,
    quiet: bool = False,
    monitor: Monitor | None = None,
    **options: Any,
) -> Model | Result:
    """Train a model and return it, ready to translate; the best of the training, by its dev pairs.

    `data` is a list of sources, with `targets`; or pairs; or rows as mappings (`source_key`, `target_key`); or a table
    of pandas, polars, pyarrow or datasets (`source_column`, `target_column`: names, or numbers from 1). Without it the
    options name files: `tsv`, `jsonl`, or `src` and `tgt`. `dev`: pairs, rows or a table by which the best is chosen
    (else some are split off). `options` are those of `mirada train` by their plain names. A training with a `model_dir`
    goes on where it was stopped; without one, the folder is gone when the model is (`model.save` keeps it).

    >>> pairs = [("a b c", "c b a"), ("b c", "c b"), ("c a", "a c")]
    >>> model = mirada.train(pairs, decoder="luong", epochs=1, quiet=True)
    >>> model.config.model.decoder
    'luong'

    A `Config` alone trains what it says and returns a Result: the folder, the metrics, updates and seconds. Raises
    ConfigError for options, unknown ones too; DataError for pairs, naming the row; TrainingError; and
    InterruptedTrainingError after Ctrl-C.
    """
    from mirada.train import loop
    from mirada.train.progress import Monitor

    if isinstance(data, Config):
        if options or targets is not None or dev is not None or model_dir is not None:
            raise ConfigError("a Config says everything; change it (Config.model_copy) instead of adding options to it")
        return loop.train(data, monitor=monitor or Monitor(quiet=quiet))
    values = by_block(options)
    folder = Path(tempfile.mkdtemp(prefix="mirada-")) if model_dir is None else Path(model_dir)
    try:
        config, corpora = _prepared(values, str(folder), (data, targets), dev)
        loop.train(config, monitor=monitor or Monitor(quiet=quiet), corpora=corpora)
        model = load(folder, device=config.training.device)
    except BaseException:
        if model_dir is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if model_dir is None:
        weakref.finalize(model, shutil.rmtree, folder, ignore_errors=True)
    return model


def _prepared(
    values: dict[str, dict[str, Any]], folder: str, given: tuple[Any, Any], dev: Any
) -> tuple[Config, tuple[Corpus, Corpus] | None]:
    """The options and, where the pairs are in memory, those to train on and those of dev."""
    if given[0] is None and given[1] is None:
        if dev is not None:
            raise ConfigError("dev pairs without pairs to train on; give those too, or name files (dev_tsv=)")
        if not any(name in values.get("data", {}) for name in FILES):
            raise ConfigError("no pairs to train on: give sources and targets, pairs or a table, or name files (tsv=)")
        return parse({**values, "model_dir": folder}), None
    if given[0] is None:
        raise ConfigError("targets without sources; give both, or pairs")
    values, corpora = in_memory(values, given, dev)
    return parse({**values, "model_dir": folder}), corpora


def reading(values: dict[str, dict[str, Any]]) -> Config:
    """The options that say how pairs are read and split; the others may be of several systems."""
    seed = {name: value for name, value in values.get("training", {}).items() if name == "seed"}
    return parse({"data": values.get("data", {}), "training": seed})


def in_memory(
    values: dict[str, dict[str, Any]], given: tuple[Any, Any], dev: Any
) -> tuple[dict[str, dict[str, Any]], tuple[Corpus, Corpus]]:
    """Pairs to train on and those of dev, and the options with what names their parts.

    Raises ConfigError where the options name files too.
    """
    own = values.get("data", {})
    if named := [name for name in FILES if name in own]:
        raise ConfigError(f"pairs are given twice, as {named[0]} too; leave one of them out")
    train, keys = pairs.read(*given, parse({"data": {**own, "tsv": FROM_PYTHON}}).data, "pairs")
    kept = {name: value for name, value in own.items() if not name.endswith("_column")}
    kept |= {"jsonl": FROM_PYTHON, "source_key": ",".join(keys.source), "target_key": keys.target}
    values = {**values, "data": kept}
    config = reading(values)
    if dev is None:
        return values, split_dev(train, size=config.data.dev_size, seed=config.training.seed)
    return values, (train, pairs.read(dev, None, config.data, "dev pairs")[0])
