"""Every option of mirada, in frozen blocks, checked once: a block a file. Files of options: configfile.py.

The same fields make the YAML keys, the command line's flags and their help, so a default is written once, there.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from mirada.config.data import DataConfig, check_copying
from mirada.config.model import ModelConfig
from mirada.config.search import SearchConfig
from mirada.config.training import TrainingConfig
from mirada.config.types import Block

__all__ = ["Block", "Config", "DataConfig", "ModelConfig", "SearchConfig", "TrainingConfig"]


class Config(Block):
    """All options of one model."""

    model_dir: str = Field("runs/model", description="folder of the model")
    data: DataConfig = Field(default_factory=DataConfig, description=DataConfig.__doc__)
    model: ModelConfig = Field(default_factory=ModelConfig, description=ModelConfig.__doc__)
    training: TrainingConfig = Field(default_factory=TrainingConfig, description=TrainingConfig.__doc__)
    search: SearchConfig = Field(default_factory=SearchConfig, description=SearchConfig.__doc__)

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        if self.model.tied_embeddings and not self.data.share_vocab:
            raise ValueError("tied_embeddings true needs share_vocab true (one vocabulary for both sides)")
        kinds = {self.data.source_tokenizer, self.data.target_tokenizer}
        if self.data.share_vocab and len(kinds) > 1:
            raise ValueError(
                "share_vocab true needs source_tokenizer and target_tokenizer to be the same "
                f"(got {self.data.source_tokenizer} and {self.data.target_tokenizer})"
            )
        if not self.model.coverage and self.training.coverage_weight != 1:
            raise ValueError(
                f"coverage_weight {self.training.coverage_weight:g} does nothing without coverage; set coverage true"
            )
        if self.model.copy_attn:
            check_copying(self.data)
        metric = self.training.early_stopping_metric
        if metric != "loss" and metric not in self.training.valid_metrics:
            raise ValueError(
                f"early_stopping_metric {metric} is not computed; use loss, or name {metric} in valid_metrics too"
            )
        return self
