"""`python -m mirada.study.compare.worker FOLDER`: do the job that stands in a folder (see jobs.py)."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mirada.config.configfile import parse
from mirada.config.options import Config, SearchConfig
from mirada.data.batches import pair_lengths
from mirada.errors import MiradaError, TrainingError
from mirada.evaluation.aligning import MEAN, Options, Pairs, Reading, align, pair_sizes, parse_gold, quality
from mirada.evaluation.alignment import entropy
from mirada.files import locked
from mirada.store import checkpoint
from mirada.study.compare.items import Item, read_items
from mirada.study.compare.stored import FAILED, OUTPUTS, TEST, TRAINING, RunJob, read_job, write_json
from mirada.study.compare.systems import Vocabularies, count_weights
from mirada.train import prepare
from mirada.train.interrupts import InterruptedTrainingError
from mirada.train.loop import train
from mirada.train.progress import Monitor
from mirada.train.setup import batches_of
from mirada.translator import Translator, load

MIB = 2**20


def main(folder: Path) -> int:
    """Do the job, or write down why it failed; returns the exit code."""
    try:
        with patiently_locked(folder):
            do(folder)
    except InterruptedTrainingError as error:
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except MiradaError as error:
        write_json(folder / FAILED, {"error": str(error)})
        return error.exit_code
    except Exception as error:  # whatever it is, the other jobs go on
        traceback.print_exc()
        write_json(
            folder / FAILED, {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
        )
        return 1
    return 0


@contextmanager
def patiently_locked(folder: Path) -> Iterator[None]:
    """Hold the folder; wait a minute for one who holds it, such as a process that is about to end."""
    with ExitStack() as stack:
        for attempt in range(600):
            try:
                stack.enter_context(locked(folder))
                break
            except TrainingError:
                if attempt == 599:
                    raise
                time.sleep(0.1)
        yield


def do(folder: Path) -> None:
    """Train, unless that is done or not wanted, then test."""
    job = read_job(folder)
    if job.training is not None and not (folder / TRAINING).exists():
        write_json(folder / TRAINING, train_model(parse(job.training), job))
    items = read_items(Path(job.test))
    translator = load(job.model, device=job.device)
    if job.measure == "positions":
        write_json(folder / TEST, measure_positions(translator, items))
    else:
        write_json(folder / TEST, measure_outputs(translator, items, job, folder))


def train_model(config: Config, job: RunJob) -> dict[str, Any]:
    """Train, and measure what it took. Raises TrainingError if the tokenisers are not those of the other systems."""
    before = peak_memory()["peak_memory_mib"]
    result = train(config, monitor=Monitor(quiet=job.quiet))
    memory = {"memory_before_mib": before, **peak_memory()}
    if job.tokenizers is not None:
        check_tokenizers(result.folder, Path(job.tokenizers))
    stored = checkpoint.read_config(result.folder)
    tokens = trained_tokens(stored, result.folder)
    metadata = checkpoint.read_archive(result.folder / checkpoint.WEIGHTS).metadata
    return {
        "updates": result.updates,
        "best_update": metadata["updates"],
        "dev": result.metrics,
        "tokens": tokens,
        "cost": {"training_seconds": result.seconds, "tokens_per_second": tokens / max(result.seconds, 1e-9), **memory},
    }


def check_tokenizers(folder: Path, expected: Path) -> None:
    """Raise TrainingError unless the tokenisers are, byte for byte, those that all systems must have."""
    for name in ("source.json", "target.json"):
        if (folder / name).read_bytes() != (expected / name).read_bytes():
            raise TrainingError(
                f"{folder / name} is not the tokeniser of the other systems ({expected / name}): the pairs or the "
                "version of the library tokenizers have changed since the comparison began; choose another --out"
            )


def trained_tokens(config: Config, folder: Path) -> int:
    """Target tokens, </s> included, that the updates of a finished training have read."""
    progress = checkpoint.read_archive(folder / checkpoint.RESUME).metadata["progress"]
    data = prepare.encode(config, prepare.read(config), checkpoint.read_tokenizers(folder, config))
    lengths = pair_lengths(data.train)
    epoch, position = progress["epoch"], progress["position"]
    begun = batches_of(config, lengths, epoch)[:position]
    sizes = [lengths[:, 1].sum() * epoch, *(lengths[batch, 1].sum() for batch in begun)]
    return int(sum(sizes))


def peak_memory() -> dict[str, float]:
    """Largest memory so far in MiB: the process's, and PyTorch's on the GPU if it has been used."""
    found = {"peak_memory_mib": _peak_resident() / MIB}
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        found["peak_gpu_memory_mib"] = torch.cuda.max_memory_allocated() / MIB
    return found


def _peak_resident() -> int:
    """Bytes. Linux keeps the parent's peak in a child's rusage; the kernel's own line does not have that flaw."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        try:
            import resource
        except ImportError:  # Windows: nobody knows
            return 0
        unit = 1 if sys.platform == "darwin" else 1024
        most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most * unit


def measure_outputs(translator: Translator, items: list[Item], job: RunJob, folder: Path) -> dict[str, Any]:
    """Search outputs for every item, with a clock; then look at the attention over the first references."""
    options = SearchConfig.model_validate(job.search)
    sources = [item.source for item in items]
    memory = {} if job.training else {"memory_before_mib": peak_memory()["peak_memory_mib"]}
    translator.search(sources[:2], options=options)  # what is done once only, before the clock starts
    begun = time.monotonic()
    found = translator.search(sources, options=options, batch_size=job.batch_size)
    seconds = time.monotonic() - begun
    cost = {"decode_seconds": seconds, "sentences_per_second": len(items) / max(seconds, 1e-9)}
    write_json(folder / OUTPUTS, [outputs[0].text for outputs in found])
    sizes = Vocabularies(len(translator.source_tokenizer), len(translator.target_tokenizer))
    return {
        "parameters": count_weights(translator.config.model, sizes),
        "vocabularies": list(sizes),
        "metrics": translator.metrics,
        "entropy": mean_entropy(translator, items, job.batch_size),
        "alignment": measure_alignment(translator, items, job),
        "unfinished": sum(not outputs[0].finished for outputs in found),
        "cost": {**memory, **cost, **peak_memory()},
    }


def mean_entropy(translator: Translator, items: list[Item], batch_size: int) -> float | None:
    """Mean entropy of the attention in nats, over every token of the first references; None without attention."""
    if not translator.config.model.has_attention:
        return None
    rows: list[np.ndarray] = []
    for start in range(0, len(items), 16 * batch_size):
        part = items[start : start + 16 * batch_size]
        sides = [item.source for item in part], [item.references[0] for item in part]
        scored = translator.score(*sides, batch_size=batch_size, with_attention=True)
        rows += [entropy(one.attention) for one in scored if one.attention is not None]
    return float(np.concatenate(rows).mean())


def measure_alignment(translator: Translator, items: list[Item], job: RunJob) -> dict[str, float] | None:
    """AER, precision, recall and counts of the attention over the first references, as `mirada align` has them.

    None without attention or without gold links.
    """
    if job.units is None or not translator.config.model.has_attention:
        return None
    pairs: Pairs = [item.source for item in items], [item.references[0] for item in items]
    gold = parse_gold([item.links or "" for item in items], job.test, pair_sizes(translator, pairs, job.units))
    reading, options = Reading(MEAN, shift=0), Options(job.units, job.batch_size)
    found = quality([row[reading].links for row in align(translator, pairs, [reading], options)], gold)
    return {**found.score._asdict(), **found.counts._asdict()}


def measure_positions(translator: Translator, items: list[Item]) -> dict[str, Any]:
    """Forced decoding: is the likeliest token right at each position, when everything before it was right?"""
    from mirada.data.batches import Encoded, collate
    from mirada.data.vocabulary import EOS

    sources = [[*ids, EOS] for ids in translator.source_tokenizer.encode([item.source for item in items])]
    targets = translator.target_tokenizer.encode([item.references[0] for item in items])
    hits: list[list[int]] = []
    for start in range(0, len(items), 64):
        chosen = range(start, min(start + 64, len(items)))
        batch = collate(Encoded(sources, targets), chosen, translator.device)
        with torch.inference_mode():
            hidden = translator.model(batch.source, batch.lengths, batch.target_in).hidden
            right = translator.model.logits(hidden).argmax(-1) == batch.target_out
        hits += [row[: len(targets[i])].int().tolist() for i, row in zip(chosen, right, strict=True)]
    sizes = Vocabularies(len(translator.source_tokenizer), len(translator.target_tokenizer))
    return {"hits": hits, "parameters": count_weights(translator.config.model, sizes), "cost": peak_memory()}


def end_with_parent() -> None:
    """Stop, as Ctrl-C would, once standard input closes: the process that wanted this work is gone."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):  # not sys.stdin.read, whose lock Python's own end would want
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


if __name__ == "__main__":
    end_with_parent()
    sys.exit(main(Path(sys.argv[1])))
