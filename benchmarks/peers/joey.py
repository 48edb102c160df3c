"""JoeyNMT: trained by `joeynmt train`, decoded by what `joeynmt translate` calls.

`python -m benchmarks.peers.joey train|decode|start WORK FOLDER`; decode and start need a `train --keep N` before. Its
`bahdanau` is an additive score in Luong's flow, with input feeding; its batches are drawn at random, so half their
places are padding.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.peers import measure
from benchmarks.peers.workloads import FEEDFORWARD, HEADS, LAYERS, LONGEST, Job, Workload, run

SCORES = {"additive": "bahdanau", "general": "luong"}


def train(job: Job) -> None:
    """Train, with the clock told after each batch: the step of the optimiser falls into the next interval."""
    row = describe(job, "train")
    from joeynmt.__main__ import main as joeynmt
    from joeynmt.training import TrainManager

    clock, step = measure.Clock(job, row), TrainManager._train_step

    def timed(self: Any, batch: Any) -> Any:
        result = step(self, batch)
        clock.tick(int(batch.ntokens), batch.trg.numel())
        return result

    TrainManager._train_step = timed
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "config.yaml")
        path.write_text(config(job, Path(place, "model")), encoding="utf-8")
        sys.argv = ["joeynmt", "train", str(path), "--skip-test"]
        joeynmt()
        if job.options.keep:
            shutil.copytree(Path(place, "model"), kept(job), dirs_exist_ok=True)


def config(job: Job, folder: Path) -> str:
    """Its options for a workload."""
    import yaml

    options = {
        "name": job.workload.name,
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "random_seed": 1,
        "data": data(job),
        "testing": {
            "beam_size": job.options.beam,
            "beam_alpha": -1,
            "batch_size": job.options.batch,
            "batch_type": "sentence",
            "max_output_length": LONGEST,
            "eval_metrics": [],
            "load_model": str(folder / "latest.ckpt"),
        },
        "training": training(job),
        "model": {
            "tied_embeddings": False,
            "tied_softmax": False,
            **(recurrent(job.workload) if job.workload.cell else transformer(job.workload)),
        },
    }
    return yaml.safe_dump(options)


def data(job: Job) -> dict[str, Any]:
    """Files, which it finds by the ends of their names."""
    files = job.files
    paths = {"train": files.train_source, "dev": files.test_source, "test": files.test_source}
    sides = {"src": ("source", files.source_vocabulary), "trg": ("target", files.target_vocabulary)}
    whole = {name: str(path.with_suffix("")) for name, path in paths.items()} | {"dataset_type": "plain"}
    return whole | {
        side: {"lang": end, "level": "word", "max_length": 1000, "voc_file": str(path)}
        for side, (end, path) in sides.items()
    }


def training(job: Job) -> dict[str, Any]:
    """A constant rate: it refuses to have no schedule, so it has one that multiplies by 1."""
    return {
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "learning_rate_min": 1e-9,
        "scheduling": "exponential",
        "decrease_factor": 1.0,
        "clip_grad_norm": 1.0,
        "normalization": "batch" if job.workload.cell else "tokens",
        "loss": "crossentropy",
        "label_smoothing": 0.0,
        "batch_size": job.workload.batch,
        "batch_type": "sentence",
        "shuffle": True,
        "epochs": 1000,
        "updates": job.updates,
        "validation_freq": 1_000_000,
        "logging_freq": 10,
        "overwrite": True,
    }


def recurrent(workload: Workload) -> dict[str, Any]:
    """Encoder in both directions; a layer between its end and the decoder's start."""
    common = {"type": "recurrent", "rnn_type": workload.cell.lower(), "num_layers": 1, "dropout": workload.dropout}
    common["embeddings"] = {"embedding_dim": workload.embedding, "scale": False, "dropout": workload.dropout}
    attending = {"attention": SCORES[workload.score], "input_feeding": workload.feeding, "init_hidden": "bridge"}
    return {
        "encoder": common | {"hidden_size": workload.hidden // 2, "bidirectional": True},
        "decoder": common | attending | {"hidden_size": workload.hidden, "hidden_dropout": workload.dropout},
    }


def transformer(workload: Workload) -> dict[str, Any]:
    """Normalised before each block."""
    side = {
        "type": "transformer",
        "num_layers": LAYERS,
        "num_heads": HEADS,
        "ff_size": FEEDFORWARD,
        "layer_norm": "pre",
    }
    side |= {"hidden_size": workload.hidden, "dropout": workload.dropout}
    side["embeddings"] = {"embedding_dim": workload.embedding, "scale": True, "dropout": workload.dropout}
    return {"initializer": "xavier_uniform", "embed_initializer": "xavier_uniform", "encoder": side, "decoder": side}


def kept(job: Job) -> Path:
    """Where the model of a workload is kept."""
    return job.folder / "models" / f"joey-{job.workload.name}"


def decode(job: Job) -> None:
    """Decode the test lines."""
    row = describe(job, "decode")
    import yaml
    from joeynmt.config import parse_global_args
    from joeynmt.prediction import predict, prepare

    options = parse_global_args(yaml.safe_load(config(job, job.model(kept(job).name))), rank=0, mode="translate")
    network, _, _, stream = prepare(options, rank=0, mode="translate")

    def translate(lines: list[str]) -> list[list[str]]:
        stream.reset_cache()
        for line in lines:
            stream.set_item(line)
        settings = {"device": options.device, "n_gpu": 0, "args": options.test, "autocast": options.autocast}
        _, _, _, found, _, _ = predict(network, stream, normalization="none", **settings)
        return [[piece for piece in pieces if piece != "</s>"] for pieces in found]

    measure.decode(job, row, translate)


def start(job: Job) -> None:
    """Time `joeynmt translate` on one sentence."""
    row = describe(job, "startup")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".yaml") as file:
        file.write(config(job, job.model(kept(job).name)))
        file.flush()
        measure.start(job, row, [sys.executable, "-m", "joeynmt", "translate", file.name], given=job.lines()[0] + "\n")


def describe(job: Job, kind: str) -> rows.Row:
    """The start of a row."""
    return measure.describe(job, kind, "JoeyNMT", "joeynmt")


if __name__ == "__main__":
    run("JoeyNMT", {"train": train, "decode": decode, "start": start})
