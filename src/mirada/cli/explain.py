"""`mirada explain`."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mirada.cli import say
from mirada.cli.flags import Parser, add_ensemble_mode, add_options, collect, ensemble_mode
from mirada.cli.streams import data_output
from mirada.errors import ConfigError, DataError, MiradaError
from mirada.escape import terminal
from mirada.files import expanded, packed, write_atomic
from mirada.hub import located
from mirada.messages import spoken

if TYPE_CHECKING:
    from mirada.config.options import SearchConfig
    from mirada.explain.edits import Edits
    from mirada.explain.record import Trace
    from mirada.translator import Translator

FORMATS = ("text", "json", "html", "svg", "png")
SEARCH = ("beam_size", "n_best", "alpha", "max_output_length", "max_length_ratio", "max_input_length")
EPILOG = """examples:
  mirada explain runs/luong "How are you?"                              # every equation with its numbers
  mirada explain runs/luong "How are you?" --step 2                     # one step of it
  mirada explain runs/luong "How are you?" --beam-size 5 --n-best 3 --format html --output how.html
  mirada explain runs/luong "How are you?" --reference "¿Cómo estás?"   # forced decoding of a given output
  mirada explain runs/luong "How are you?" --force "¿Qué"               # what follows a given beginning
  mirada explain runs/luong "How are you?" --attention uniform --from-step 2
  mirada explain runs/transformer "How are you?" --drop-head 2.1
  mirada explain runs/luong runs/bahdanau "How are you?"                # an ensemble: each member, and the mean
  mirada explain runs/luong "How are you?" --format json --output how.json
  mirada explain --verify how.json runs/luong                           # every number again, in plain NumPy

Steps, source tokens, layers and heads are counted from 1; the last source token is </s>.
"""


def run(arguments: Sequence[str]) -> int:
    """Show, step by step, what a model computes for a text; or verify a file of such numbers."""
    values = _read(arguments)
    if values.verify or not values.output:
        data_output("" if values.verify else "give --output")

    from mirada.translator import load

    if values.verify:
        if len(values.models) > 1:
            raise ConfigError("--verify recomputes the numbers of one model; give the one that the file is of")
        return _verify(expanded(values.verify), load(values.models[0], device="cpu"))
    _check(values)
    if len(values.models) > 1:
        from mirada.cli.explain_ensemble import run_ensemble

        return run_ensemble(values, _texts(values))

    from mirada.explain.edits import read_edits

    edits = read_edits(
        attention=values.attention,
        from_step=values.from_step,
        seed=values.shuffle_seed,
        no_input_feeding=values.no_input_feeding,
        drop_head=values.drop_head,
    )
    translator = load(values.models[0], device=values.device)
    translator.warn = say
    _check_drawable(values.format, translator)

    from mirada.config.configfile import changed

    options = changed(translator.config.search, collect(values).get("search", {}))
    texts = [_traces(translator, text, values, options, edits) for text in _texts(values)]
    _write(values, translator, texts)
    return 0


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    usage = 'mirada explain MODEL [MODEL …] "TEXT" [options]\n       mirada explain --verify FILE MODEL'
    parser = Parser("explain", "Every number of one sentence, in the order it is computed.", usage=usage, epilog=EPILOG)
    parser.add_argument("model", type=located, help="model folder, or hf:USER/NAME; several are an ensemble")
    parser.add_argument("more", nargs="*", metavar="TEXT", help="the sentence, behind all models")
    add_ensemble_mode(parser)
    parser.add_argument("--file", metavar="FILE", help="sentences, one a line, instead of TEXT")
    parser.add_argument("--reference", metavar="TEXT", help="the whole output, given (forced decoding)")
    parser.add_argument("--force", metavar="TEXT", help="the beginning of the output, given")
    parser.add_argument("--step", type=int, metavar="T", help="show this step only (text)")
    parser.add_argument("--top", type=int, default=5, metavar="K", help="next tokens listed at each step [5]")
    parser.add_argument("--format", choices=FORMATS, help="what is written [by the ending of --output, else text]")
    parser.add_argument("--output", metavar="FILE", help="file to write [standard output]")
    parser.add_argument("--verify", metavar="FILE", help="recompute a file of --format json from the model's weights")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    group = parser.add_argument_group("interventions (the output before and after)")
    group.add_argument("--attention", metavar="KIND", help="replace it: uniform, diagonal, shuffled, or edge:I-J")
    group.add_argument("--from-step", type=int, metavar="T", help="replace it from this step on [1]")
    group.add_argument("--shuffle-seed", type=int, metavar="N", help="of --attention shuffled [1]")
    group.add_argument("--no-input-feeding", action="store_true", help="luong: s̃ does not enter the next step")
    group.add_argument("--drop-head", metavar="L.H", help="transformer: leave out a head's attention over the source")
    add_options(parser, "search", only=SEARCH)
    values = parser.read(arguments)
    # The last one is the text; beside a file only where it is no model, so that a second text is refused.
    beside = values.file is not None or values.verify is not None
    models = beside and all(one.startswith("hf:") or Path(one).is_dir() for one in values.more)
    values.text = values.more.pop() if values.more and not models else None
    for one in values.more:
        if not one.startswith("hf:") and not Path(one).is_dir():
            raise ConfigError(f"{one}: no such model folder; a text of several words stands in quotes")
    values.models = [values.model, *map(located, values.more)]
    values.mode = ensemble_mode(values)
    values.format = values.format or _format_of(Path(values.output or ""))
    return values


def _format_of(output: Path) -> str:
    """What the name of a file promises."""
    packed_last = output.suffix in (".gz", ".xz")
    ending = (output.with_suffix("") if packed_last else output).suffix[1:]
    return ending if ending in FORMATS else "text"


def _check(values: argparse.Namespace) -> None:
    """Raise ConfigError for flags that contradict each other."""
    if (values.text is None) == (values.file is None):
        raise ConfigError("give one text, or --file FILE with one a line; see `mirada explain --help`")
    if values.reference is not None and values.file is not None:
        raise ConfigError("--reference is the output of one text; it does not go with --file")
    if values.step is not None and values.format != "text":
        raise ConfigError(f"--step shows one step as text; --format {values.format} always holds all of them")
    for name in ("text", "reference", "force"):
        if any("\ud800" <= char <= "\udfff" for char in getattr(values, name) or ""):
            raise DataError(f"the {name} given on the command line is not valid UTF-8")
    if values.top < 1:
        raise ConfigError(f"--top {values.top}: expected 1 or more")


def _check_drawable(kind: str, translator: Translator) -> None:
    if kind in ("svg", "png") and not translator.config.model.has_attention:
        raise ConfigError(f"--format {kind}: a classic model has no attention to draw; use text, json or html")


def _texts(values: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Where each text stands (nothing for the command line's) and the text."""
    if values.file is None:
        yield "", values.text
        return

    from mirada.data.corpus import open_text, stream_lines

    path, found = expanded(values.file), False
    with open_text(path) as stream:
        for number, line in enumerate(stream_lines(stream, values.file), start=1):
            if line.strip():
                found = True
                yield f"{values.file}:{number}: ", line
            else:
                say(f"{values.file}:{number}: blank, left out")
    if not found:
        raise DataError(f"{values.file}: no text in it")


def _traces(
    translator: Translator,
    placed: tuple[str, str],
    values: argparse.Namespace,
    options: SearchConfig,
    edits: Edits | None,
) -> tuple[list[Trace], list[Trace]]:
    """The traces of one text: as the model is, and edited."""
    from functools import partial

    from mirada.explain.trace import trace

    make = partial(trace, translator, placed[1], options=options, top_k=values.top)
    make = partial(make, reference=values.reference, prefix=values.force)
    try:
        return make(), make(edits=edits) if edits else []
    except MiradaError as error:
        raise type(error)(f"{placed[0]}{error}") from None


def _write(
    values: argparse.Namespace, translator: Translator, texts: Sequence[tuple[list[Trace], list[Trace]]]
) -> None:
    traces = [trace for before, after in texts for trace in (*before, *after)]
    if values.format == "text":
        _put(values.output, _as_text(values.step, texts, translator).encode())
        return
    if values.format == "json":
        from mirada.explain.record import document

        _put(values.output, document(traces).encode())
    elif values.format == "html":
        from mirada.explain.page import page

        _put(values.output, page(traces).encode())
    else:
        _draw(values, traces)
    _tell_agreement(translator, traces)


def _tell_agreement(translator: Translator, traces: Sequence[Trace]) -> None:
    """Say, once for all traces, how near the model's own numbers are."""
    from mirada.explain.agreement import agreement, worst

    say(f"numbers by the equations in float64; {worst([agreement(translator, trace) for trace in traces])}")


def _as_text(step: int | None, texts: Sequence[tuple[list[Trace], list[Trace]]], translator: Translator) -> str:
    from mirada.explain.agreement import agreement
    from mirada.explain.walkthrough import compare, walkthrough

    width = shutil.get_terminal_size().columns
    parts = []
    for before, after in texts:
        parts += [compare(*pair, width=width) for pair in zip(before, after, strict=False)]
        parts += [
            walkthrough(trace, width=width, step=step, agreement=str(agreement(translator, trace)))
            for trace in after or before
        ]
    return "\n\n".join(parts) + "\n"


def _draw(values: argparse.Namespace, traces: Sequence[Trace]) -> None:
    """One heat map a trace, in files numbered where there are several."""
    from mirada.explain.figure import heatmap_figure, image
    from mirada.explain.walkthrough import edit_name

    if len(traces) > 1 and not values.output:
        raise ConfigError(f"{len(traces)} figures need --output FILE; they are numbered FILE-1, FILE-2 …")
    for number, trace in enumerate(traces, start=1):
        if trace.attention is None:
            continue
        sides = trace.output.tokens, trace.source.tokens
        figure = heatmap_figure(trace.attention, *sides, title=edit_name(trace.edits) if trace.edits else "")
        path = expanded(values.output) if values.output else None
        if path and len(traces) > 1:
            path = path.with_name(f"{path.stem}-{number}{path.suffix}")
        _put(str(path) if path else None, image(figure, values.format, warn=say))


def _put(path: str | None, content: bytes) -> None:
    if path is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    write_atomic(expanded(path), packed(expanded(path), content))


def _verify(path: Path, translator: Translator) -> int:
    """Print what differs from what must be, and the largest difference of each tensor; 1 if anything does."""
    from mirada.explain.agreement import worst
    from mirada.explain.verify import TOLERANCE, read_traces, summary, verify

    content = read_traces(path)
    verdicts = verify(content.traces, translator)
    lines = [] if content.is_whole else ["the file's content was changed: it has not the fingerprint that it names"]
    lines += [
        f"trace {number}, {leaf.where}: the file has {leaf.found!r}, the weights give {leaf.expected!r}"
        for number, verdict in enumerate(verdicts, start=1)
        for leaf in verdict.faults
    ]
    lines.append(f"{spoken('name'):<24} {spoken('values'):>9}  {spoken('largest difference')}")
    rows = summary(verdicts)
    lines += [f"{row.name:<24} {row.values:>9,}  {row.difference:.1e}" for row in rows]
    own = worst([verdict.own for verdict in verdicts if verdict.own is not None])
    lines.append(str(own))
    good = content.is_whole and own.is_near and rows[-1].difference <= TOLERANCE
    lines.append(
        f"{'every value agrees with' if good else 'NOT what follows from'} the weights (tolerance {TOLERANCE:g})"
    )
    _put(None, "".join(f"{terminal(spoken(line))}\n" for line in lines).encode())
    return 0 if good else 1
