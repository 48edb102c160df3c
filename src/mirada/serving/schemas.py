"""What requests and answers hold; the service's OpenAPI description is made of these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

MODEL = "name of a served model (GET /v1/models); default: the first"


STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, strict=True)  # an unknown key is an error


def _is_text(value: str) -> str:
    """Refuse what no UTF-8 text can hold, and U+0000, which no text needs."""
    if any("\ud800" <= char <= "\udfff" for char in value):
        raise ValueError("expected valid Unicode, got half a surrogate pair")
    if "\0" in value:
        raise ValueError("expected text, got the character U+0000")
    return value


Text = Annotated[str, AfterValidator(_is_text)]
Share = Annotated[float, Field(ge=0, le=1e6)]
Texts = Text | list[Text]


class TranslateRequest(BaseModel):
    """One text or several, and how to search. What is left out is the model's own default."""

    model_config = STRICT
    text: Texts = Field(description="one text, or several")
    model: str | None = Field(None, description=MODEL)
    prefix: Texts | None = Field(None, description="how the output begins: one for all texts, or one a text")
    beam_size: int | None = Field(None, description="hypotheses kept a sentence; 1 is greedy")
    n_best: int | None = Field(None, description="outputs a text")
    alpha: float | None = Field(None, description="length penalty ((5 + n) / 6)^alpha")
    max_output_length: int | None = Field(None, description="most tokens of an output")
    min_output_length: int | None = Field(None, description="fewest tokens of an output")
    no_repeat_ngram_size: int | None = Field(None, description="never repeat an n-gram of this size; 0: off")
    replace_unk: bool | None = Field(None, description="put the attended source word in place of <unk>")
    sample: bool | None = Field(None, description="draw outputs at random instead of searching")
    temperature: float | None = Field(None, description="sampling: below 1 sharper, above 1 flatter")
    top_k: int | None = Field(None, description="sampling: only the k likeliest; 0: all")
    top_p: float | None = Field(None, description="sampling: only the likeliest that add up to p")
    sample_seed: int | None = Field(None, description="sampling: seed")
    with_scores: bool = Field(False, description="add scores, tokens and the log-probability of each token")
    with_attention: bool = Field(False, description="add tokens and attention weights, a row an output token")


class StreamRequest(BaseModel):
    """A long document, line by line; or one sentence, step by step."""

    model_config = STRICT
    text: Text = Field(description="lines, of which each is translated by itself")
    model: str | None = Field(None, description=MODEL)
    steps: bool = Field(False, description="the text is one sentence; send each step of the decoder as it is made")
    beam_size: int | None = Field(None, description="hypotheses kept a sentence; 1 is greedy (and steps arrive live)")
    alpha: float | None = Field(None, description="length penalty ((5 + n) / 6)^alpha")
    max_output_length: int | None = Field(None, description="most tokens of an output")
    prefix: Text | None = Field(None, description="with steps: how the output begins")


class ScoreRequest(BaseModel):
    """Given pairs to be scored (forced decoding)."""

    model_config = STRICT
    source: Texts = Field(description="one source, or several")
    target: Texts = Field(description="one target, or one a source")
    model: str | None = Field(None, description=MODEL)
    with_attention: bool = Field(False, description="add attention weights, a row an output token and one for </s>")


class ExplainRequest(BaseModel):
    """One text whose every number is wanted, with interventions as in `mirada explain`."""

    model_config = STRICT
    text: Text = Field(description="the sentence")
    model: str | None = Field(None, description=MODEL)
    beam_size: int | None = Field(None, description="hypotheses kept; 1 is greedy")
    n_best: int | None = Field(None, description="outputs traced")
    alpha: float | None = Field(None, description="length penalty ((5 + n) / 6)^alpha")
    max_output_length: int | None = Field(None, description="most tokens of an output")
    reference: Text | None = Field(None, description="the whole output, given (forced decoding)")
    force: Text | None = Field(None, description="the beginning of the output, given")
    force_ids: list[int] | None = Field(None, max_length=1000, description="the same as ids of a trace's tokens")
    top: Annotated[int, Field(ge=1, le=50)] = Field(5, description="next tokens listed at each step")
    logits: bool = Field(False, description="add the logits of the whole vocabulary at each step")
    attention: str | None = Field(None, description="replace it: uniform, diagonal, shuffled, or edge:I-J")
    weights: list[Share] | None = Field(None, max_length=1000, description="put these in its place at from_step alone")
    from_step: int | None = Field(None, description="replace it from this step on; with weights at this one")
    shuffle_seed: int | None = Field(None, description="of shuffled attention")
    no_input_feeding: bool = Field(False, description="luong: the attentional state does not enter the next step")
    drop_head: str | None = Field(None, description="transformer: L.H, a head that is left out")


class LibreRequest(BaseModel):
    """LibreTranslate's own request, as JSON or as a form."""

    q: Texts = Field(description="one text, or several")
    source: str = Field(description="language of the texts (GET /languages)")
    target: str = Field(description="language wanted")
    format: Literal["text"] = Field("text", description="text; HTML is not read")
    alternatives: int = Field(0, ge=0, le=20, description="further outputs a text")
    api_key: str | None = Field(None, description="a token, where the service asks for one")


class OutputAnswer(BaseModel):
    """One output of a text."""

    text: str
    finished: bool = Field(description="false: the limit was reached before </s>")
    score: float | None = Field(None, description="log_probability / ((5 + n) / 6)^alpha")
    log_probability: float | None = Field(None, description="natural logarithm")
    source_tokens: tuple[str, ...] | None = Field(None, description="with </s>")
    tokens: tuple[str, ...] | None = Field(None, description="with </s> where it was produced")
    token_log_probabilities: tuple[float, ...] | None = Field(None, description="one a token")
    attention: list[list[float]] | None = Field(None, description="a row a token, a column a source token")


class TranslationAnswer(BaseModel):
    """The outputs of one text, best first."""

    text: str = Field(description="the best output")
    outputs: list[OutputAnswer]


class TranslateAnswer(BaseModel):
    """The outputs of all texts, in order."""

    model: str
    translations: list[TranslationAnswer]


class ScoreAnswer(BaseModel):
    """The log-probability of one given target."""

    log_probability: float
    source_tokens: tuple[str, ...]
    tokens: tuple[str, ...]
    token_log_probabilities: tuple[float, ...]
    attention: list[list[float]] | None = None


class ScoresAnswer(BaseModel):
    """The log-probabilities of all targets, in order."""

    model: str
    scores: list[ScoreAnswer]


class ExplainAnswer(BaseModel):
    """What the file of `mirada explain --format json` holds: the trace of each output; edited ones after the others."""

    format: str
    version: int
    fingerprint: str = Field(description="SHA-256 of the traces as values")
    traces: list[dict[str, Any]]


class ModelAnswer(BaseModel):
    """A served model."""

    name: str
    source: str = Field(description="language, or und")
    target: str = Field(description="language, or und")
    system: dict[str, Any] = Field(description="its options, those in force")
    search: dict[str, Any] = Field(description="how it searches unless told otherwise")
    source_vocabulary: int
    target_vocabulary: int
    parameters: int
    metrics: dict[str, Any] = Field(description="of its last validation")
    loaded: bool


class ModelsAnswer(BaseModel):
    """All served models; the first is the default."""

    models: list[ModelAnswer]


class ErrorAnswer(BaseModel):
    """What went wrong, in one line, and the id under which the log has it."""

    error: str
    id: str
