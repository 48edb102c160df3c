"""Kinds of numbers that options hold, with bounds beyond all use.

A model folder from elsewhere cannot ask for a machine's whole memory, or for a day of loops, before anyone looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic_core.core_schema import CoreSchema, with_info_wrap_validator_function

from mirada.errors import ConfigError, suggestion

MOST = 100_000_000
LONGEST = 100_000

Width = Annotated[int, Field(ge=1, le=1 << 16)]
Depth = Annotated[int, Field(ge=1, le=256)]
Beam = Annotated[int, Field(ge=1, le=1000)]
Length = Annotated[int, Field(ge=0, le=LONGEST)]
SomeLength = Annotated[int, Field(ge=1, le=LONGEST)]
Count = Annotated[int, Field(ge=1, le=MOST)]
CountOrAuto = Annotated[Count | None, BeforeValidator(lambda value: None if value == "auto" else value)]  # None: auto
VocabSize = Annotated[int, Field(ge=8, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class Block(BaseModel):
    """A group of options: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def idle(self) -> dict[str, str]:
        """The options that are set and do nothing beside the others, each with the reason."""
        return {}

    def without_idle(self) -> Self:
        """The same options with those that do nothing at their defaults."""
        return self.model_copy(update={name: type(self).model_fields[name].default for name in self.idle()})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Around all checks of the block, those of its own class too: what is wrong is told in a line."""

        def in_a_line(values: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
            try:
                return check(values)
            except ValidationError as error:
                if info.context is not None:  # who gives one words the error
                    raise
                raise ConfigError(complaint(error, lambda path: suggestion(path[-1], cls.model_fields))) from None

        return with_info_wrap_validator_function(in_a_line, handler(source))

    @model_validator(mode="after")
    def _nothing_idle(self, info: ValidationInfo) -> Self:
        if not (info.context or {}).get("stored"):  # what older versions wrote into a model folder did no harm
            for name, reason in self.idle().items():
                raise ValueError(f"{name} {written(getattr(self, name))} does nothing {reason}")
        return self

    def changes(self, name: str) -> bool:
        """Whether an option is not at its default."""
        return bool(getattr(self, name) != type(self).model_fields[name].default)


def written(value: Any) -> str:
    """An option's value as its user writes it."""
    if isinstance(value, list | tuple):
        return ",".join(map(written, value))
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def complaint(error: ValidationError, meant: Callable[[list[str]], str]) -> str:
    """The first thing that pydantic has to say, in one line; `meant` says what an unknown name stands for."""
    first = error.errors()[0]
    path = [str(part) for part in first["loc"]]
    name = ".".join(path)
    if first["type"] == "extra_forbidden":
        return f"unknown option {shortened(name)!r}{meant(path)}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return message
    return f"{shortened(name)}: {message[0].lower()}{message[1:]} (got {shortened(_shown(first['input']))})"


def _shown(value: object) -> str:
    try:
        return repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "a number of thousands of digits"


def shortened(text: str, *, most: int = 80) -> str:
    """What a file holds, in so few characters that the message stays a line."""
    return text if len(text) <= most else text[: most - 3] + "…"
