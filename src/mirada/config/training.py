"""Options of training: how long, how fast, and when to stop."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mirada.config.types import Block, Count, Rate, Seed


class TrainingConfig(Block):
    """How long, how fast, and when to stop."""

    epochs: int = Field(20, ge=1, description="passes over the training pairs, at most")
    max_updates: int | None = Field(None, ge=1, description="stop after so many updates")
    max_minutes: float | None = Field(None, gt=0, description="stop after so many minutes of training")
    batch_size: Count = Field(64, description="size of a batch, in sentences or in tokens")
    batch_type: Literal["sentence", "token"] = Field(
        "sentence", description="what batch_size counts (tokens: padded, the longer side)"
    )
    optimizer: Literal["adam", "adamw"] = Field(
        "adam", description="Kingma & Ba 2015; AdamW decouples the weight decay"
    )
    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate")
    weight_decay: float = Field(0.0, ge=0, description="weight decay")
    adam_betas: tuple[Rate, Rate] = Field((0.9, 0.98), description="Adam's two decay rates")
    scheduling: Literal["constant", "inverse_sqrt", "cosine", "linear", "plateau"] = Field(
        "inverse_sqrt", description="learning rate after the warm-up"
    )
    warmup_steps: int = Field(400, ge=0, description="updates in which the rate rises from zero")
    decrease_factor: float = Field(0.5, gt=0, lt=1, description="plateau: factor when dev has not improved")
    plateau_patience: int = Field(1, ge=0, description="plateau: validations without improvement before the rate falls")
    clip_grad_norm: float = Field(1.0, gt=0, description="largest norm of the whole gradient")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="weight of the uniform distribution in the loss")
    coverage_weight: float = Field(
        1.0, ge=0, description="with coverage: weight of the loss on attending twice to the same words"
    )
    ema_decay: float = Field(0.0, ge=0, lt=1, description="evaluate and keep a moving average of the weights (0: off)")
    valid_every: int | None = Field(None, ge=1, description="updates between validations (default: each epoch)")
    valid_metrics: tuple[str, ...] = Field(
        (), description="metrics of greedy dev output besides the loss, such as bleu or wer"
    )
    valid_sentences: int = Field(500, ge=1, description="dev sentences translated for them")
    early_stopping_metric: str = Field("loss", description="what 'best' means: loss, or one of valid_metrics")
    patience: int = Field(5, ge=1, description="validations without improvement before training stops")
    save_every: int | None = Field(None, ge=1, description="updates between resumable saves (default: each validation)")
    seed: Seed = Field(1, description="of everything random")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    tensorboard: bool = Field(False, description="also write TensorBoard events (pip install 'mirada[tracking]')")

    def idle(self) -> dict[str, str]:
        """The options that are set and do nothing with this schedule, each with the reason."""
        if self.scheduling == "plateau":
            return {}
        reason = f"with scheduling {self.scheduling}; it is for scheduling plateau"
        return {name: reason for name in ("decrease_factor", "plateau_patience") if self.changes(name)}
