"""The three graphs at work: a batch is encoded once, then stepped; memory and state stay inside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mirada.data.vocabulary import EOS, PAD
from mirada.errors import ConfigError, ModelFolderError
from mirada.runtime.folder import COPIES, GRAPHS, Exported

INT64, FLOAT = "tensor(int64)", "tensor(float)"


class Step(NamedTuple):
    """What a search reads of one step of `N` rows."""

    best: np.ndarray | None  # [N, C] log-probabilities, the likeliest first
    tokens: np.ndarray | None  # [N, C] whose they are
    log_probabilities: np.ndarray | None  # [N, V]
    attention: np.ndarray | None  # [N, S]


class Wanted(NamedTuple):
    """What of it: so many continuations of each row, or (0) every word's log-probability; and the attention."""

    continuations: int
    attention: bool


class Engine:
    """Sessions over the graphs of an exported model. Threads may share it."""

    def __init__(self, exported: Exported, where: Path, *, threads: int = 1):
        self.names, self.where = exported.names, where
        self.vocabulary = len(exported.target)
        self.sessions = {name: _session(where / f"{name}.onnx", exported.graphs[name], threads) for name in GRAPHS}
        self.has_attention = "attention" in _outputs(self.sessions["step"])
        _check(self.sessions, exported, where)

    def read(self, sources: Sequence[Sequence[int]], copies: Sequence[Sequence[int]] = ()) -> Batch:
        """Encode sources (ids with </s>) and start the decoder; with what each source token would write, to copy it."""
        names, ids = self.names, _padded(sources)
        lengths = np.array([len(source) for source in sources])
        feeds = {"source": _value(ids), "lengths": _value(lengths)}
        wanted = [name for name in dict.fromkeys((*names.memory, *names.final)) if name != COPIES]
        known = dict(zip(wanted, self.run("encode", wanted, feeds), strict=True))
        state = self.run("start", list(names.state), {name: known[name] for name in names.final})
        words = self.vocabulary
        if COPIES in names.memory:
            known[COPIES], words = _value(_padded(copies)), words + ids.shape[1]
        memory = {name: known[name] for name in names.memory}
        return Batch(self, memory, dict(zip(names.state, state, strict=True)), words)

    def run(self, graph: str, wanted: list[str], feeds: dict[str, Any]) -> list[Any]:
        """Run one graph on ONNX Runtime's own values; raises ModelFolderError where that fails."""
        try:
            return list(self.sessions[graph].run_with_ort_values(wanted, feeds))
        except Exception as error:  # of many classes, the library's own
            raise ModelFolderError(f"{self.where / graph}.onnx: ONNX Runtime failed ({_reason(error)})") from None


class Batch:
    """Sentences under way: their memory, the decoder's state, and how many words there are, those to copy included."""

    def __init__(self, engine: Engine, memory: dict[str, Any], state: dict[str, Any], words: int):
        self.engine, self.memory, self.state, self.words = engine, memory, state, words
        self.counts: dict[int, Any] = {}  # of continuations, as ONNX Runtime reads them

    def step(self, tokens: np.ndarray, rows: np.ndarray, wanted: Wanted) -> Step:
        """Make one step from the previous tokens `[N]`, each going on from one of `rows` `[N]` of the step before."""
        engine, count = self.engine, min(wanted.continuations, self.words)
        names = ["best", "best_tokens"] if count else ["log_probabilities"]
        names += ["attention"] if wanted.attention and engine.has_attention else []
        new = [f"new.{name}" for name in engine.names.state]
        if count not in self.counts:
            self.counts[count] = _value(np.array([max(1, count)]))
        feeds = {"token": _value(tokens), "rows": _value(rows), "count": self.counts[count]}
        found = engine.run("step", [*names, *new], {**feeds, **self.state, **self.memory})
        self.state = dict(zip(engine.names.state, found[len(names) :], strict=True))
        values = {name: value.numpy() for name, value in zip(names, found, strict=False)}
        if np.isnan(values[names[0]][:, 0 if count else EOS]).any():  # then the whole row is
            where = engine.where / "step.onnx"
            raise ModelFolderError(f"{where}: gives values that are no numbers (NaN); export the model again")
        return Step(*(values.get(name) for name in ("best", "best_tokens", "log_probabilities", "attention")))

    def keep(self, stay: np.ndarray) -> None:
        """Go on with some of the sentences: places `[A]` among those of now."""
        self.memory = {name: _value(value.numpy()[stay]) for name, value in self.memory.items()}


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Ids `[B, S]`, padded at the right."""
    ids = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
    for row, given in zip(ids, rows, strict=True):
        row[: len(given)] = given
    return ids


def _value(array: np.ndarray) -> Any:
    from onnxruntime import OrtValue

    return OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))


def _session(path: Path, content: bytes, threads: int) -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise ConfigError("exported models need ONNX Runtime: pip install 'mirada[runtime]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library raises classes of its own for each kind of bad graph
        raise ModelFolderError(f"{path}: not a graph that ONNX Runtime can run ({_reason(error)})") from None


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _outputs(session: Any) -> set[str]:
    return {node.name for node in session.get_outputs()}


def _check(sessions: dict[str, Any], exported: Exported, where: Path) -> None:
    """Raise ModelFolderError unless the graphs take and give what export.json says, for these vocabularies."""
    names = exported.names
    new = {f"new.{name}" for name in names.state}
    need = {
        "encode": ({"source", "lengths"}, {*names.memory, *names.final} - {COPIES}),
        "start": (set(names.final), set(names.state)),
        "step": (
            {"token", "rows", "count", *names.state, *names.memory},
            {"best", "best_tokens", "log_probabilities", *new},
        ),
    }
    for graph, (inputs, outputs) in need.items():
        found = {node.name for node in sessions[graph].get_inputs()}
        if found != inputs or not outputs <= _outputs(sessions[graph]):
            odd = sorted((found ^ inputs) or (outputs - _outputs(sessions[graph])))
            raise ModelFolderError(
                f"{where / graph}.onnx: takes or gives other values than export.json says ({', '.join(odd)[:80]}); "
                "export the model again"
            )
    found = {node.name: node.shape for node in sessions["step"].get_outputs()}["log_probabilities"][1]
    words = str(found).removesuffix("+source") if COPIES in names.memory else str(found)
    if words != str(len(exported.target)):
        raise ModelFolderError(
            f"{where / 'step'}.onnx: {words} words, but the tokeniser has {len(exported.target)}; "
            "it is of another model"
        )
