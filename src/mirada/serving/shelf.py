"""Models at hand: loaded when first wanted, unloaded when others need the room, replaced when they change."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from threading import Event, RLock
from time import monotonic

from mirada.config.options import SearchConfig
from mirada.config.serving import ServeConfig
from mirada.errors import ConfigError, MiradaError
from mirada.serving.engine import Engine
from mirada.serving.errors import RefusedError
from mirada.serving.metrics import Metrics
from mirada.serving.places import Place, card
from mirada.store.checkpoint import CONFIG, TOKENIZERS, WEIGHTS
from mirada.translator import Translator, load

COPIES = 2  # of a model's weights: as trained, for scores and traces, and laid out for searching
BYTES = 4  # of a weight
Stamp = tuple[tuple[int, int, int], ...]


class Shelf:
    """Engines by the name of their model. All methods may be called from any thread; loading is done one by one."""

    def __init__(self, places: Mapping[str, Place], settings: ServeConfig, metrics: Metrics):
        self.places, self.settings, self.metrics = dict(places), settings, metrics
        self.log = logging.getLogger("mirada.serve")
        self.stopped, self.asked = Event(), Event()
        self._lock = RLock()
        self._engines: dict[str, Engine] = {}
        self._stamps: dict[str, Stamp] = {}
        self._used: dict[str, float] = {}
        self.cards = {name: card(place) for name, place in self.places.items()}
        self._check_room()
        for name in self.places:
            metrics.watch(name, queue=partial(self._queue, name), loaded=partial(self.loaded, name))

    def name(self, wanted: str | None) -> str:
        """The name of a served model; raises RefusedError for another."""
        if wanted is None:
            return next(iter(self.places))
        if wanted not in self.places:
            raise RefusedError(404, f"model {wanted[:60]!r} is not served; GET /v1/models lists those that are")
        return wanted

    def at_hand(self, name: str) -> Engine | None:
        """The model's engine, if it is loaded."""
        self._used[name] = monotonic()
        return self._engines.get(name)

    def engine(self, name: str) -> Engine:
        """The model's engine; loads it if need be. Raises ModelFolderError."""
        with self._lock:
            if name not in self._engines:
                self._make_room(name)
                self._engines[name] = self._load(name)
            self._used[name] = monotonic()
            return self._engines[name]

    def loaded(self, name: str) -> bool:
        """Whether a model is in memory."""
        return name in self._engines

    def preload(self) -> None:
        """Load every model; raises ModelFolderError for the first that cannot be."""
        for name in self.places:
            self.engine(name)

    def watch(self) -> None:
        """Until stopped: replace models whose folders change, and all that are loaded when asked to (SIGHUP)."""
        while not self.stopped.is_set():
            asked = self.asked.wait(self.settings.reload_seconds or None)
            self.asked.clear()
            if not self.stopped.is_set():
                self.refresh(every=asked)

    def stop(self) -> None:
        """End the watch and take no more work."""
        self.stopped.set()
        self.asked.set()
        with self._lock:
            for engine in self._engines.values():
                engine.retire()

    def refresh(self, *, every: bool = False) -> None:
        """Load again what changed; the old model answers until the new one has passed its check, or for good."""
        for name in list(self._engines):
            stamp = _stamp(self.places[name].folder)
            if every or stamp != self._stamps[name]:
                self._replace(name, stamp)

    def _replace(self, name: str, stamp: Stamp) -> None:
        try:
            fresh = self._load(name)
            self.cards[name] = card(self.places[name])
        except MiradaError as error:
            self._stamps[name] = stamp  # tried; not again until it changes once more
            self.log.error("model %s: not reloaded, the old one goes on: %s", name, error)
            return
        with self._lock:
            old, self._engines[name] = self._engines.get(name), fresh
        if old:
            old.retire()
        self.log.info("model %s: reloaded", name)

    def _load(self, name: str) -> Engine:
        place, settings = self.places[name], self.settings
        stamp = _stamp(place.folder)
        translator = load(place.folder, device=settings.device, precision=settings.precision, workers=1)
        check(translator, place)
        self._stamps[name] = stamp
        self.log.info("model %s: loaded", name)
        translator.scheduler.watch(self.metrics.batch_size.labels(name).observe)
        return Engine(translator, queue_size=settings.queue_size, batch_size=settings.batch_size)

    def _check_room(self) -> None:
        """Raise ConfigError for a model that could never be loaded."""
        for name in self.places:
            if self.settings.memory_limit_mb and self._megabytes(name) > self.settings.memory_limit_mb:
                raise ConfigError(
                    f"model {name} needs {self._megabytes(name):.0f} MB, memory_limit_mb is "
                    f"{self.settings.memory_limit_mb}; raise it, or leave the model out"
                )

    def _make_room(self, name: str) -> None:
        """Unload the models that were not used for longest until this one fits."""
        limit = self.settings.memory_limit_mb
        while limit and sum(map(self._megabytes, [name, *self._engines])) > limit:
            oldest = min(self._engines, key=lambda other: self._used.get(other, 0.0))
            self._engines.pop(oldest).retire()
            self.log.info("model %s: unloaded to make room for %s", oldest, name)

    def _megabytes(self, name: str) -> float:
        return self.cards[name].parameters * BYTES * COPIES / 1e6

    def _queue(self, name: str) -> int:
        engine = self._engines.get(name)
        return engine.waiting if engine else 0


def check(translator: Translator, place: Place) -> None:
    """Let a model that was just loaded write something, with probabilities that are numbers; raises MiradaError."""
    options = SearchConfig(beam_size=1, max_output_length=3)
    found = translator.search(["a b c"], options=options)[0][0]
    if not all(value <= 1e-6 for value in found.token_log_probabilities):  # false for NaN as well
        raise MiradaError(f"{place.folder}: the model's probabilities are no numbers; train it again, or go back")


def _stamp(folder: Path) -> Stamp:
    """What changes when the files of a model do."""
    stamps = []
    for name in (WEIGHTS, CONFIG, *TOKENIZERS):
        try:
            found = (folder / name).stat()
            stamps.append((found.st_mtime_ns, found.st_size, found.st_ino))
        except OSError:
            stamps.append((0, 0, 0))
    return tuple(stamps)
