"""`mirada export`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli.flags import Parser
from mirada.files import expanded
from mirada.hub import located

EPILOG = """examples:
  mirada export runs/luong --to onnx --out luong-onnx
  mirada export runs/luong --to onnx --precision int8 --out luong-int8
  echo "How are you?" | mirada translate luong-onnx
  mirada export runs/transformer --to ctranslate2 --out transformer-ct2

An ONNX folder holds three graphs (encode, start, step), the options and the tokenisers. It runs without torch
(mirada.runtime: ONNX Runtime and NumPy). It is checked against torch before it is written.
"""


def run(arguments: Sequence[str]) -> int:
    """Write a model in another engine's form."""
    parser = Parser(
        "export", "Write a model for another engine.", usage="mirada export MODEL --to onnx --out DIR", epilog=EPILOG
    )
    parser.add_argument("model", type=located, help="model folder, or hf:USER/NAME")
    parser.add_argument(
        "--to", choices=("onnx", "ctranslate2"), required=True, help="onnx: every system; ctranslate2: Transformers"
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="folder to write; it must not be there yet")
    parser.add_argument(
        "--precision",
        choices=("float32", "int8"),
        default="float32",
        help="of the large products; int8 is smaller and faster, and a few outputs differ [float32]",
    )
    values = parser.read(arguments)

    from mirada.cli import say
    from mirada.devices import choose_device
    from mirada.export.ctranslate2 import export_ctranslate2
    from mirada.export.onnx_folder import export_onnx, weights_of
    from mirada.store.checkpoint import load_model

    loaded = load_model(expanded(values.model), choose_device("cpu"))
    out = expanded(values.out)
    if values.to == "onnx":
        export_onnx(loaded, out, values.precision, say=say)
    else:
        export_ctranslate2(loaded, weights_of(loaded.model), out, values.precision, say=say)
    return 0
