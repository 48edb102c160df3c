"""Options of the model: which of the systems, its sizes, and what fits together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from mirada.config.types import Block, Depth, Width

Decoder = Literal["classic", "bahdanau", "luong", "transformer"]
Score = Literal["additive", "dot", "scaled_dot", "general", "concat"]
DEFAULT_SCORE: Mapping[str, Score | None] = {
    "classic": None,
    "bahdanau": "additive",
    "luong": "general",
    "transformer": "scaled_dot",
}
MOST_SEGMENTS = 64
RECURRENT = ("classic", "bahdanau", "luong")
# Options that act with some decoders only: elsewhere they may keep their default, nothing else.
OWNERS: Mapping[str, tuple[str, ...]] = {
    "feed_context": ("classic",),
    "readout": ("bahdanau",),
    "input_feeding": ("classic", "luong"),
    "attentional": ("luong",),
    "attentional_bias": ("luong",),
    "attention_bias": ("bahdanau", "luong"),
    "bridge": ("classic", "luong"),
    "bridge_from": ("classic", "luong"),
    "attention_size": ("bahdanau", "luong"),
    "attention_window": ("bahdanau", "luong"),
    "window": ("bahdanau", "luong"),
    "coverage": ("bahdanau", "luong"),
    "copy_attn": ("bahdanau", "luong", "transformer"),
    "copy_head": ("transformer",),
    "norm": ("transformer",),
    "num_heads": ("transformer",),
    "ff_size": ("transformer",),
    "activation": ("transformer",),
    "norm_eps": ("transformer",),
    "position_encoding": ("transformer",),
    "first_position": ("transformer",),
    "rnn_type": RECURRENT,
    "hidden_size": RECURRENT,
    "embedding_dropout": RECURRENT,
    "bidirectional": RECURRENT,
    "reverse_source": RECURRENT,
    "recurrent_dropout": RECURRENT,
    "encoder_hidden_size": RECURRENT,
}
HIDDEN_LAYER = ("additive", "concat")  # the scores with one, attention_size wide
OF_HIDDEN_LAYER = ("attention_size", "attention_bias", "coverage")
ALIASES = {"score": {"mlp": "additive", "bahdanau": "additive"}, "activation": {"silu": "swish"}}


class ModelConfig(Block):
    """Which of the systems, and its sizes."""

    decoder: Decoder = Field("luong", description="flow: classic, bahdanau, luong or transformer")
    score: Score | None = Field(None, description="additive, dot, scaled_dot, general or concat (default: the paper's)")
    rnn_type: Literal["lstm", "gru"] = Field("lstm", description="recurrent cell of encoder and decoder")
    embedding_dim: Width = Field(
        256, description="width of the embeddings; the Transformer's d_model (unless given: by the pairs)"
    )
    hidden_size: Width = Field(512, description="width of the recurrent decoder's state (unless given: by the pairs)")
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
        None,
        description="luong: the attentional state enters the next step (default: yes); classic: the top layer's (no)",
    )
    attentional: Literal["tanh", "linear"] = Field(
        "tanh", description="luong: the attentional state is tanh(W_c [c; s]), or the product as it is"
    )
    attentional_bias: bool = Field(False, description="luong: the attentional state has a bias: W_c [c; s] + b")
    attention_bias: bool = Field(False, description="additive, concat: a bias before the score's tanh")
    bridge: Literal["copy", "linear", "tanh", "relu"] | None = Field(
        None,
        description="classic, luong: the decoder starts from the encoder's last state as it is, or from W h + b, from "
        "tanh or max(0, ·) of that, the memory cell likewise (default: as it is, where the widths fit, or else tanh of "
        "h alone)",
    )
    bridge_from: Literal["layers", "top"] = Field(
        "layers", description="bridge: each layer and the cell start from their like, or all from the top layer's h"
    )
    readout: Literal["state", "deep"] | None = Field(
        None, description="bahdanau: predict from s_t, or from a maxout of s_t, y_{t-1}, c_t (default: deep)"
    )
    segments: int | None = Field(
        None,
        ge=0,
        le=MOST_SEGMENTS,
        description="embeddings of the parts of sources (default: one a part, 0 for one part)",
    )
    attention_window: Literal["global", "local-m", "local-p"] = Field(
        "global", description="attend to the whole source, or only near p_t = t or a predicted p_t (Luong et al. 2015)"
    )
    window: Width = Field(10, description="local-m, local-p: words on each side of p_t that are attended to")
    coverage: bool = Field(
        False, description="additive, concat: the score knows what was attended to already (See et al. 2017)"
    )
    copy_attn: bool = Field(
        False, description="words of the source can be copied that no vocabulary holds (See et al. 2017)"
    )
    copy_head: int | None = Field(
        None, ge=1, description="copy_attn: copy by this head of the last layer, from 1 (default: by their mean)"
    )
    num_heads: Width = Field(4, description="transformer: attention heads")
    ff_size: Width = Field(1024, description="transformer: width of the feed-forward layer")
    activation: Literal["relu", "gelu", "swish"] = Field(
        "relu", description="transformer: what stands between the two products of the feed-forward layer"
    )
    norm: Literal["pre", "post"] = Field("pre", description="transformer: layer norm before or after each part")
    norm_eps: float = Field(1e-5, gt=0, le=1e-2, description="transformer: ε that layer norm adds to the variance")
    position_encoding: Literal["sinusoidal", "tensor2tensor"] = Field(
        "sinusoidal", description="transformer: wavelengths to 10000·2π by d_model, or by d_model − 2 (tensor2tensor)"
    )
    first_position: int = Field(0, ge=0, le=1000, description="transformer: the number of a sentence's first position")
    add_source_eos: bool = Field(True, description="the encoder reads the </s> that every source ends with")
    tied_softmax: bool = Field(False, description="the output layer is the target embedding")
    tied_embeddings: bool = Field(False, description="source and target share one embedding (needs share_vocab)")
    dropout: float = Field(
        0.2, ge=0, lt=1, description="between layers and before the output (unless given: by the pairs)"
    )
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
        """Whether what the output layer reads enters the next step."""
        return self.decoder == "luong" if self.input_feeding is None else self.input_feeding

    @property
    def has_attention(self) -> bool:
        """Whether the decoder attends to the source."""
        return self.decoder != "classic"

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

    def idle(self) -> dict[str, str]:
        """The options that are set and do nothing with this decoder and score, each with the reason."""
        found = {
            option: f"with decoder {self.decoder}; it is for decoder {' or '.join(owners)}"
            for option, owners in OWNERS.items()
            if self.decoder not in owners and self.changes(option)
        }
        for option in OF_HIDDEN_LAYER:
            if option not in found and self.changes(option) and self.score_name not in HIDDEN_LAYER:
                found[option] = f"with score {self.score_name}; it is for score {' or '.join(HIDDEN_LAYER)}"
        if "window" not in found and self.changes("window") and self.attention_window == "global":
            found["window"] = "with attention_window global; it is for attention_window local-m or local-p"
        if "bridge_from" not in found and self.changes("bridge_from") and self.bridge is None:
            found["bridge_from"] = "without bridge"
        if "copy_head" not in found and self.changes("copy_head") and not self.copy_attn:
            found["copy_head"] = "with copy_attn false; it is for copy_attn true"
        return found

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


def applicable(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a model less those that do nothing beside the others: for options shared by several systems.

    Input feeding is Luong's; a classic system that has it too has it as an option of its own.
    """
    decoder = values.get("decoder", ModelConfig.model_fields["decoder"].default)
    score = values.get("score") or DEFAULT_SCORE.get(decoder)
    hidden_layer = ALIASES["score"].get(str(score), score) in HIDDEN_LAYER
    owned = {name: value for name, value in values.items() if decoder in OWNERS.get(name, (decoder,))}
    if decoder == "classic":
        owned.pop("input_feeding", None)
    return {name: value for name, value in owned.items() if name not in OF_HIDDEN_LAYER or hidden_layer}


def check_model(model: ModelConfig) -> None:
    """Raise ValueError for two options of the model that contradict each other, naming both and what is valid."""
    check_score(model)
    if model.decoder == "transformer" and model.embedding_dim % model.num_heads:
        raise ValueError(f"embedding_dim {model.embedding_dim} is not a multiple of num_heads {model.num_heads}")
    if model.copy_head and model.copy_head > model.num_heads:
        raise ValueError(f"copy_head {model.copy_head}: the layers have num_heads {model.num_heads}")
    if model.position_encoding == "tensor2tensor" and model.embedding_dim < 4:
        raise ValueError(f"position_encoding tensor2tensor needs embedding_dim 4 at least, got {model.embedding_dim}")
    if not model.add_source_eos and model.reverse_source:
        raise ValueError("reverse_source true with add_source_eos false: the </s> that would stay in place is not read")
    check_start(model)
    widths = (model.embedding_dim, model.hidden_size)
    if model.tied_softmax and model.decoder != "transformer" and not model.has_maxout and widths[0] != widths[1]:
        raise ValueError(
            f"tied_softmax true needs embedding_dim equal to hidden_size with decoder {model.decoder} "
            f"(got {widths[0]} and {widths[1]}); bahdanau with readout deep has no such need"
        )


def check_start(model: ModelConfig) -> None:
    """Raise ValueError if the decoder cannot start, or go on, as the options say."""
    for option in ("bridge", "input_feeding"):
        if model.feed_context and getattr(model, option):
            value = str(getattr(model, option)).lower()
            raise ValueError(f"{option} {value} with feed_context true, where the context alone does that")
    if model.bridge == "copy" and model.memory_size != model.hidden_size:
        raise ValueError(
            f"bridge copy needs encoder states as wide as hidden_size (got {model.memory_size} and "
            f"{model.hidden_size}); set encoder_hidden_size to hidden_size divided by the directions"
        )


def check_score(model: ModelConfig) -> None:
    """Raise ValueError if the score does not fit the flow or the sizes."""
    advice = "leave score out, or use decoder bahdanau or luong"
    if model.decoder == "classic" and model.score is not None:
        raise ValueError(f"score {model.score} with decoder classic, which has no attention; {advice}")
    if model.decoder == "transformer" and model.score_name != "scaled_dot":
        raise ValueError(f"score {model.score} with decoder transformer, which uses scaled_dot; {advice}")
    if model.copy_attn and model.attention_window == "local-p":
        raise ValueError(
            "copy_attn true with attention_window local-p, whose weights do not sum to one; use global or local-m"
        )
    recurrent = model.decoder in ("bahdanau", "luong")
    if recurrent and model.score_name in ("dot", "scaled_dot") and model.memory_size != model.hidden_size:
        raise ValueError(
            f"score {model.score_name} needs encoder states as wide as hidden_size "
            f"(got {model.memory_size} and {model.hidden_size}); set encoder_hidden_size to hidden_size divided by the "
            "directions, or use score general, additive or concat"
        )
