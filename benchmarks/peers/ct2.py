"""CTranslate2, which only decodes: OpenNMT-py's Transformer, converted, in float32 or int8.

`python -m benchmarks.peers.ct2 convert|decode|start T3 FOLDER`, in OpenNMT-py's environment. --intra is threads in one
translation, --workers translations beside each other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import rows
from benchmarks.peers import measure
from benchmarks.peers.workloads import LONGEST, Job, run

ONCE = """import sys, ctranslate2
folder, precision, threads, beam, line = sys.argv[1:]
translator = ctranslate2.Translator(folder, compute_type=precision, intra_threads=int(threads))
print(*translator.translate_batch([line.split()], beam_size=int(beam))[0].hypotheses[0])
"""


def convert(job: Job) -> None:
    """Convert the kept checkpoint; its own default attention is renamed to the one that the converter knows."""
    import torch

    path = job.model("onmt-T3_step_*.pt")
    checkpoint = torch.load(path, map_location="cpu", weights_only=False)
    checkpoint["opt"].self_attn_type = "scaled-dot"  # the same, computed by hand, instead of scaled-dot-flash
    renamed = path.with_name("ct2-T3.pt")
    torch.save(checkpoint, renamed)
    converter = Path(sys.executable).with_name("ct2-opennmt-py-converter")
    paths: list[str | Path] = ["--model_path", renamed, "--output_dir", folder(job)]
    subprocess.run([converter, *paths, "--force", "--unsafe_deserialization"], check=True)  # pickled options
    renamed.unlink()


def decode(job: Job) -> None:
    """Decode the test lines; its length penalty stays what it is, the mean over tokens."""
    options = job.options
    translator = load(job)

    def translate(lines: list[str]) -> list[list[str]]:
        sources = [line.split() for line in lines]
        size = 0 if len(lines) == 1 else options.batch
        found = translator.translate_batch(
            sources, max_batch_size=size, beam_size=options.beam, max_decoding_length=LONGEST
        )
        return [best.hypotheses[0] for best in found]

    measure.decode(job, describe(job, "decode"), translate)


def load(job: Job) -> Any:
    """The converted model."""
    import ctranslate2

    options = job.options
    sizes = {"inter_threads": options.workers, "intra_threads": options.intra}
    return ctranslate2.Translator(str(folder(job)), device="cpu", compute_type=options.precision, **sizes)


def folder(job: Job) -> Path:
    """Of the converted model."""
    return job.folder / "models" / "ct2-T3"


def start(job: Job) -> None:
    """Time a process that loads the model and translates one sentence: it has no command for that."""
    options = job.options
    command = [sys.executable, "-c", ONCE, folder(job), options.precision, options.intra, options.beam, job.lines()[0]]
    measure.start(job, describe(job, "startup"), [str(word) for word in command])


def describe(job: Job, kind: str) -> rows.Row:
    """The start of a row; what its own variables force is part of its name."""
    forced = [f"{name}={os.environ[name]}" for name in ("CT2_FORCE_CPU_ISA", "CT2_USE_MKL") if name in os.environ]
    row = measure.describe(job, kind, " ".join(["CTranslate2", *forced]), "ctranslate2")
    options = job.options
    return row | {"precision": options.precision, "workers": options.workers, "intra_threads": options.intra}


def more(parser: argparse.ArgumentParser) -> None:
    """Its own options."""
    parser.add_argument("--precision", default="float32", help="float32, int8_float32, … [%(default)s]")
    parser.add_argument("--intra", type=int, default=1, help="threads of one translation [%(default)s]")
    parser.add_argument("--workers", type=int, default=2, help="translations at a time [%(default)s]")


if __name__ == "__main__":
    run("CTranslate2", {"convert": convert, "decode": decode, "start": start}, more=more)
