"""Every option of mirada, in frozen blocks, checked once. Files of options: configfile.py.

The same fields make the YAML keys, the command line's flags and their help, so a default is written once, here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mirada.config.types import LONGEST, MOST, Beam, Count, Depth, Length, Rate, Seed, SomeLength, VocabSize, Width

Decoder = Literal["classic", "bahdanau", "luong", "transformer"]
Score = Literal["additive", "dot", "scaled_dot", "general", "concat"]
TokenKind = Literal["auto", "bpe", "unigram", "word", "char"]
DEFAULT_SCORE: Mapping[str, Score | None] = {
    "classic": None,
    "bahdanau": "additive",
    "luong": "general",
    "transformer": "scaled_dot",
}
RECURRENT = ("classic", "bahdanau", "luong")
# Options that act with some decoders only: elsewhere they may keep their default, nothing else.
OWNERS: Mapping[str, tuple[str, ...]] = {
    "feed_context": ("classic",),
    "readout": ("bahdanau",),
    "input_feeding": ("luong",),
    "attention_size": ("bahdanau", "luong"),
    "norm": ("transformer",),
    "bidirectional": RECURRENT,
    "reverse_source": RECURRENT,
    "recurrent_dropout": RECURRENT,
    "encoder_hidden_size": RECURRENT,
}
ALIASES = {"score": {"mlp": "additive", "bahdanau": "additive"}}


class Block(BaseModel):
    """A group of options: frozen, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class DataConfig(Block):
    """Where the pairs are and how they become tokens."""

    src: str | None = Field(None, description="source side of the training pairs, one sentence a line (.gz, .xz too)")
    tgt: str | None = Field(None, description="target side, line by line with --src")
    tsv: str | None = Field(None, description="training pairs as tab-separated columns, instead of --src/--tgt")
    jsonl: str | None = Field(None, description="training pairs as JSON lines, instead of --src/--tgt")
    dev_src: str | None = Field(None, description="source side of the development pairs")
    dev_tgt: str | None = Field(None, description="target side of the development pairs")
    dev_tsv: str | None = Field(None, description="development pairs as tab-separated columns")
    dev_jsonl: str | None = Field(None, description="development pairs as JSON lines")
    dev_size: Count = Field(1000, description="pairs split off by seed when no dev set is given (at most a tenth)")
    source_column: Count = Field(1, description="TSV column of the source, counted from 1")
    target_column: Count = Field(2, description="TSV column of the target, counted from 1")
    source_key: str = Field("source", description="JSON key of the source")
    target_key: str = Field("target", description="JSON key of the target")
    tokenizer: TokenKind = Field("auto", description="both sides' tokens: auto, bpe, unigram, word, char")
    source_tokenizer: TokenKind | None = Field(None, description="the source's tokens, where they differ")
    target_tokenizer: TokenKind | None = Field(None, description="the target's tokens, where they differ")
    vocab_size: VocabSize | None = Field(
        None, description="most entries of a vocabulary (default: subwords by the number of pairs, up to 8,000)"
    )
    vocab_min_freq: Count = Field(1, description="words and characters seen less often become <unk>")
    share_vocab: bool = Field(False, description="one vocabulary learned on both sides")
    normalize: Literal["nfc", "nfkc", "none"] = Field("nfc", description="Unicode form, in training and in use")
    max_length: int = Field(256, ge=2, le=LONGEST, description="pairs with more tokens on a side are left out, counted")


class ModelConfig(Block):
    """Which of the systems, and its sizes."""

    decoder: Decoder = Field("luong", description="flow: classic, bahdanau, luong or transformer")
    score: Score | None = Field(None, description="additive, dot, scaled_dot, general or concat (default: the paper's)")
    rnn_type: Literal["lstm", "gru"] = Field("lstm", description="recurrent cell of encoder and decoder")
    embedding_dim: Width = Field(256, description="width of the embeddings; the Transformer's d_model")
    hidden_size: Width = Field(512, description="width of the recurrent decoder's state")
    encoder_hidden_size: Width | None = Field(
        None,
        description="width of one encoder direction (default: so that all directions together are hidden_size)",
    )
    attention_size: Width | None = Field(
        None, description="width of the additive and concat scores' hidden layer (default: hidden_size)"
    )
    enc_layers: Depth = Field(1, description="encoder layers")
    dec_layers: Depth = Field(1, description="decoder layers")
    bidirectional: bool | None = Field(
        None, description="read the source in both directions (default: no for classic, yes for the others)"
    )
    reverse_source: bool = Field(False, description="read the source last word first (Sutskever et al. 2014)")
    feed_context: bool = Field(
        False, description="classic: the context enters every step and the readout (Cho et al. 2014)"
    )
    input_feeding: bool | None = Field(
        None, description="luong: the attentional state enters the next step (default: yes)"
    )
    readout: Literal["state", "deep"] | None = Field(
        None, description="bahdanau: predict from s_t, or from a maxout of s_t, y_{t-1}, c_t (default: deep)"
    )
    num_heads: Width = Field(4, description="transformer: attention heads")
    ff_size: Width = Field(1024, description="transformer: width of the feed-forward layer")
    norm: Literal["pre", "post"] = Field("pre", description="transformer: layer norm before or after each part")
    tied_softmax: bool = Field(False, description="the output layer is the target embedding")
    tied_embeddings: bool = Field(False, description="source and target share one embedding (needs share_vocab)")
    dropout: float = Field(0.2, ge=0, lt=1, description="between layers and before the output")
    embedding_dropout: float | None = Field(None, ge=0, lt=1, description="on embeddings (default: as dropout)")
    recurrent_dropout: float = Field(
        0.0, ge=0, lt=1, description="on the recurrent state, one mask a sentence (Gal & Ghahramani 2016)"
    )
    word_dropout: float = Field(0.0, ge=0, lt=1, description="whole tokens' embeddings set to zero")

    @property
    def score_name(self) -> Score | None:
        """The score in force: the one given, else the paper's for this flow."""
        return self.score or DEFAULT_SCORE[self.decoder]

    @property
    def both_directions(self) -> bool:
        """Whether a recurrent encoder reads both ways."""
        return self.decoder != "classic" if self.bidirectional is None else self.bidirectional

    @property
    def feeds_input(self) -> bool:
        """Whether Luong's attentional state enters the next step."""
        return self.input_feeding is not False

    @property
    def has_maxout(self) -> bool:
        """Whether the readout is a maxout of state, previous word and context."""
        return (self.decoder == "bahdanau" and self.readout != "state") or self.feed_context

    @property
    def embedding_drop(self) -> float:
        """Dropout on embeddings in force."""
        return self.dropout if self.embedding_dropout is None else self.embedding_dropout

    @property
    def direction_size(self) -> int:
        """Width of one encoder direction."""
        return self.encoder_hidden_size or max(1, self.hidden_size // (2 if self.both_directions else 1))

    @property
    def memory_size(self) -> int:
        """Width `H` of the encoder's states."""
        if self.decoder == "transformer":
            return self.embedding_dim
        return self.direction_size * (2 if self.both_directions else 1)

    @model_validator(mode="before")
    @classmethod
    def _aliases(cls, values: Any) -> Any:
        if isinstance(values, dict):
            return {
                key: ALIASES.get(key, {}).get(value, value) if isinstance(value, str) else value
                for key, value in values.items()
            }
        return values

    @model_validator(mode="after")
    def _consistent(self) -> ModelConfig:
        check_model(self)
        return self


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


class SearchConfig(Block):
    """How output is searched for."""

    beam_size: Beam = Field(5, description="hypotheses kept a sentence; 1 is greedy")
    n_best: Count = Field(1, description="outputs a sentence, at most beam_size (or samples)")
    alpha: float = Field(0.6, ge=0, description="length penalty ((5 + n) / 6)^α of Wu et al. 2016; 0: none")
    max_output_length: SomeLength | None = Field(
        None, description="most tokens of an output (default: per sentence, by max_length_ratio)"
    )
    max_length_ratio: float = Field(2.0, gt=0, le=1000, description="default limit: this × source tokens + 10")
    max_input_length: SomeLength = Field(1000, description="longer sources are cut to so many tokens, with a warning")
    replace_unk: bool = Field(False, description="put the attended source word in place of <unk>")
    min_output_length: Length = Field(0, description="fewest tokens of an output")
    no_repeat_ngram_size: Length = Field(0, description="never repeat an n-gram of this size; 0: off")
    sample: bool = Field(False, description="draw outputs at random instead of searching")
    temperature: float = Field(1.0, gt=0, description="sampling: below 1 sharper, above 1 flatter")
    top_k: int = Field(0, ge=0, le=MOST, description="sampling: only the k likeliest; 0: all")
    top_p: float = Field(1.0, gt=0, le=1, description="sampling: only the likeliest that add up to p")
    sample_seed: Seed = Field(1, description="sampling: seed")

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
        metric = self.training.early_stopping_metric
        if metric != "loss" and metric not in self.training.valid_metrics:
            raise ValueError(
                f"early_stopping_metric {metric} is not computed; use loss, or name {metric} in valid_metrics too"
            )
        return self


def check_model(model: ModelConfig) -> None:
    """Raise ValueError for two options of the model that contradict each other, naming both and what is valid."""
    check_score(model)
    if model.decoder == "transformer" and model.embedding_dim % model.num_heads:
        raise ValueError(f"embedding_dim {model.embedding_dim} is not a multiple of num_heads {model.num_heads}")
    for option, owners in OWNERS.items():
        value = getattr(model, option)
        if model.decoder not in owners and value != ModelConfig.model_fields[option].default:
            raise ValueError(
                f"{option} {str(value).lower()} does nothing with decoder {model.decoder}; "
                f"it is for decoder {' or '.join(owners)}"
            )
    widths = (model.embedding_dim, model.hidden_size)
    if model.tied_softmax and model.decoder != "transformer" and not model.has_maxout and widths[0] != widths[1]:
        raise ValueError(
            f"tied_softmax true needs embedding_dim equal to hidden_size with decoder {model.decoder} "
            f"(got {widths[0]} and {widths[1]}); bahdanau with readout deep has no such need"
        )


def check_score(model: ModelConfig) -> None:
    """Raise ValueError if the score does not fit the flow or the sizes."""
    advice = "leave score out, or use decoder bahdanau or luong"
    if model.decoder == "classic" and model.score is not None:
        raise ValueError(f"score {model.score} with decoder classic, which has no attention; {advice}")
    if model.decoder == "transformer" and model.score_name != "scaled_dot":
        raise ValueError(f"score {model.score} with decoder transformer, which uses scaled_dot; {advice}")
    recurrent = model.decoder in ("bahdanau", "luong")
    if recurrent and model.score_name in ("dot", "scaled_dot") and model.memory_size != model.hidden_size:
        raise ValueError(
            f"score {model.score_name} needs encoder states as wide as hidden_size "
            f"(got {model.memory_size} and {model.hidden_size}); set encoder_hidden_size to hidden_size divided by the "
            "directions, or use score general, additive or concat"
        )
