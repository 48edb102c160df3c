"""What the service counts, in Prometheus' format: GET /metrics."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one process."""

    def __init__(self) -> None:
        self._all = CollectorRegistry()
        self.requests = Counter("mirada_requests", "requests answered", ["endpoint", "status"], registry=self._all)
        self.seconds = Histogram(
            "mirada_request_seconds", "from the first byte of a request to the last of its answer", ["endpoint"],
            buckets=SECONDS, registry=self._all,
        )  # fmt: skip
        self.batch_size = Histogram(
            "mirada_batch_size",
            "texts that share a step, whenever some have joined",
            ["model"],
            buckets=SIZES,
            registry=self._all,
        )
        self.tokens = Counter("mirada_tokens", "tokens of texts translated", ["model", "side"], registry=self._all)
        self.running = Gauge("mirada_requests_running", "requests being answered", registry=self._all)
        self._queue = Gauge("mirada_queue", "texts that wait", ["model"], registry=self._all)
        self._loaded = Gauge("mirada_model_loaded", "1: in memory", ["model"], registry=self._all)

    def watch(self, model: str, *, queue: Callable[[], float], loaded: Callable[[], float]) -> None:
        """Ask these functions whenever the counters are read."""
        self._queue.labels(model).set_function(queue)
        self._loaded.labels(model).set_function(loaded)

    def exposition(self) -> bytes:
        """All counters as text."""
        return generate_latest(self._all)
