"""Options of the search for output."""

from __future__ import annotations

from pydantic import Field, model_validator

from mirada.config.types import MOST, Beam, Block, Count, Length, Seed, SomeLength


class SearchConfig(Block):
    """How output is searched for."""

    beam_size: Beam = Field(5, description="hypotheses kept a sentence; 1 is greedy")
    n_best: Count = Field(1, description="outputs a sentence, at most beam_size (or samples)")
    alpha: float = Field(1.0, ge=0, le=5, description="length penalty ((5 + n) / 6)^α of Wu et al. 2016; 0: none")
    exact_stop: bool = Field(
        False, description="beam search: stop when no output can win any more, not when none can that ends next"
    )
    max_output_length: SomeLength | None = Field(
        None, description="most tokens of an output (default: per sentence, by max_length_ratio)"
    )
    max_length_ratio: float | None = Field(
        None, gt=0, le=1000, description="default limit: this × source tokens + max_length_offset (learned, else 2)"
    )
    max_length_offset: Length | None = Field(
        None, description="default limit: max_length_ratio × source tokens + this (learned, else 10)"
    )
    max_input_length: SomeLength = Field(1000, description="longer sources are cut to so many tokens, with a warning")
    replace_unk: bool = Field(False, description="put the attended source word in place of <unk>")
    min_output_length: Length = Field(0, description="fewest tokens of an output")
    no_repeat_ngram_size: Length = Field(0, description="never repeat an n-gram of this size; 0: off")
    sample: bool = Field(False, description="draw outputs at random instead of searching")
    temperature: float = Field(1.0, gt=0, description="sampling: below 1 sharper, above 1 flatter")
    top_k: int = Field(0, ge=0, le=MOST, description="sampling: only the k likeliest; 0: all")
    top_p: float = Field(1.0, gt=0, le=1, description="sampling: only the likeliest that add up to p")
    sample_seed: Seed = Field(1, description="sampling: seed")

    def idle(self) -> dict[str, str]:
        """The options that are set and do nothing with this kind of search, each with the reason."""
        if self.sample:
            return {}
        names = ("temperature", "top_k", "top_p", "sample_seed")
        return {name: "without sampling; add sample true" for name in names if self.changes(name)}

    @model_validator(mode="after")
    def _consistent(self) -> SearchConfig:
        if not self.sample and self.n_best > self.beam_size:
            raise ValueError(
                f"n_best {self.n_best} is larger than beam_size {self.beam_size}; n_best must be 1 to beam_size"
            )
        if self.max_output_length is not None and self.min_output_length > self.max_output_length:
            raise ValueError(
                f"min_output_length {self.min_output_length} is larger than max_output_length {self.max_output_length}"
            )
        return self
