"""`mirada export --to web`: a folder of static files, a page that computes the model by ONNX Runtime for the Web."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from mirada.config.options import Config
from mirada.data.parts import Parts
from mirada.errors import ConfigError
from mirada.export.graph import Precision
from mirada.export.onnx_folder import write_checked
from mirada.export.web_runtime import runtime_files
from mirada.files import new_folder
from mirada.runtime.folder import Exported
from mirada.store.checkpoint import Loaded
from mirada.texts import input_limit

FORMAT = 1
HEAVY_BYTES, MOST_BYTES = 50_000_000, 1_000_000_000  # WebAssembly has 4 GB, and a model is there twice while it is read
ABOUT, MODEL, RUNTIME = "about.json", "model", "runtime"
OWN = ("index.html", "app.js", "engine.js", "say.js", "search.js", "tokens.js")
SHARED = ("dom.js", "map.js", "page.css", "sentence.js", "units.js", "words.js")  # with the page of `mirada explain`
SEARCH = (
    *("beam_size", "alpha", "exact_stop", "max_output_length", "max_length_ratio", "max_length_offset"),
    *("min_output_length", "no_repeat_ngram_size", "replace_unk"),
)


def export_web(
    loaded: Loaded, out: Path, precision: Precision, runtime: Path | None, *, say: Callable[[str], None]
) -> None:
    """Write the folder; its graphs are checked against torch as those of `--to onnx` are.

    `runtime` is the package onnxruntime-web as npm has it (None: cached, or fetched). Raises ConfigError where it is
    another one or not to be had, for models that no page can hold, and as `export_onnx`.
    """
    library = runtime_files(runtime, say=say)
    with new_folder(out) as folder:
        for name in (MODEL, RUNTIME):
            (folder / name).mkdir()
        exported, difference = write_checked(loaded, precision, folder / MODEL)
        size = sum(path.stat().st_size for path in (folder / MODEL).iterdir())
        advice = _weighed(size, precision)
        (folder / ABOUT).write_text(json.dumps(about(exported), indent=1) + "\n", encoding="utf-8")
        for part, names in (("export", OWN), ("explain", SHARED)):
            for name in names:
                (folder / name).write_bytes(files("mirada").joinpath(part, "static", name).read_bytes())
        for name, content in library.items():
            (folder / RUNTIME / name).write_bytes(content)
    say(
        f"{out}: {size / 1e6:.1f} MB of model in {precision}, checked: log-probabilities differ by {difference:.1g}; "
        f"to look at it: python -m http.server -d {out}"
    )
    if advice:
        say(advice)


def about(exported: Exported) -> dict[str, Any]:
    """What the page is told of a model. No name of a file or folder is in it."""
    config, source, target, names, precision, _ = exported
    limit = input_limit(config.data, config.search.max_input_length)
    return {
        "format": FORMAT,
        "system": f"{_system(config)} · {precision}",
        "parts": len(source.kinds) if isinstance(source, Parts) else 1,
        "tokenizers": {"source": source.kind, "target": target.kind},
        "attention": config.model.has_attention,
        **{part: list(value) for part, value in names._asdict().items()},
        "input": {"most": limit.most, "how": limit.how},
        "search": {name: getattr(config.search, name) for name in SEARCH},
    }


def _system(config: Config) -> str:
    model = config.model
    parts = [model.decoder] if model.decoder == "transformer" else [model.decoder, model.score_name, model.rnn_type]
    return " · ".join(str(part) for part in parts if part)


def _weighed(size: int, precision: Precision) -> str:
    """What to say of a model of so many bytes, if anything; raises ConfigError for more than a browser can hold."""
    smaller = "--precision int8 makes it smaller" if precision == "float32" else "train a smaller one for a page"
    if size > MOST_BYTES:
        raise ConfigError(
            f"{size / 1e6:,.0f} MB of model, a page can hold {MOST_BYTES / 1e6:,.0f} MB; {smaller}, or use --to onnx"
        )
    many = f"{size / 1e6:,.0f} MB of model are slow to fetch, and much for a phone's memory; {smaller}"
    return many if size > HEAVY_BYTES else ""
