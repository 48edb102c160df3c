"""Systems by name, budgets, and widths that give equal numbers of weights."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from mirada.config.configfile import parse
from mirada.config.model import Decoder, Score, applicable
from mirada.config.options import Config, ModelConfig
from mirada.errors import ConfigError, suggestion

NAMES = ("classic-lstm", "classic-gru", "bahdanau", "luong-dot", "luong-general", "luong-concat", "transformer")
CELLS, SCORES, DECODERS = ("lstm", "gru"), get_args(Score), get_args(Decoder)
BUDGET = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(update|epoch|minute)s?")
ENDLESS = 1_000_000  # epochs and patience, where something else ends a training
TOLERANCE = 0.05
WIDEST = 4096


class Vocabularies(NamedTuple):
    """Entries of both sides."""

    source: int
    target: int


def system_options(name: str) -> dict[str, str]:
    """The options that a name stands for: a decoder, then a cell or a score, joined by hyphens (`luong-gru-dot`).

    Raises ConfigError for a name that stands for none.
    """
    decoder, *parts = name.split("-")
    options = {"decoder": decoder}
    for part in parts:
        options["rnn_type" if part in CELLS else "score"] = part
    known = decoder in DECODERS and all(part in (*CELLS, *SCORES) for part in parts)
    if not known or len(options) != 1 + len(parts) or (decoder == "transformer" and parts):
        raise ConfigError(
            f"unknown system {name!r}{suggestion(name, NAMES)}; a system is a decoder ({', '.join(DECODERS)}), "
            "and where it has them a cell and a score, such as luong-gru-dot"
        )
    return options


def system_config(values: Mapping[str, Any], name: str) -> Config:
    """All options of a system: those shared by all, less those that do nothing with its decoder, and its own.

    Raises ConfigError if shared options name what the systems name, or if they contradict each other.
    """
    shared = dict(values.get("model", {}))
    if taken := sorted({"decoder", "score"} & set(shared)):
        raise ConfigError(f"{taken[0]} is named by the systems (--systems luong-dot,…); leave --{taken[0]} out")
    own = system_options(name)
    return parse({**values, "model": applicable({**shared, **own})}, where=name)


def parse_budget(text: str) -> dict[str, Any]:
    """Turn `2000updates`, `10epochs` or `15minutes` into training options; raises ConfigError."""
    match = BUDGET.fullmatch(text.strip())
    amount = float(match[1]) if match else 0.0
    if match is None or not amount:
        raise ConfigError(f"budget {text!r}: expected a number and a unit, such as 2000updates, 10epochs or 15minutes")
    if match[2] == "minute":
        return {"epochs": ENDLESS, "max_minutes": amount}
    if amount != int(amount):
        raise ConfigError(f"budget {text!r}: {match[2]}s are counted whole")
    return {"epochs": int(amount)} if match[2] == "epoch" else {"epochs": ENDLESS, "max_updates": int(amount)}


def budgeted(values: Mapping[str, Any], budget: str) -> dict[str, Any]:
    """Lay a budget over training options: it is used whole unless `patience` is given.

    Raises ConfigError for another limit beside it, and for a schedule that a limit in minutes leaves without an end.
    """
    given = dict(values.get("training", {}))
    if taken := sorted({"epochs", "max_updates", "max_minutes"} & set(given)):
        raise ConfigError(f"{taken[0]} and a budget both say when to stop; give only --budget")
    limits = parse_budget(budget)
    if "max_minutes" in limits and given.get("scheduling") in ("cosine", "linear"):
        raise ConfigError(
            f"scheduling {given['scheduling']} ends at a known update; give the budget in updates or epochs, "
            "or use another scheduling"
        )
    return {**values, "training": {"patience": ENDLESS, **given, **limits}}


def count_weights(options: ModelConfig, sizes: Vocabularies) -> int:
    """Number of trained weights, shared ones once; no memory is taken for them."""
    import torch

    from mirada.models import build_model

    with torch.device("meta"):
        model = build_model(options, source_vocab=sizes.source, target_vocab=sizes.target)
    return sum(weights.numel() for weights in model.parameters())


def match_weights(config: Config, goal: int, sizes: Vocabularies) -> Config:
    """Change the width so that the system has `goal` weights within 5 %: of the Transformer's model, else of the state.

    Raises ConfigError if no width does.
    """
    counts: dict[int, int] = {}
    step = _step(config.model)
    low, high = 1, WIDEST // step
    while low < high:  # the first width that has at least the goal
        middle = (low + high) // 2
        counts[middle] = count_weights(with_width(config, middle * step).model, sizes)
        low, high = (middle + 1, high) if counts[middle] < goal else (low, middle)
    for near in (low, max(1, low - 1)):
        counts[near] = count_weights(with_width(config, near * step).model, sizes)
    best = min(counts, key=lambda multiple: abs(counts[multiple] - goal))
    if abs(counts[best] - goal) > TOLERANCE * goal:
        raise ConfigError(
            f"no width gives {describe(config.model)} {goal:,} weights within 5 % (the nearest: {counts[best]:,} at "
            f"width {best * step}); choose other sizes, or do without --match-parameters"
        )
    return with_width(config, best * step)


def _step(model: ModelConfig) -> int:
    """What the width must be a multiple of: the heads, or two directions that share it."""
    return model.num_heads if model.decoder == "transformer" else 2


def with_width(config: Config, width: int) -> Config:
    """The same options at another width, with what hangs on it in proportion."""
    model = config.model
    if model.decoder == "transformer":
        ff_size = max(1, round(model.ff_size * width / model.embedding_dim))
        changes = {"embedding_dim": width, "ff_size": ff_size}
    elif model.tied_softmax and not model.has_maxout:
        changes = {"embedding_dim": width, "hidden_size": width}
    else:
        changes = {"hidden_size": width}
    return parse({**config.model_dump(), "model": {**model.model_dump(), **changes}})


def describe(model: ModelConfig) -> str:
    """A system's name from its options."""
    score = f" ({model.score_name})" if model.decoder in ("bahdanau", "luong") else ""
    cell = "" if model.decoder == "transformer" else f" {model.rnn_type}"
    return f"{model.decoder}{score}{cell}"


def facts(model: ModelConfig) -> dict[str, str]:
    """What a reader wants to know of a system's make, with the values in force; other systems may lack some."""
    shared = {"dropout": f"{model.dropout:g}", "layers": f"{model.enc_layers}+{model.dec_layers}"}
    if model.decoder == "transformer":
        width = {"width": str(model.embedding_dim), "embedding": str(model.embedding_dim)}
        return {**width, "heads": str(model.num_heads), "feed-forward": str(model.ff_size), **shared}
    found = {"cell": model.rnn_type, "width": str(model.hidden_size), "embedding": str(model.embedding_dim), **shared}
    size = model.direction_size
    found["encoder"] = f"two directions of {size}" if model.both_directions else f"one direction of {size}"
    found["source order"] = "reversed" if model.reverse_source else "as written"
    if model.decoder in ("bahdanau", "luong"):
        found["score"] = str(model.score_name)
    if model.decoder == "luong":
        found["input feeding"] = "yes" if model.feeds_input else "no"
    return found


def equal_and_different(makes: Sequence[Mapping[str, str]]) -> tuple[dict[str, str], list[str]]:
    """Part what all systems share (with its value) from the names of what differs, or what only some have."""
    names = list(dict.fromkeys(_names(makes)))
    values = {name: {make.get(name, "–") for make in makes} for name in names}
    equal = {name: found.pop() for name, found in values.items() if len(found) == 1}
    return equal, [name for name in names if name not in equal]


def _names(makes: Sequence[Mapping[str, str]]) -> Iterator[str]:
    for make in makes:
        yield from make
