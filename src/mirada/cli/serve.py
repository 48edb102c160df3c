"""`mirada serve`."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from mirada.cli import say
from mirada.cli.flags import Parser, add_fields, given
from mirada.errors import ConfigError
from mirada.files import expanded

EPILOG = """examples:
  mirada serve runs/luong                                       # then open http://127.0.0.1:8080
  mirada serve runs/classic runs/bahdanau --preload             # two systems beside each other on the page
  mirada serve en-es=runs/luong --languages en-es=en-es --port 5000
  mirada serve --config serve.yaml
  curl -H 'Content-Type: application/json' -d '{"text": "How are you?"}' http://127.0.0.1:8080/v1/translate

Flags win over the file. SIGTERM finishes what was accepted; SIGHUP loads the models again. See docs/serve.md.
"""


def run(arguments: Sequence[str]) -> int:
    """Answer HTTP requests with models, and show the page."""
    from mirada.config.serving import ServeConfig, load_serving, parse_serving

    usage = "mirada serve MODEL… [options]"
    parser = Parser("serve", "Answer HTTP requests with models, and show the page.", usage=usage, epilog=EPILOG)
    parser.add_argument("model", nargs="*", help="model folders, each FOLDER or NAME=FOLDER")
    parser.add_argument("--config", metavar="FILE", help="options as YAML")
    fields = {name: field for name, field in ServeConfig.model_fields.items() if name != "models"}
    add_fields(parser, "serve", fields)
    values = parser.read(arguments)
    if not hasattr(os, "fork") or not hasattr(signal, "SIGHUP"):
        raise ConfigError("`mirada serve` runs on Linux and macOS; this system has no fork")
    from_file = load_serving(expanded(values.config)) if values.config else {}
    models = {"models": tuple(values.model)} if values.model else {}
    settings = parse_serving({**from_file, **given(values, "serve", fields), **models})
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"serving needs {error.name}: pip install 'mirada[serve]'") from None

    from mirada.serving.server import serve

    return serve(settings, say)
