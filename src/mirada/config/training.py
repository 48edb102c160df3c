"""Options of training: how long, how fast, and when to stop."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from mirada.config.types import Block, Count, CountOrAuto, Rate, Seed


class TrainingConfig(Block):
    """How long, how fast, and when to stop."""

    epochs: int | None = Field(
        None, ge=1, description="passes over the pairs, at most (default: 20, more for few pairs, or for max_updates)"
    )
    max_updates: int | None = Field(None, ge=1, description="stop after so many updates")
    max_minutes: float | None = Field(
        None, gt=0, description="stop after so many minutes, validation and saving included"
    )
    batch_size: CountOrAuto = Field(
        64,
        description="size of a batch, in sentences or in tokens (unless given: by the pairs); auto: as many tokens as "
        "suit the pairs and the memory",
    )
    batch_type: Literal["sentence", "token"] = Field(
        "sentence", description="what batch_size counts (tokens: padded, the longer side)"
    )
    accum_count: Count = Field(1, description="batches whose gradients make one update together, by their tokens")
    optimizer: Literal["adam", "adamw"] = Field(
        "adam", description="Kingma & Ba 2015; AdamW decouples the weight decay"
    )
    learning_rate: float = Field(1e-3, gt=0, description="peak learning rate")
    weight_decay: float = Field(0.0, ge=0, description="weight decay")
    adam_betas: tuple[Rate, Rate] = Field((0.9, 0.98), description="Adam's two decay rates")
    scheduling: Literal["constant", "inverse_sqrt", "cosine", "linear", "plateau"] = Field(
        "inverse_sqrt", description="learning rate after the warm-up (unless given, with max_minutes: linear)"
    )
    warmup_steps: int | None = Field(
        None, ge=0, description="updates in which the rate rises from zero (default: 400, or a tenth of the plan)"
    )
    decrease_factor: float = Field(0.5, gt=0, lt=1, description="plateau: factor when dev has not improved")
    plateau_patience: int = Field(1, ge=0, description="plateau: validations without improvement before the rate falls")
    clip_grad_norm: float = Field(1.0, gt=0, description="largest norm of the whole gradient")
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="weight of the uniform distribution in the loss")
    coverage_weight: float = Field(
        1.0, ge=0, description="with coverage: weight of the loss on attending twice to the same words"
    )
    ema_decay: float = Field(0.0, ge=0, lt=1, description="evaluate and keep a moving average of the weights (0: off)")
    valid_every: int | None = Field(
        None, ge=1, description="updates between validations (default: each epoch, or longer)"
    )
    valid_metrics: tuple[str, ...] = Field(
        (), description="metrics of dev output besides the loss, such as bleu or wer (unless given: by the targets)"
    )
    valid_sentences: int = Field(200, ge=1, description="dev sources translated for them, drawn by seed")
    early_stopping_metric: str = Field(
        "loss",
        description="what 'best' means: loss, or one of valid_metrics (default: exact for symbols, chrf for texts)",
    )
    patience: int = Field(5, ge=1, description="validations without improvement before training stops")
    save_every: int | None = Field(None, ge=1, description="updates between resumable saves (default: each validation)")
    keep_best: int = Field(0, ge=0, le=1000, description="also keep the N best models, in MODEL_DIR/kept, to average")
    init_from: str | None = Field(None, description="begin with the weights of this model, in a folder of its own")
    init_vocab: Literal["keep", "map"] = Field(
        "keep", description="with init_from: keep its vocabularies, or map a new one's pieces to its rows"
    )
    freeze: tuple[Literal["encoder", "decoder", "embeddings", "output"], ...] = Field(
        (), description="parts that stay as they are: encoder, decoder, embeddings, output"
    )
    source_embeddings: str | None = Field(None, description="vectors to begin with (.vec text: word2vec, GloVe, .gz)")
    target_embeddings: str | None = Field(None, description="the same for the target's words")
    seed: Seed = Field(1, description="of everything random")
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    precision: Literal["float32", "bf16", "auto"] = Field(
        "float32",
        description="of the products: bf16 rounds their inputs to bfloat16; auto: bf16 where the device is fast at it",
    )
    tensorboard: bool = Field(False, description="also write TensorBoard events (pip install 'mirada[tracking]')")

    def idle(self) -> dict[str, str]:
        """The options that are set and do nothing beside the others, each with the reason."""
        reasons = {}
        if self.scheduling != "plateau":
            reason = f"with scheduling {self.scheduling}; it is for scheduling plateau"
            reasons = dict.fromkeys(("decrease_factor", "plateau_patience"), reason)
        if self.init_from is None:
            reasons["init_vocab"] = "without init_from"
        return {name: reason for name, reason in reasons.items() if self.changes(name)}
