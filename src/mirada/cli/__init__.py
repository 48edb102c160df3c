"""The command line: parse, call, print. Each command is a module here, imported only when it is called.

Data goes to standard output, messages to standard error; a user's mistake is one line and an exit code other than 0.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from mirada.cli import streams
from mirada.errors import ConfigError, MiradaError, suggestion
from mirada.escape import terminal
from mirada.messages import language_of, speaking, spoken

COMMANDS = {
    "train": "train a model from pairs of sentences, or go on with one that was stopped",
    "translate": "turn each input line into an output line (standard input to standard output)",
    "score": "log-probability of given outputs",
    "explain": "every number of one sentence, equation by equation; change the attention and see",
    "serve": "answer HTTP requests with models, and show attention on a page as it happens",
    "align": "word links of given pairs by attention, and their error against gold links",
    "evaluate": "quality on a test set: BLEU, chrF, TER, exact match, error rates, ROUGE, F1, by length",
    "compare": "train systems under the same conditions (or test models), and write a report",
    "bottleneck": "measure what a fixed vector costs and attention buys, in four experiments",
    "sweep": "try values of options: a training for each combination, sorted by a metric on dev",
    "average": "make one model of several: the mean of their weights",
    "data": "make the embedded corpus, or check a corpus before training",
    "export": "write a model for another engine: ONNX graphs that run without torch",
    "import": "make a model folder of another toolkit's model (Marian, OpenNMT-py, JoeyNMT, fairseq)",
    "push": "share a model on the Hugging Face hub, with its card",
    "demo": "see everything in under three minutes: train four systems, translate, look at attention",
}
MODULES = {"import": "importing"}  # where the command's name cannot be a module's
LONGEST_MESSAGE = 1000
YOUNG = 50_000  # new objects before Python looks for garbage; at its own 700, importing torch takes 0.2 s longer
HELP = """usage: mirada COMMAND …

Train, run, compare and look inside sequence-to-sequence models.

commands:
  {commands}

`mirada COMMAND --help` says more. First steps: `mirada demo`, then
  mirada train --src train.en --tgt train.es --model-dir runs/first --decoder luong
  echo "How are you?" | mirada translate runs/first
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    alone = argv is None  # the process is this command's
    if alone:
        gc.set_threshold(YOUNG)
        streams.keep_numbers()
    streams.prepare()
    with speaking(language_of(arguments, os.environ)):
        try:
            return _run(arguments)
        except MiradaError as error:
            say(str(error))
            return error.exit_code
        except KeyboardInterrupt:
            say("stopped")
            return 130
        except BrokenPipeError:
            _drop_output()  # the reader has what it wanted (`| head`)
            return 0
        except OSError as error:  # a full disk behind standard output, and the like
            _drop_output()
            say(f"{error.filename or 'standard output'}: {error.strerror or error}")
            return MiradaError.exit_code
        except (MemoryError, ImportError, SystemError) as error:
            if not short_of_memory(error):
                raise
            say(f"too little memory for this command{_limit()}")
            return MiradaError.exit_code
        finally:
            if alone:  # Python ends now, and need not search all of torch for garbage first: 0.4 s
                gc.freeze()


def say(message: str) -> None:
    """Show one line on standard error, whatever stands in file names or in a file's options."""
    line = terminal(spoken(message) if len(message) <= LONGEST_MESSAGE else message)
    with suppress(OSError):  # nobody reads it: the exit code still tells
        print(f"mirada: {line if len(line) <= LONGEST_MESSAGE else line[:LONGEST_MESSAGE] + '…'}", file=sys.stderr)


def tell(line: str) -> None:
    """Show one line about the progress of long work on standard error."""
    print(terminal(spoken(line)), file=sys.stderr, flush=True)


def short_of_memory(error: BaseException) -> bool:
    """Whether an error says that there was no memory; a library that was not loaded whole says it in its own way."""
    # Where even an error finds no room, Python says SystemError.
    signs = ("failed to map segment", "annot allocate memory")
    return isinstance(error, MemoryError | SystemError) or any(sign in str(error) for sign in signs)


def _limit() -> str:
    """How much memory this process may address, where that is limited."""
    with suppress(Exception):  # no such limits on Windows, or no memory to look
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            return f" (this process may address {most >> 20:,} MiB, see `ulimit -v`; with torch it needs about 800)"
    return ""


def _drop_output() -> None:
    """What Python still holds for standard output goes nowhere, so that it is not written again at the end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    """Run one command until all it printed is out: a reader that has gone shows here, not when Python ends."""
    try:
        code = _dispatch(arguments)
    except SystemExit as end:  # argparse leaves so after --help
        code = int(end.code or 0)
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[0].split("=")[0] == "--lang":  # before the command it means the same as behind it
        count = 1 if "=" in arguments[0] else 2
        arguments = [*arguments[count:], *arguments[:count]] if len(arguments) > count else ["--help"]
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        commands = "\n  ".join(f"{name:<10} {spoken(summary)}" for name, summary in COMMANDS.items())
        print(spoken(HELP).format(commands=commands), end="")
        return 0 if arguments else 2
    if arguments[0] in ("--version", "version"):
        from importlib.metadata import version  # 15 ms, which no other command needs

        print(f"mirada {version('mirada')}")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        raise ConfigError(f"unknown command {name!r}{suggestion(name, COMMANDS)}; `mirada --help` lists them")
    return int(import_module(f"mirada.cli.{MODULES.get(name, name)}").run(rest))
