"""`mirada import`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mirada.cli.flags import Parser

EPILOG = """examples:
  mirada import opus-mt-en-es --out runs/opus
  mirada import model_step_20000.pt --out runs/onmt
  mirada import models/rnn_small --out runs/joey
  mirada import fairseq/checkpoints --out runs/fairseq
  echo "How are you?" | mirada translate runs/opus

What can be imported: a folder of Hugging Face's MarianMTModel (config.json, model.safetensors or pytorch_model.bin,
source.spm, target.spm, vocab.json); recurrent systems and Transformers of OpenNMT-py 3 (FILE.pt), of JoeyNMT 2
(config.yaml, best.ckpt, src_vocab.txt, trg_vocab.txt) and of fairseq (checkpoint_best.pt, dict.en.txt, dict.es.txt).
Nothing in it is executed, and the toolkit need not be installed.
"""


def run(arguments: Sequence[str]) -> int:
    """Make a model folder of another toolkit's model."""
    parser = Parser(
        "import",
        "Make a model folder of another toolkit's model.",
        usage="mirada import FOLDER_OR_FILE --out MODEL",
        epilog=EPILOG,
    )
    parser.add_argument("model", metavar="FOLDER_OR_FILE", help="the other toolkit's folder or file")
    parser.add_argument("--out", metavar="MODEL", required=True, help="model folder to write; it must not be there yet")
    values = parser.read(arguments)

    from mirada.cli import say
    from mirada.importing.find import read_model
    from mirada.importing.write import write_imported

    source, out = Path(values.model).expanduser(), Path(values.out).expanduser()
    found = read_model(source)
    write_imported(found, source, out)
    say(f"{out}: imported from {found.toolkit}")
    for note in found.notes:
        say(note)
    return 0
