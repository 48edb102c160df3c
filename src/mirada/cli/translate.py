"""`mirada translate`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO

from mirada.cli.flags import Parser, add_options, collect
from mirada.errors import ConfigError, DataError

if TYPE_CHECKING:
    from mirada.translator import Translation, Translator

EPILOG = """examples:
  echo "How are you?" | mirada translate runs/luong
  mirada translate runs/luong --input test.en --output test.hyp --beam-size 5
  mirada translate runs/luong --n-best 3 < test.en                      # id ||| text ||| score
  mirada translate runs/luong --alignment hard --save-attention a.jsonl < test.en

n lines in, n lines out, in order; an empty line gives an empty line.
"""


def run(arguments: Sequence[str]) -> int:
    """Translate standard input or a file, line by line."""
    values = _read(arguments)

    from mirada.configfile import changed
    from mirada.translator import load

    translator = load(values.model, device=values.device)
    translator.warn = _refuse if values.strict else _warn
    options = changed(translator.config.search, collect(values).get("search", {}))
    look = values.alignment is not None or values.save_attention is not None
    if look and translator.config.model.decoder == "classic":
        raise ConfigError(f"{values.model}: a classic model has no attention to align with or to save")
    with ExitStack() as stack:
        lines, output = _open(values, stack)
        attention = stack.enter_context(_writable(values.save_attention)) if values.save_attention else None
        outputs = translator.stream(lines, options=options, batch_size=values.batch_size, with_attention=look)
        for number, found in enumerate(outputs):
            for translation in found:
                output.write(_line(number, translation, values, options.n_best, translator) + "\n")
                if attention:
                    attention.write(json.dumps(_attention(number, translation), ensure_ascii=False) + "\n")
            output.flush()
    return 0


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    usage = "mirada translate MODEL [options] [< FILE]"
    parser = Parser("translate", "Turn each input line into an output line.", usage=usage, epilog=EPILOG)
    parser.add_argument("model", help="model folder")
    parser.add_argument("--input", "--src", metavar="FILE", help="file to read [standard input]")
    parser.add_argument("--output", metavar="FILE", help="file to write [standard output]")
    parser.add_argument(
        "--scores", action="store_true", help="add a tab and the score (natural log, length-normalised)"
    )
    parser.add_argument("--save-attention", metavar="FILE", help="write tokens and attention weights as JSON lines")
    parser.add_argument(
        "--alignment",
        choices=("hard", "soft"),
        help="add ` ||| ` and word links i-j (source-output, from 0), or the weights of each output token",
    )
    parser.add_argument("--batch-size", type=int, default=64, help="sentences searched together [64]")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    parser.add_argument("--strict", action="store_true", help="stop at a line that is too long instead of cutting it")
    add_options(parser, "search")
    return parser.read(arguments)


def _open(values: argparse.Namespace, stack: ExitStack) -> tuple[Iterator[str], TextIO]:
    from mirada.data.corpus import open_text, stream_lines

    stream: BinaryIO = stack.enter_context(open_text(Path(values.input))) if values.input else sys.stdin.buffer
    output = stack.enter_context(_writable(values.output)) if values.output else _plain_output()
    return stream_lines(stream, values.input or "standard input"), output


def _writable(path: str) -> TextIO:
    try:
        return Path(path).open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror})") from None


def _plain_output() -> TextIO:
    """Standard output as UTF-8 with bare newlines, whatever the system's habit."""
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # type: ignore[union-attr]
    return sys.stdout


def _line(number: int, found: Translation, values: argparse.Namespace, n_best: int, translator: Translator) -> str:
    if n_best > 1:
        line = f"{number} ||| {found.text} ||| {found.score:.4f}"
    else:
        line = f"{found.text}\t{found.score:.4f}" if values.scores else found.text
    if values.alignment == "hard":
        line += " ||| " + translator.word_links(found)
    if values.alignment == "soft":
        rows = [] if found.attention is None else found.attention.tolist()
        line += " ||| " + " ".join(",".join(f"{weight:.4f}" for weight in row) for row in rows)
    return line


def _attention(number: int, found: Translation) -> dict[str, object]:
    rows = [] if found.attention is None else [[round(float(w), 6) for w in row] for row in found.attention]
    return {"line": number, "source": found.source_tokens, "target": found.tokens, "attention": rows}


def _warn(line: str) -> None:
    print(f"mirada: {line}", file=sys.stderr)


def _refuse(line: str) -> None:
    raise DataError(f"{line} (--strict)")
