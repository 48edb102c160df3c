"""`mirada export`."""

from __future__ import annotations

from collections.abc import Sequence

from mirada.cli.flags import Parser
from mirada.errors import ConfigError
from mirada.files import expanded
from mirada.hub import located

EPILOG = """examples:
  mirada export runs/luong --to onnx --out luong-onnx
  mirada export runs/luong --to onnx --precision int8 --out luong-int8
  echo "How are you?" | mirada translate luong-onnx
  mirada export runs/transformer --to ctranslate2 --out transformer-ct2
  mirada export runs/luong --to web --precision int8 --out luong-page
  python -m http.server -d luong-page

An ONNX folder holds three graphs (encode, start, step), the options and the tokenisers. It runs without torch
(mirada.runtime: ONNX Runtime and NumPy). It is checked against torch before it is written.

A web folder is a page that any static server can show: a sentence is written word by word, all computed in the page.
It needs the package onnxruntime-web, which is fetched from npm once, or given by --runtime.
"""


def run(arguments: Sequence[str]) -> int:
    """Write a model in another engine's form."""
    parser = Parser(
        "export",
        "Write a model for another engine.",
        usage="mirada export MODEL --to onnx|ctranslate2|web --out DIR",
        epilog=EPILOG,
    )
    parser.add_argument("model", type=located, help="model folder, or hf:USER/NAME")
    parser.add_argument(
        "--to",
        choices=("onnx", "ctranslate2", "web"),
        required=True,
        help="onnx: every system; ctranslate2: Transformers; web: a page that computes the model",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="folder to write; it must not be there yet")
    parser.add_argument(
        "--precision",
        choices=("float32", "int8"),
        default="float32",
        help="of the large products; int8 is smaller and faster, and a few outputs differ [float32]",
    )
    parser.add_argument(
        "--runtime", metavar="FILE", help="web: the package onnxruntime-web of npm, packed or a folder [fetched once]"
    )
    values = parser.read(arguments)

    from mirada.cli import say
    from mirada.devices import choose_device
    from mirada.export.ctranslate2 import export_ctranslate2
    from mirada.export.onnx_folder import export_onnx, weights_of
    from mirada.export.web import export_web
    from mirada.store.checkpoint import load_model

    if values.runtime is not None and values.to != "web":
        raise ConfigError(f"--runtime does nothing with --to {values.to}; it is for --to web")
    loaded = load_model(expanded(values.model), choose_device("cpu"))
    out = expanded(values.out)
    if values.to == "onnx":
        export_onnx(loaded, out, values.precision, say=say)
    elif values.to == "web":
        export_web(loaded, out, values.precision, values.runtime and expanded(values.runtime), say=say)
    else:
        export_ctranslate2(loaded, weights_of(loaded.model), out, values.precision, say=say)
    return 0
