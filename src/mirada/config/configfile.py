"""Options in and out: YAML files, overrides, and one clear line for each mistake in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from mirada.config.options import Block, Config, DataConfig, ModelConfig, SearchConfig, TrainingConfig
from mirada.config.types import complaint, shortened
from mirada.errors import ConfigError, suggestion
from mirada.files import open_regular

MOST_BYTES, DEEPEST = 100_000, 20
BLOCKS: Mapping[str, type[Block]] = {
    "data": DataConfig,
    "model": ModelConfig,
    "training": TrainingConfig,
    "search": SearchConfig,
}


def parse(values: Mapping[str, Any], *, where: str = "options", stored: bool = False) -> Config:
    """Build the checked options from nested values.

    Raises ConfigError, one line, for an unknown key (with the nearest valid name), a wrong type, a contradiction, or
    an option that does nothing beside the others; `stored` ones, of a model folder, are then left out.
    """
    try:
        config = Config.model_validate(values, context={"stored": stored})
        return config.model_copy(update={name: getattr(config, name).without_idle() for name in BLOCKS})
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error)}") from None


def by_block(options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Options by plain names, nested as `parse` takes them: {"decoder": "luong"} → {"model": {"decoder": "luong"}}.

    Paths become text. Raises ConfigError for an unknown name, naming the nearest.
    """
    homes, nested = {leaf: top for top, leaf in leaves()}, dict[str, dict[str, Any]]()
    for name, value in options.items():
        if name not in homes:
            raise ConfigError(f"unknown option {shortened(str(name))!r}{suggestion(str(name), homes)}")
        nested.setdefault(homes[name], {})[name] = str(value) if isinstance(value, PurePath) else value
    return nested


def load(path: Path, *, stored: bool = False) -> Config:
    """Read options from a YAML file (`stored` in a model folder); raises ConfigError naming the file."""
    return parse(load_yaml(path), where=str(path), stored=stored)


def load_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping of plain values; raises ConfigError naming the file and, for bad syntax, the line.

    Aliases are not read (a few lines of them can stand for more than any memory), nor an option that stands twice.
    """
    try:
        values = _construct(_read(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = shortened(getattr(error, "problem", None) or "unreadable", most=200)
        raise ConfigError(f"{path}{line}: not valid YAML ({problem})") from None
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # a value not of the kind that it claims
        raise ConfigError(f"{path}: not valid YAML (a value cannot be read: {shortened(str(error))})") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: expected a mapping of options, got {type(values).__name__}")
    return cast(dict[str, Any], values)


def _read(path: Path) -> str:
    try:
        with open_regular(path) as stream:
            content = stream.read(MOST_BYTES + 1)
        if len(content) <= MOST_BYTES:
            return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    raise ConfigError(f"{path}: more than {MOST_BYTES:,} bytes, which no file of options has")


def _construct(text: str) -> Any:
    _check_events(text)
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_keys(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _check_events(text: str) -> None:
    """Raise MarkedYAMLError for an alias and for what is nested deeper than any options, before it is built."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        problem = "nested too deep for options" if depth > DEEPEST else ""
        if isinstance(event, yaml.AliasEvent):
            problem = "an alias (*name); write the value out"
        if problem:
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=cast(Any, event.start_mark))


def _check_keys(node: yaml.Node) -> None:
    """Raise MarkedYAMLError for a key that stands twice in a mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    keys: set[str] = set()
    for key, value in pairs:
        if isinstance(key, yaml.ScalarNode) and key.value in keys:
            raise yaml.MarkedYAMLError(problem=f"{shortened(key.value)!r} stands twice", problem_mark=key.start_mark)
        keys.add(str(key.value))
        _check_keys(value)


def dump(config: Block) -> str:
    """Write options as YAML, in the order of the fields."""
    values = config.model_dump(mode="json")
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    # The library writes these line ends of Unicode bare, where they would be read back as blanks: escape them.
    if set(text) & set("\x85\u2028\u2029\ufeff"):
        text = yaml.safe_dump(values, sort_keys=False)
    return text


BlockType = TypeVar("BlockType", bound=Block)


def changed(block: BlockType, values: Mapping[str, Any]) -> BlockType:
    """Return a block with some values changed, checked again; raises ConfigError."""
    try:
        return type(block).model_validate({**block.model_dump(), **values}, context={})
    except ValidationError as error:
        raise ConfigError(explain(error)) from None


def explain(error: ValidationError, names: list[str] | None = None) -> str:
    """Turn pydantic's first complaint into one line; `names` are the valid ones of other options than a model's."""
    return complaint(error, _nearest if names is None else lambda path: suggestion(path[-1], names))


def _nearest(path: list[str]) -> str:
    """What a model's unknown option may have been meant to be."""
    homes = [f"{top}.{leaf}" for top, leaf in leaves() if leaf == path[-1]]  # right, but in the wrong block
    return f"; did you mean {homes[0]!r}?" if homes else suggestion(path[-1], known_names(path[:-1]))


def known_names(path: list[str]) -> list[str]:
    """List the options of the block at `path`; of all blocks at the top, so that a misplaced name is found too."""
    block: type[BaseModel] = BLOCKS.get(path[0], Config) if path else Config
    names = list(block.model_fields)
    if not path:
        names += [f"{top}.{leaf}" for top, leaf in leaves()]
    return names


def leaves() -> list[tuple[str, str]]:
    """List every option as (block, name); a name stands in one block only."""
    return [(top, leaf) for top, block in BLOCKS.items() for leaf in block.model_fields]
