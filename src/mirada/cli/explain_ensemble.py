"""`mirada explain` with several models: each member's numbers, and the mean of what they say."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterable

from mirada.cli import say
from mirada.cli.flags import collect
from mirada.errors import ConfigError, MiradaError
from mirada.files import expanded, write_atomic

ALONE = ("attention", "from_step", "shuffle_seed", "drop_head")  # what changes one model


def run_ensemble(values: argparse.Namespace, texts: Iterable[tuple[str, str]]) -> int:
    """Show, member by member and then together, what models compute for texts, each with the place where it stands."""
    if values.format not in ("text", "json"):
        raise ConfigError(f"--format {values.format} shows one model; an ensemble has text and json")
    changed_one = [name for name in ALONE if getattr(values, name) is not None]
    if changed_one or values.no_input_feeding:
        flag = (changed_one or ["no_input_feeding"])[0].replace("_", "-")
        raise ConfigError(f"--{flag} changes one model; explain it without the others of the ensemble")

    from mirada.config.configfile import changed
    from mirada.explain.ensemble import ensemble_document, ensemble_walkthrough, trace_ensemble
    from mirada.translator import load

    translator = load(values.models, device=values.device, ensemble_mode=values.mode)
    translator.warn = say
    options = changed(translator.config.search, collect(values).get("search", {}))
    given = {"reference": values.reference, "prefix": values.force, "top_k": values.top}
    traces = []
    for where, text in texts:
        try:
            traces += trace_ensemble(translator, text, options=options, **given)
        except MiradaError as error:
            raise type(error)(f"{where}{error}") from None
    if values.format == "json":
        content = ensemble_document(traces)
    else:
        width = shutil.get_terminal_size().columns
        shown = [ensemble_walkthrough(one, values.models, width=width, step=values.step) for one in traces]
        content = "\n\n".join(shown) + "\n"
    if values.output is None:
        sys.stdout.buffer.write(content.encode())
        sys.stdout.buffer.flush()
    else:
        write_atomic(expanded(values.output), content.encode())
    return 0
