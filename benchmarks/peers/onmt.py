"""OpenNMT-py: trained by `onmt_train`'s own loop, decoded by the engine of `onmt_translate`.

`python -m benchmarks.peers.onmt train|decode|start WORK FOLDER`; decode and start need a `train --keep N` before.
Additive is its `mlp`, in Luong's flow: attention after the recurrent step, input feeding.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.peers import measure
from benchmarks.peers.workloads import FEEDFORWARD, HEADS, LAYERS, LONGEST, Job, Workload, read_lines, run

SPECIALS = ("<unk>", "<blank>", "<s>", "</s>")  # workloads.SPECIALS as it writes them
SORTED = 29_000  # sentences that it sorts by length at a time: all of Multi30k
SCORES = {"additive": "mlp", "general": "general"}


def train(job: Job) -> None:
    """Train, with the clock told after each update."""
    row = describe(job, "train")
    from onmt.bin.train import main as onmt_train
    from onmt.trainer import Trainer

    clock, update = measure.Clock(job, row), Trainer._gradient_accumulation

    def timed(self: Any, batches: list[dict[str, Any]], *rest: Any) -> None:
        update(self, batches, *rest)
        targets = [batch["tgt"][:, 1:, 0] for batch in batches]
        real = sum(int((target != self.train_loss.padding_idx).sum()) for target in targets)
        clock.tick(real, sum(target.numel() for target in targets))

    Trainer._gradient_accumulation = timed
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "config.yaml")
        path.write_text(config(job, Path(place)), encoding="utf-8")
        sys.argv = ["onmt_train", "-config", str(path)]
        onmt_train()


def config(job: Job, place: Path) -> str:
    """Its options for a workload; vocabularies as it wants them are written beside."""
    import yaml

    files, workload = job.files, job.workload
    common = {
        "data": {"all": {"path_src": str(files.train_source), "path_tgt": str(files.train_target), "transforms": []}},
        "src_vocab": vocabulary(files.source_vocabulary, place / "source"),
        "tgt_vocab": vocabulary(files.target_vocabulary, place / "target"),
        "save_model": str(job.folder / "models" / f"onmt-{workload.name}"),
        "save_checkpoint_steps": job.updates,
        "train_steps": job.updates,
        "valid_steps": job.updates + 1,
        "seed": 1,
        "batch_type": "sents",
        "batch_size": workload.batch,
        "bucket_size": SORTED,
        "num_workers": 0,
        "optim": "adam",
        "learning_rate": 1e-3,
        "decay_method": "none",
        "max_grad_norm": 1.0,
        "dropout": [workload.dropout],
        "attention_dropout": [workload.dropout],
        "word_vec_size": workload.embedding,
        "hidden_size": workload.hidden,
    }
    if job.options.device == "cuda":
        common |= {"world_size": 1, "gpu_ranks": [0]}
    return yaml.safe_dump(common | (recurrent(workload) if workload.cell else transformer()))


def recurrent(workload: Workload) -> dict[str, Any]:
    """Encoder in both directions; the loss is summed and divided by the sentences, its default."""
    return {
        "encoder_type": "brnn",
        "decoder_type": "rnn",
        "rnn_type": workload.cell,
        "layers": 1,
        "global_attention": SCORES[workload.score],
        "input_feed": int(workload.feeding),
        "normalization": "sents",
    }


def transformer() -> dict[str, Any]:
    """Normalised before each block; the loss is a mean over tokens."""
    return {
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "layers": LAYERS,
        "heads": HEADS,
        "transformer_ff": FEEDFORWARD,
        "position_encoding": True,
        "param_init": 0,
        "param_init_glorot": True,
        "normalization": "tokens",
    }


def vocabulary(path: Path, place: Path) -> str:
    """Pieces with counts, which it reads but does not use."""
    place.write_text("".join(f"{piece}\t1\n" for piece in [*SPECIALS, *read_lines(path)]), encoding="utf-8")
    return str(place)


def decode(job: Job) -> None:
    """Decode the test lines."""
    row = describe(job, "decode")
    from onmt.bin.translate import ArgumentParser, InferenceEnginePY, _get_parser

    given = [*shared(job), "-src", str(job.files.test_source), "-batch_size", str(job.options.batch)]
    settings = _get_parser().parse_args(given)
    ArgumentParser.validate_translate_opts(settings)
    ArgumentParser._get_all_transform_translate(settings)
    ArgumentParser._validate_transforms_opts(settings)
    ArgumentParser.validate_translate_opts_dynamic(settings)
    engine = InferenceEnginePY(settings)
    measure.decode(job, row, lambda lines: [best[0].split() for best in engine.infer_list(lines)[1]])


def shared(job: Job) -> list[str]:
    """Options of `onmt_translate`; its length penalty stays what it is, the mean over tokens."""
    model = job.model(f"onmt-{job.workload.name}_step_*.pt")
    options = {"-model": model, "-output": os.devnull, "-beam_size": job.options.beam, "-max_length": LONGEST}
    options |= {"-gpu": 0} if job.options.device == "cuda" else {}
    return [str(word) for pair in options.items() for word in pair]


def start(job: Job) -> None:
    """Time `onmt_translate` on one sentence."""
    row = describe(job, "startup")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as source:
        source.write(job.lines()[0] + "\n")
        source.flush()
        command = [str(Path(sys.executable).with_name("onmt_translate")), *shared(job), "-src", source.name]
        measure.start(job, row, command)


def describe(job: Job, kind: str) -> rows.Row:
    """The start of a row."""
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints hold pickled options
    return measure.describe(job, kind, "OpenNMT-py", "OpenNMT-py")


if __name__ == "__main__":
    run("OpenNMT-py", {"train": train, "decode": decode, "start": start})
