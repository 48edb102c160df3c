"""Flags made from the options' own fields: one definition gives the YAML key, the flag and its help."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, NoReturn, get_args, get_origin

from pydantic.fields import FieldInfo

from mirada.cli import helping
from mirada.config.configfile import BLOCKS
from mirada.errors import ConfigError, suggestion
from mirada.hub import located
from mirada.messages import LANGUAGES

SHORT: Mapping[str, tuple[str, ...]] = {"beam_size": ("--beam",)}
# What other toolkits call it.
ELSEWHERE = {
    "--lr": "--learning-rate",
    "--source": "--src",
    "--target": "--tgt",
    "--attention": "--score",
    "--rnn-size": "--hidden-size",
    "--layers": "--enc-layers",
    "--beams": "--beam-size",
    "--num-beams": "--beam-size",
    "--max-epoch": "--epochs",
    "--save-dir": "--model-dir",
    "--train-src": "--src",
    "--train-tgt": "--tgt",
    "--valid-src": "--dev-src",
    "--valid-tgt": "--dev-tgt",
}


class Parser(argparse.ArgumentParser):
    """argparse, with errors as exceptions of one line and unknown flags met by the nearest valid one."""

    def __init__(self, command: str, description: str, *, usage: str | None = None, epilog: str | None = None):
        super().__init__(
            prog=f"mirada {command}",
            usage=usage or f"mirada {command} [options]",
            description=description,
            epilog=epilog,
            allow_abbrev=False,
            formatter_class=helping.HelpFormatter,
        )
        self.add_argument("--lang", choices=LANGUAGES, help="language of messages and reports [by LANG]")

    def format_help(self) -> str:
        """The usual options; every one by --help-all."""
        return helping.text(self, everything=False)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing usage and leaving."""
        raise ConfigError(f"{message}; see `{self.prog} --help`")

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse; raises ConfigError for an unknown flag, naming the nearest valid one."""
        if "--help-all" in arguments:
            print(helping.text(self, everything=True), end="")
            raise SystemExit(0)
        values, unknown = self.parse_known_args(_dashed(arguments))
        if unknown:
            flags = [flag for action in self._actions for flag in action.option_strings]
            wrong = unknown[0].split("=")[0]
            raise ConfigError(f"unknown argument {wrong!r}{_meant(wrong, flags)}; see `{self.prog} --help-all`")
        return values


def _meant(wrong: str, flags: Sequence[str]) -> str:
    """`; did you mean …?` for a flag that is no bare word."""
    if not wrong.startswith("-"):
        return ""
    known = ELSEWHERE.get(wrong.replace("_", "-"))
    return f"; did you mean {known!r}?" if known in flags else suggestion(wrong, flags)


def positive(text: str) -> int:
    """Read a number from 1 up, for flags that count something."""
    if not text.isascii() or not text.isdigit() or not int(text[:12]):
        raise argparse.ArgumentTypeError(f"expected a number from 1 up, got {text!r}")
    return int(text[:12])


def add_models(parser: argparse.ArgumentParser, *, count: str = "+", more: str = "") -> None:
    """Add what names models, one or several, and the flag that says what an ensemble's mean is."""
    text = f"model folder, or hf:USER/NAME; several are an ensemble{more}"
    parser.add_argument("models", nargs=count, type=located, metavar="MODEL", help=text)
    add_ensemble_mode(parser)


def add_ensemble_mode(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says what an ensemble's mean is."""
    parser.add_argument(
        "--ensemble-mode",
        choices=("linear", "log_linear"),
        help="of several models the mean of the probabilities or of the log-probabilities [linear]",
    )


def ensemble_mode(values: argparse.Namespace) -> Any:
    """The mean that was asked for; raises ConfigError where there is nothing to take the mean of."""
    if values.ensemble_mode and len(values.models) < 2:
        raise ConfigError("--ensemble-mode goes with several models; one alone is its own mean")
    return values.ensemble_mode or "linear"


def number_or_auto(text: str) -> int | None:
    """Read a number from 1 up, or auto: None."""
    return None if text == "auto" else positive(text)


def add_options(
    parser: argparse.ArgumentParser,
    block: str,
    *,
    only: Sequence[str] | None = None,
    meaning: Mapping[str, str] | None = None,
) -> None:
    """Add a flag for each option of a block: `--hidden-size` and, for clarity, `--model.hidden-size`.

    `meaning`: what options are in this command, where that is not what they are in a training.
    """
    fields = BLOCKS[block].model_fields
    add_fields(parser, block, {name: fields[name] for name in fields if only is None or name in only}, meaning or {})


def add_fields(
    parser: argparse.ArgumentParser,
    block: str,
    fields: Mapping[str, FieldInfo],
    meaning: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add a flag for each of these fields."""
    group = parser.add_argument_group(f"{block} options")
    for name, field in fields.items():
        flags = [f"--{name.replace('_', '-')}", f"--{block}.{name.replace('_', '-')}", *SHORT.get(name, ())]
        text = f"{meaning.get(name, field.description)} [{_default(field)}]".replace("%", "%%")
        if _is_switch(field):
            group.add_argument(*flags, dest=f"{block}.{name}", help=text, nargs="?", const="true", metavar="true|false")
        else:
            group.add_argument(*flags, dest=f"{block}.{name}", help=text, metavar=_metavar(field))


def given(values: argparse.Namespace, block: str, fields: Mapping[str, FieldInfo]) -> dict[str, Any]:
    """Those of these fields that were given as flags."""
    found = {name: getattr(values, f"{block}.{name}", None) for name in fields}
    return {name: _value(text, fields[name]) for name, text in found.items() if text is not None}


def collect(values: argparse.Namespace, base: dict[str, Any] | None = None) -> dict[str, Any]:
    """The options given as flags, nested by block, laid over `base`."""
    merged: dict[str, Any] = {key: dict(part) if isinstance(part, dict) else part for key, part in (base or {}).items()}
    for dest, value in vars(values).items():
        block, _, name = dest.partition(".")
        if name and value is not None:
            part = merged.setdefault(block, {})
            if not isinstance(part, dict):
                raise ConfigError(f"{block}: expected a mapping of options, got {part!r}")
            part[name] = _value(value, BLOCKS[block].model_fields[name])
    return merged


def _dashed(arguments: Sequence[str]) -> list[str]:
    """Accept --hidden_size for --hidden-size (the value after = stays as it is)."""
    out = []
    for argument in arguments:
        flag, equals, value = argument.partition("=")
        out.append(flag.replace("_", "-") + equals + value if argument.startswith("--") else argument)
    return out


def _value(text: str, field: FieldInfo) -> Any:
    if text.lower() in ("none", "null") and type(None) in get_args(field.annotation):
        return None
    if get_origin(field.annotation) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


def _is_switch(field: FieldInfo) -> bool:
    return field.annotation is bool or bool in get_args(field.annotation)


def _default(field: FieldInfo) -> str:
    if field.default is None or field.default == ():
        return "none" if "default" not in (field.description or "") else "see there"
    if isinstance(field.default, tuple):
        return ",".join(map(str, field.default))
    return str(field.default).lower() if isinstance(field.default, bool) else str(field.default)


def _metavar(field: FieldInfo) -> str:
    parts = [field.annotation, *get_args(field.annotation)]
    types = [get_args(part)[0] if get_origin(part) is Annotated else part for part in parts]
    for kind, name in ((int, "N"), (float, "X")):
        if kind in types:
            return name
    choices = [value for value in types if isinstance(value, str)]
    return "|".join(choices) if choices else "TEXT"
