"""Options of `mirada sweep`: the block `sweep` of its file, beside the blocks of a training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from pydantic import Field, ValidationError, model_validator

from mirada.config.configfile import BLOCKS, explain, known_names, leaves, load_yaml
from mirada.config.options import Block
from mirada.config.types import Seed
from mirada.errors import ConfigError, suggestion

DRAWS = 100  # for each trial: beyond, there are no others
MOST = 10_000  # trials
Values = dict[str, Any]  # of the options that vary, by dotted name


class ValueRange(Block):
    """All values between two ends, whole numbers where both are."""

    low: int | float = Field(description="smallest value")
    high: int | float = Field(description="largest value")
    log: bool = Field(False, description="draw evenly on a logarithmic scale")

    @model_validator(mode="after")
    def _in_order(self) -> ValueRange:
        if self.low >= self.high:
            raise ValueError(f"low {self.low} must be below high {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low {self.low} must be above 0 with log true")
        return self

    def draw(self, random: Random) -> int | float:
        """A value at random, in four digits."""
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        if whole and not self.log:
            return random.randint(int(self.low), int(self.high))
        if self.log:
            value = math.exp(random.uniform(math.log(self.low), math.log(self.high)))
        else:
            value = random.uniform(self.low, self.high)
        return min(self.high, max(self.low, round(value) if whole else float(f"{value:.4g}")))


class SweepConfig(Block):
    """What varies from trial to trial, and by what trials are judged."""

    vary: dict[str, Any] = Field(description="options of train by dotted name: a list of values, or low and high")
    trials: int | None = Field(
        None, ge=1, le=MOST, description="random search: so many trials (default: the whole grid)"
    )
    seed: Seed = Field(1, description="of random search")
    metric: str | None = Field(
        None, description="what trials are sorted by: loss, or one of valid_metrics (default: early_stopping_metric)"
    )


def read_sweep(path: Path) -> tuple[SweepConfig, dict[str, Any]]:
    """A file's block `sweep`, its ranges checked, and the other blocks as they stand there; raises ConfigError."""
    values = load_yaml(path)
    if "model_dir" in values:
        raise ConfigError(f"{path}: model_dir: each trial has a folder of its own below --out; leave it out")
    if "sweep" not in values:
        raise ConfigError(f"{path}: no block sweep, which says what varies; for one training there is `mirada train`")
    for name in values:
        if name not in (*BLOCKS, "sweep"):
            raise ConfigError(f"{path}: unknown option {name!r}{suggestion(str(name), [*BLOCKS, 'sweep'])}")
    block = values.pop("sweep")
    for name, part in values.items():
        if not isinstance(part, dict | None):
            raise ConfigError(f"{path}: {name}: expected a mapping of options, got {part!r}")
    try:
        config = SweepConfig.model_validate(block, context={})
    except ValidationError as error:
        raise ConfigError(f"{path}: sweep: {explain(error, list(SweepConfig.model_fields))}") from None
    vary = {name: _checked(f"{path}: vary: {name}", name, part, values) for name, part in config.vary.items()}
    if not vary:
        raise ConfigError(f"{path}: vary is empty; name an option of train, such as model.hidden_size: [128, 256]")
    size = math.prod(len(part) for part in vary.values() if isinstance(part, list))
    if config.trials is None and size > MOST:
        raise ConfigError(
            f"{path}: vary: {size:,} combinations, more than {MOST:,}; give sweep.trials for random search"
        )
    ranges = [name for name, part in vary.items() if isinstance(part, ValueRange)]
    if ranges and config.trials is None:
        raise ConfigError(f"{path}: vary: {ranges[0]} has low and high, which no grid ends with; give sweep.trials too")
    return config.model_copy(update={"vary": vary}), values


def _checked(where: str, name: str, part: Any, values: Mapping[str, Any]) -> list[Any] | ValueRange:
    """A list of values or a range; raises ConfigError."""
    block, _, leaf = name.partition(".")
    if (block, leaf) not in leaves():
        homes = [f"{top}.{own}" for top, own in leaves() if own == name]
        near = f"; did you mean {homes[0]!r}?" if homes else suggestion(name, known_names([]))
        raise ConfigError(f"{where}: no option of train{near}")
    if leaf in (values.get(block) or {}):
        raise ConfigError(f"{where} stands in the block {block} too; leave one of them out")
    if isinstance(part, dict):
        try:
            return ValueRange.model_validate(part, context={})
        except ValidationError as error:
            raise ConfigError(f"{where}: {explain(error, list(ValueRange.model_fields))}") from None
    if not isinstance(part, list) or not part:
        raise ConfigError(f"{where}: expected a list of values, or low and high, got {part!r}")
    return part


def combinations(config: SweepConfig) -> Iterator[Values]:
    """The values of each trial: the whole grid, or so many at random, each combination once.

    More trials with the same seed begin with the same ones.
    """
    if config.trials is None:
        for row in itertools.product(*config.vary.values()):
            yield dict(zip(config.vary, row, strict=True))
        return
    random, seen = Random(config.seed), list[Values]()
    for _ in range(DRAWS * config.trials):
        drawn = {
            name: part.draw(random) if isinstance(part, ValueRange) else random.choice(part)
            for name, part in config.vary.items()
        }
        if drawn not in seen:
            seen.append(drawn)
            yield drawn
        if len(seen) == config.trials:
            return
