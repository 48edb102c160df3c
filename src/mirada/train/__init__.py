"""Training: set up, loop, loss, schedule, validation, log. `mirada.train(config)` calls it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mirada.config.options import Config
    from mirada.train.loop import Result
    from mirada.train.progress import Monitor


class _Room(ModuleType):
    """Python sets `mirada.train` to this room as soon as anything in it is imported, over the function of the name."""

    def __call__(self, config: Config, *, monitor: Monitor | None = None) -> Result:
        """Train a model: `loop.train`."""
        from mirada.train.loop import train

        return train(config, monitor=monitor)


sys.modules[__name__].__class__ = _Room
