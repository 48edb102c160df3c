"""Kinds of numbers that options hold, with bounds beyond all use.

A model folder from elsewhere cannot ask for a machine's whole memory, or for a day of loops, before anyone looks at it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST = 100_000_000
LONGEST = 100_000

Width = Annotated[int, Field(ge=1, le=1 << 16)]
Depth = Annotated[int, Field(ge=1, le=256)]
Beam = Annotated[int, Field(ge=1, le=1000)]
Length = Annotated[int, Field(ge=0, le=LONGEST)]
SomeLength = Annotated[int, Field(ge=1, le=LONGEST)]
Count = Annotated[int, Field(ge=1, le=MOST)]
VocabSize = Annotated[int, Field(ge=8, le=MOST)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63)]
Rate = Annotated[float, Field(ge=0, lt=1)]


class Block(BaseModel):
    """A group of options: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
