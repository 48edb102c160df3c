"""Workers that are actors of a Ray cluster, on whatever machine has room."""

from __future__ import annotations

import os
import pickle
import socket
import sys
from contextlib import suppress
from typing import Any

from mirada.errors import ConfigError
from mirada.scaling.pool import Make, Outcome, WorkerDiedError

VARIABLE = "RAY_ADDRESS"


class RayWorker:
    """An actor with one CPU and `gpus` of a GPU."""

    def __init__(self, make: Make, *, gpus: float):
        self._make, self._gpus = pickle.dumps(make), gpus
        self._actor: Any = None

    def start(self) -> None:
        """Create the actor, unless it lives, and wait until the cluster has room for it."""
        if self._actor is None:
            needs = {"num_cpus": 1, "num_gpus": self._gpus, "max_restarts": 0}
            import ray

            own = os.getcwd()
            self._actor = ray.remote(_actor_class()).options(**needs).remote(self._make, own, own in sys.path)
            self._get(self._actor.ready.remote())

    def answer(self, item: Any) -> Outcome:
        """Hand over an item and wait for what becomes of it."""
        return Outcome(*self._get(self._actor.answer.remote(pickle.dumps(item))))

    def stop(self) -> None:
        """Kill the actor."""
        if self._actor is not None:
            import ray

            with suppress(Exception):  # the cluster may be gone
                ray.kill(self._actor)

    def _get(self, reference: Any) -> Any:
        import ray
        from ray.exceptions import RayError

        try:
            return ray.get(reference)
        except RayError as error:
            self._actor = None
            reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
            raise WorkerDiedError(f"ended ({type(error).__name__}: {reason[:200]})") from None


def _actor_class() -> type:
    """The actor, as a class that travels whole: nothing of mirada is imported before its first line has run."""

    class Actor:
        """What Ray runs: `Answering` in the working directory of who asks."""

        def __init__(self, make: bytes, folder: str, importable: bool):
            import os
            import pickle
            import sys

            if not importable:  # Ray lets every worker import from there: a user's torch.py would be taken for torch
                sys.path[:] = [path for path in sys.path if path not in ("", folder)]
            os.chdir(folder)
            from mirada.scaling.pool import Answering

            self._answering = Answering(pickle.loads(make))

        def ready(self) -> None:
            """There is a place for it."""

        def answer(self, item: bytes) -> tuple[Any, Exception | None]:
            """The outcome as plain values."""
            import pickle

            return tuple(self._answering(pickle.loads(item)))

    return Actor


def connect(address: str | None, workers: int | None) -> dict[str, float]:
    """Join the cluster at an address, or at RAY_ADDRESS, or start one on this machine; returns what it has.

    Raises ConfigError without Ray and without a cluster there.
    """
    try:
        import ray
    except ImportError:
        raise ConfigError("--engine ray needs Ray: pip install 'mirada[ray]'") from None

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    where = address or os.environ.get(VARIABLE) or "local"
    own: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if where == "local" else {}
    try:
        _reach(where)
        ray.init(address=where, log_to_driver=False, logging_level="ERROR", **own)
    except Exception as error:  # of many kinds: Ray raises plain ones too
        ray.shutdown()  # what it has started
        reason = (str(error).splitlines() or [""])[0][:200]
        raise ConfigError(f"no Ray cluster at {where!r} ({reason}); see --ray-address") from None
    found: dict[str, float] = ray.cluster_resources()
    return found


def _reach(address: str) -> None:
    """Raise OSError if nobody listens at HOST:PORT, for which Ray itself waits for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def disconnect() -> None:
    """Leave the cluster; one that was started for this ends."""
    import ray

    ray.shutdown()
