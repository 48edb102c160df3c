"""Eole, which goes on from OpenNMT-py: trained by `eole train`'s own loop.

`python -m benchmarks.peers.eole train WORK FOLDER`. Its recurrent encoder has one direction, whatever the options say,
so that only T3 is quite the same workload.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers import measure
from benchmarks.peers.onmt import SCORES, SORTED, vocabulary
from benchmarks.peers.workloads import FEEDFORWARD, HEADS, LAYERS, Job, Workload, run


def train(job: Job) -> None:
    """Train, with the clock told after each update."""
    row = measure.describe(job, "train", "Eole", "eole")
    from eole.bin.main import main as eole
    from eole.trainer import Trainer

    clock, update = measure.Clock(job, row), Trainer._process_accumulated_batches

    def timed(self: Any, batches: list[dict[str, Any]], *rest: Any) -> Any:
        result = update(self, batches, *rest)
        targets = [batch["tgt"][:, 1:] for batch in batches]
        real = sum(int((target != self.train_loss.padding_idx).sum()) for target in targets)
        clock.tick(real, sum(target.numel() for target in targets))
        return result

    Trainer._process_accumulated_batches = timed
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "config.yaml")
        path.write_text(config(job, Path(place)), encoding="utf-8")
        sys.argv = ["eole", "train", "-config", str(path)]
        eole()


def config(job: Job, place: Path) -> str:
    """Its options for a workload; vocabularies as it wants them are written beside."""
    import yaml

    files, workload = job.files, job.workload
    training = {
        "model_path": str(place / "model"),
        "train_steps": job.updates,
        "valid_steps": job.updates + 1,
        "save_checkpoint_steps": job.updates + 1,
        "batch_type": "sents",
        "batch_size": workload.batch,
        "batch_size_multiple": 1,
        "normalization": "sents" if workload.cell else "tokens",
        "accum_count": [1],
        "accum_steps": [0],
        "bucket_size": SORTED,
        "num_workers": 0,
        "optim": "adam",
        "learning_rate": 1e-3,
        "decay_method": "none",
        "max_grad_norm": 1.0,
        "dropout": [workload.dropout],
        "attention_dropout": [workload.dropout],
        "dropout_steps": [0],
        "world_size": 1,
        "gpu_ranks": [],
        "compute_dtype": "fp32",
    }
    options = {
        "seed": 1,
        "data": {"all": {"path_src": str(files.train_source), "path_tgt": str(files.train_target), "transforms": []}},
        "transforms": [],
        "src_vocab": vocabulary(files.source_vocabulary, place / "source"),
        "tgt_vocab": vocabulary(files.target_vocabulary, place / "target"),
        "share_vocab": False,
        "overwrite": True,
        "model": recurrent(workload) if workload.cell else transformer(workload),
        "training": training,
    }
    return yaml.safe_dump(options)


def recurrent(workload: Workload) -> dict[str, Any]:
    """Input feeding is its default."""
    side = {"rnn_type": workload.cell, "layers": 1, "hidden_size": workload.hidden}
    return {
        "architecture": "rnn",
        "layers": 1,
        "hidden_size": workload.hidden,
        "embeddings": {"word_vec_size": workload.embedding},
        "encoder": {"encoder_type": "brnn", **side},
        "decoder": {"decoder_type": "rnn", "global_attention": SCORES[workload.score], **side},
    }


def transformer(workload: Workload) -> dict[str, Any]:
    """Normalised before each block."""
    places = {"position_encoding": True, "position_encoding_type": "SinusoidalInterleaved"}
    sizes = {"layers": LAYERS, "hidden_size": workload.hidden, "heads": HEADS, "transformer_ff": FEEDFORWARD}
    return {"architecture": "transformer", **sizes, "embeddings": {"word_vec_size": workload.embedding, **places}}


if __name__ == "__main__":
    run("Eole", {"train": train})
