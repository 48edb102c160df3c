"""Yoyodyne, which is made for words (inflection, grapheme-to-phoneme): trained by its own command line.

`python -m benchmarks.peers.yoyo train WORK FOLDER`. It has no score but the additive one; it makes vocabularies of its
own from the training data, ties source and target embeddings, draws batches at random, and reads them in a process
beside.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.peers import measure
from benchmarks.peers.workloads import FEEDFORWARD, HEADS, LAYERS, Job, Workload, read_lines, run

LONGEST_PAIR = 128  # symbols: nothing is longer


def train(job: Job) -> None:
    """Train, with the clock told after each update."""
    row = measure.describe(job, "train", "Yoyodyne", "yoyodyne")
    os.environ["WANDB_MODE"] = "disabled"
    from yoyodyne.cli.main import python_interface
    from yoyodyne.models.base import BaseModel

    clock, batches = measure.Clock(job, row), []
    step = BaseModel.training_step

    def noted(self: Any, batch: Any, number: int) -> Any:
        batches.append(batch.target)
        return step(self, batch, number)

    def timed(self: Any, *rest: Any) -> None:
        target = batches.pop()
        clock.tick(int((~target.mask).sum()), target.tensor.numel())

    BaseModel.training_step, BaseModel.on_train_batch_end = noted, timed
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "config.yaml")
        path.write_text(config(job, Path(place)), encoding="utf-8")
        python_interface(["fit", "--config", str(path)])


def config(job: Job, place: Path) -> str:
    """Its options for a workload; the pairs as it wants them are written beside."""
    import yaml

    pairs = place / "pairs.tsv"
    sides = [read_lines(path) for path in job.files[:2]]
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in zip(*sides, strict=True)), encoding="utf-8")
    lengths = dict.fromkeys(("max_source_length", "max_features_length", "max_target_length"), LONGEST_PAIR)
    reading = {"source_sep": " ", "target_sep": " ", "tie_embeddings": True, "batch_size": job.workload.batch}
    logger = {"class_path": "lightning.pytorch.loggers.CSVLogger", "init_args": {"save_dir": str(place)}}
    trainer = {"accelerator": "cpu", "max_steps": job.updates, "max_epochs": -1, "gradient_clip_val": 1.0}
    trainer |= {"enable_progress_bar": False, "limit_val_batches": 0, "logger": logger}
    options = {
        "seed_everything": 1,
        "trainer": trainer,
        "data": {"model_dir": str(place), "train": str(pairs), **reading, **lengths},
        "model": recurrent(job.workload) if job.workload.cell else transformer(job.workload),
    }
    return yaml.safe_dump(options)


def recurrent(workload: Workload) -> dict[str, Any]:
    """Additive attention, keys projected anew at every step."""
    if workload.score != "additive":
        sys.exit("Yoyodyne has no attention but the additive one: it can do T1, T3 and T4")
    encoder = {"hidden_size": workload.hidden // 2, "layers": 1, "bidirectional": True}
    return model(workload, f"SoftAttention{workload.cell}Model", f"{workload.cell}Encoder", encoder)


def transformer(workload: Workload) -> dict[str, Any]:
    """Its hidden size is that of the feed-forward block."""
    encoder = {"hidden_size": FEEDFORWARD, "layers": LAYERS, "attention_heads": HEADS}
    made = model(workload, "TransformerModel", "TransformerEncoder", encoder)
    made["init_args"] |= {
        "decoder_hidden_size": FEEDFORWARD,
        "decoder_layers": LAYERS,
        "decoder_attention_heads": HEADS,
    }
    return made


def model(workload: Workload, name: str, encoder: str, sizes: dict[str, Any]) -> dict[str, Any]:
    """A model with its encoder and optimiser."""
    common = {"dropout": workload.dropout, "embedding_size": workload.embedding}
    source = {"class_path": f"yoyodyne.models.modules.{encoder}", "init_args": sizes | common}
    decoder = {"decoder_hidden_size": workload.hidden, "decoder_layers": 1, "decoder_dropout": workload.dropout}
    optimizer = {"class_path": "yoyodyne.optimizers.Adam", "init_args": {"lr": 1e-3}}
    rest = {"embedding_size": workload.embedding, "source_encoder": source, "optimizer": optimizer}
    return {"class_path": f"yoyodyne.models.{name}", "init_args": decoder | rest}


if __name__ == "__main__":
    run("Yoyodyne", {"train": train})
