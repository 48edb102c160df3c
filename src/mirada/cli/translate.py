"""`mirada translate`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, TextIO

from mirada.cli import say, tell
from mirada.cli.engine import add_engine, engine_of
from mirada.cli.flags import Parser, add_models, add_options, collect, ensemble_mode, number_or_auto
from mirada.cli.remarks import Remarks, remark, say_remarks
from mirada.cli.streams import data_output, undisturbed
from mirada.errors import ConfigError, DataError
from mirada.files import expanded, text_stream, unwritable
from mirada.scaling.engine import EngineChoice, workplace

if TYPE_CHECKING:
    from mirada.cli.remote import Remote
    from mirada.config.options import SearchConfig
    from mirada.runtime import Translator as Runtime
    from mirada.translator import Translation, Translator

EPILOG = """examples:
  echo "How are you?" | mirada translate runs/luong
  mirada translate runs/luong --input test.en --output test.hyp --beam-size 5
  mirada translate runs/luong --prefix-file begins.es < test.en         # each output begins as its line says
  mirada translate runs/luong --n-best 3 < test.en                      # id ||| text ||| score
  mirada translate runs/luong --alignment hard --save-attention a.jsonl < test.en
  mirada translate runs/luong --precision int8 < test.en                # about twice as fast, a few outputs differ
  mirada translate runs/luong runs/bahdanau < test.en                   # an ensemble: the mean of what they say
  mirada translate runs/luong --engine processes --workers 4 --input test.en --output test.hyp
  mirada translate --server http://127.0.0.1:8080 < test.en              # by `mirada serve`

n lines in, n lines out, in order; an empty line gives an empty line. What has arrived is translated at once, so a pipe
or a terminal that gives line by line is answered line by line (and batches are as large as what is there).
"""


def run(arguments: Sequence[str]) -> int:
    """Translate standard input or a file, line by line."""
    values = _read(arguments)
    if values.server:
        return _translate_there(values)
    if not values.models:
        raise ConfigError("give a model folder, or --server URL; see `mirada translate --help`")
    _refuse_text(values.models)
    choice = engine_of(values, values.device, threads=True)
    translator, options = _loaded(values, choice)
    with ExitStack() as stack:
        blocks, output = _open(values, stack)
        attention = stack.enter_context(_writable(values.save_attention)) if values.save_attention else None
        prefixes = _prefixes(values.prefix_file, stack)
        lines = _searched(values, choice, (translator, options), (blocks, prefixes), stack)
        if choice.kind == "local" and values.input is None and sys.stdin is not None and sys.stdin.isatty():
            say("type a line and Enter for its translation; Ctrl-D ends")
        remarks = Remarks(0, 0, 0)
        for outputs in lines:
            numbered = [(number, found) for number, row in enumerate(outputs, start=remarks.lines) for found in row]
            texts = [_line(number, found, values, options.n_best, translator) for number, found in numbered]
            weights = [json.dumps(_attention(*pair), ensure_ascii=False) for pair in numbered] if attention else []
            remarks = remark(remarks, outputs)
            with undisturbed():
                _write(output, texts, values.output)
                if attention:
                    _write(attention, weights, values.save_attention)
        if prefixes is not None and next(prefixes, None) is not None:
            raise DataError(f"{values.prefix_file}: more lines than the input, which has {remarks.lines}")
    say_remarks(remarks)
    return 0


def _refuse_text(models: Sequence[str]) -> None:
    """Raise ConfigError for a text behind the model."""
    for one in models[1:]:
        if "/" not in one and not os.path.lexists(one):
            raise ConfigError(
                f"{one}: no such model folder; a text to translate is read from standard input, or with --input from a "
                f'file: echo "…" | mirada translate {models[0]}'
            )


def _loaded(values: argparse.Namespace, choice: EngineChoice) -> tuple[Translator | Runtime, SearchConfig]:
    """The model or ensemble with the options of its search; raises ConfigError for what it cannot give."""
    mode = ensemble_mode(values)

    from mirada.config.configfile import changed
    from mirada.loading import load

    translator = load(
        values.models,
        device=values.device if choice.kind == "local" else "cpu",  # workers have their own
        precision=values.precision,
        workers=values.workers,
        ensemble_mode=mode,
    )
    translator.warn = _refuse if values.strict else say
    options = changed(translator.config.search, collect(values).get("search", {}))
    attended = values.alignment is not None or values.save_attention is not None
    if (attended or (options.replace_unk and len(values.models) > 1)) and not translator.has_attention:
        raise ConfigError(_no_attention(values.models))
    if options.replace_unk and translator.config.data.target_tokenizer in ("bpe", "unigram"):
        say("replace_unk: this model writes pieces of words, so it writes no <unk> and nothing will be replaced")
    return translator, options


def _searched(
    values: argparse.Namespace,
    choice: EngineChoice,
    loaded: tuple[Translator | Runtime, SearchConfig],
    lines: tuple[Iterator[list[str]], Iterator[str] | None],
    stack: ExitStack,
) -> Iterator[list[list[Translation]]]:
    """The outputs of blocks of lines, by the model here or by workers that have it."""
    (translator, options), (blocks, prefixes), size = loaded, lines, values.batch_size
    attended = values.alignment is not None or values.save_attention is not None
    if choice.kind == "local":
        return translator.stream_blocks(
            blocks, options=options, batch_size=size, with_attention=attended, prefixes=prefixes
        )
    from mirada.loading import located_all
    from mirada.scaling.searching import SearchJob, make_search, search_blocks

    models, mode = tuple(located_all(values.models)), ensemble_mode(values)
    job = SearchJob(models, options, values.device, values.precision, mode, size, attended)
    place = stack.enter_context(workplace(choice, partial(make_search, job), tell))
    return search_blocks(place, blocks, batch_size=size, prefixes=prefixes, warn=translator.warn)


def _translate_there(values: argparse.Namespace) -> int:
    """The same by a service."""
    from mirada.cli.remote import check, remote_blocks

    check(values)
    search = collect(values).get("search", {})
    with ExitStack() as stack:
        blocks, output = _open(values, stack)
        first = 0
        for outputs in remote_blocks(values, blocks, search):
            numbered = [(number, found) for number, row in enumerate(outputs, start=first) for found in row]
            first += len(outputs)
            with undisturbed():
                _write(
                    output,
                    [_plain_line(*pair, values, int(search.get("n_best", 1))) for pair in numbered],
                    values.output,
                )
    return 0


def _prefixes(path: str | None, stack: ExitStack) -> Iterator[str] | None:
    """The forced beginnings, a line each."""
    if path is None:
        return None
    from mirada.data.arriving import line_blocks
    from mirada.data.corpus import open_text

    stream = stack.enter_context(open_text(expanded(path)))
    return chain.from_iterable(line_blocks(stream, path))


def _write(file: TextIO, lines: list[str], name: str | None) -> None:
    """Write whole lines; raises MiradaError with the file's name, where it has one."""
    try:
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
    except OSError as error:
        if name is None:
            raise
        raise unwritable(name, error) from None


@contextmanager
def _writable(name: str) -> Iterator[TextIO]:
    file = text_stream(expanded(name))
    try:
        yield file
    finally:
        try:
            file.close()
        except OSError as error:
            raise unwritable(name, error) from None


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    usage = "mirada translate MODEL [MODEL …] [options] [< FILE]"
    parser = Parser("translate", "Turn each input line into an output line.", usage=usage, epilog=EPILOG)
    add_models(parser, count="*", more="; with --server the name of a served model")
    parser.add_argument("--server", metavar="URL", help="let `mirada serve` there translate, instead of this process")
    parser.add_argument("--token", metavar="TOKEN", help="with --server: a token, where it asks for one")
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
    parser.add_argument(
        "--batch-size",
        type=number_or_auto,
        default=64,
        metavar="N",
        help="sentences searched together, or auto: by lengths, hypotheses and vocabulary [64]",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N [auto]")
    parser.add_argument(
        "--precision",
        choices=("float32", "int8"),
        default="float32",
        help="of the large products on a CPU; int8 is about twice as fast, and a few outputs differ [float32]",
    )
    add_engine(parser, "blocks of lines are searched", workers="batches searched at once [one a core, up to 8]; ")
    parser.add_argument("--prefix-file", metavar="FILE", help="how each output must begin, a line for each input line")
    parser.add_argument(
        "--join-output", action="store_true", help="write outputs without blanks: symbols joined back into words"
    )
    parser.add_argument("--strict", action="store_true", help="stop at a line that is too long instead of cutting it")
    add_options(parser, "search")
    return parser.read(arguments)


def _open(values: argparse.Namespace, stack: ExitStack) -> tuple[Iterator[list[str]], TextIO]:
    from mirada.data.arriving import line_blocks
    from mirada.data.corpus import open_text

    stream: BinaryIO = stack.enter_context(open_text(expanded(values.input))) if values.input else _plain_input()
    _refuse_same(stream, [path for path in (values.output, values.save_attention) if path])
    output = stack.enter_context(_writable(values.output)) if values.output else data_output("give --output")
    return line_blocks(stream, values.input or "standard input"), output


def _plain_input() -> BinaryIO:
    """Standard input as bytes; where somebody made it non-blocking, a pause would read as the end."""
    if sys.stdin is None:
        raise ConfigError("standard input is closed; give --input, or something to read")
    with suppress(OSError, AttributeError):  # Windows has it from Python 3.12 on
        os.set_blocking(sys.stdin.fileno(), True)
    return sys.stdin.buffer


def _refuse_same(stream: BinaryIO, paths: list[str]) -> None:
    """Raise ConfigError if a file to write is the file to read, or another that is written: it would be emptied."""
    known: list[os.stat_result] = []
    with suppress(OSError):  # a stream in memory has no file
        known.append(os.fstat(stream.fileno()))
    for path in paths:
        if not expanded(path).is_file():
            continue
        found = os.stat(path)
        if any(os.path.samestat(found, other) for other in known):
            raise ConfigError(f"{path}: given twice, to be read and written or to be written by two; choose another")
        known.append(found)


def _line(
    number: int, found: Translation, values: argparse.Namespace, n_best: int, translator: Translator | Runtime
) -> str:
    line = _plain_line(number, found, values, n_best)
    if values.alignment == "hard":
        line += " ||| " + translator.word_links(found)
    if values.alignment == "soft":
        rows = [] if found.attention is None else found.attention.tolist()
        line += " ||| " + " ".join(",".join(f"{weight:.4f}" for weight in row) for row in rows)
    return line


def _plain_line(number: int, found: Translation | Remote, values: argparse.Namespace, n_best: int) -> str:
    text = "".join(found.text.split()) if values.join_output else found.text
    if n_best > 1:
        return f"{number} ||| {text} ||| {found.score:.4f}"
    return f"{text}\t{found.score:.4f}" if values.scores else text


def _no_attention(models: Sequence[str]) -> str:
    if len(models) == 1:
        return f"{models[0]}: a classic model has no attention to align with or to save"
    names = ", ".join(models)
    return f"{names}: no attention in common (classic models have none, others need equal source tokens to share one)"


def _attention(number: int, found: Translation) -> dict[str, object]:
    rows = [] if found.attention is None else [[round(float(w), 6) for w in row] for row in found.attention]
    return {"line": number, "source": found.source_tokens, "target": found.tokens, "attention": rows}


def _refuse(line: str) -> None:
    raise DataError(f"{line} (--strict)")
