"""Options of the data: where the pairs are and how they become tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from mirada.config.types import LONGEST, Block, Count, VocabSize, written

TokenKind = Literal["auto", "bpe", "unigram", "word", "char", "features"]


def parts_of(text: str) -> tuple[str, ...]:
    """The names in a list such as `lemma,features` or `1,3`."""
    return tuple(name.strip() for name in text.split(","))


def _as_text(value: Any) -> Any:
    """A number or a list, as YAML may have them, as its user would write it."""
    return written(value) if isinstance(value, int | list) and not isinstance(value, bool) else value


def _check_kinds(text: str) -> str:
    for kind in parts_of(text):
        if kind not in get_args(TokenKind):
            kinds = ", ".join(get_args(TokenKind))
            raise ValueError(f"{kind!r} is no kind of tokens; expected {kinds}, or one for each part, joined by commas")
    return ",".join(parts_of(text))


def _check_columns(text: str) -> str:
    for column in parts_of(text):
        if not column or (column.lstrip("-").isdigit() and int(column[:12]) < 1):
            raise ValueError(f"{column!r} is no column; columns are counted from 1, or named as in the first line")
    return ",".join(parts_of(text))


Names = Annotated[str, BeforeValidator(_as_text)]
Columns = Annotated[str, BeforeValidator(_as_text), AfterValidator(_check_columns)]
Kinds = Annotated[str, BeforeValidator(_as_text), AfterValidator(_check_kinds)]


class DataConfig(Block):
    """Where the pairs are and how they become tokens."""

    src: str | None = Field(None, description="source side of the training pairs, one sentence a line (.gz, .xz too)")
    tgt: str | None = Field(None, description="target side, line by line with --src")
    tsv: str | None = Field(None, description="training pairs as tab-separated columns, instead of --src/--tgt")
    jsonl: str | None = Field(None, description="training pairs as JSON lines, instead of --src/--tgt")
    dataset: str | None = Field(
        None,
        description="training pairs as Parquet (a file or a folder of them), or as a folder that Hugging Face datasets "
        "saved; its columns are named by --source-key and --target-key",
    )
    prepared: str | None = Field(
        None, description="training and dev pairs that mirada data prepare has made: read from disk, as they are needed"
    )
    prepare_above: int = Field(
        1 << 28, ge=0, description="in training: bytes of text from which it is prepared first, in MODEL_DIR/prepared"
    )
    dev_src: str | None = Field(None, description="source side of the development pairs")
    dev_tgt: str | None = Field(None, description="target side of the development pairs")
    dev_tsv: str | None = Field(None, description="development pairs as tab-separated columns")
    dev_jsonl: str | None = Field(None, description="development pairs as JSON lines")
    dev_dataset: str | None = Field(None, description="development pairs as --dataset has them")
    dev_size: Count = Field(1000, description="pairs split off by seed when no dev set is given (at most a tenth)")
    source_column: Columns = Field(
        "1", description="TSV column of the source, from 1 or named in the first line; several are its parts (1,3)"
    )
    target_column: Columns = Field("2", description="TSV column of the target, likewise")
    dev_reference_column: Names | None = Field(
        None, description="further references of dev pairs: TSV columns such as 4,6 or 4- (4 and all after it)"
    )
    dev_reference_key: str | None = Field(
        None, description="further references of dev pairs: JSON key of a text or list"
    )
    source_key: Names = Field(
        "source",
        description="JSON key, or column of a dataset, of the source; a.b is key b in the object under a; several are "
        "its parts",
    )
    target_key: str = Field(
        "target", description="JSON key of the target, or of a list of references, the first to train"
    )
    tokenizer: TokenKind = Field("auto", description="both sides' tokens: auto, bpe, unigram, word, char, features")
    source_tokenizer: Kinds | None = Field(
        None, description="the source's tokens, where they differ; one for each part (char,features)"
    )
    target_tokenizer: TokenKind | None = Field(None, description="the target's tokens, where they differ")
    vocab_size: VocabSize | None = Field(
        None, description="most entries of a vocabulary (default: subwords by the amount of text, up to 8,000)"
    )
    vocab_min_freq: Count = Field(1, description="words and characters seen less often become <unk>")
    share_vocab: bool | None = Field(
        None, description="one vocabulary learned on both sides (default: where both are of one language)"
    )
    split_digits: bool = Field(False, description="bpe and unigram: every digit is a token of its own")
    bpe_dropout: float = Field(
        0.0, ge=0, lt=1, description="bpe, in training: share of merges left out at random (Provilkov et al. 2020)"
    )
    normalize: Literal["nfc", "nfkc", "none"] = Field("nfc", description="Unicode form, in training and in use")
    max_length: int = Field(256, ge=2, le=LONGEST, description="pairs with more tokens on a side are left out, counted")
    truncate_source: Literal["none", "first", "last", "both"] = Field(
        "none", description="cut longer sources instead: keep their first or last max_length tokens, or both ends"
    )

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The columns of the source's parts."""
        return parts_of(self.source_column)

    @property
    def source_keys(self) -> tuple[str, ...]:
        """The JSON keys of the source's parts."""
        return parts_of(self.source_key)

    @property
    def source_kinds(self) -> tuple[str, ...]:
        """The kinds of tokens of the source's parts, one for all where only one is given."""
        return parts_of(self.source_tokenizer or self.tokenizer)

    @property
    def by_keys(self) -> bool:
        """Whether rows are mappings, of which keys name the texts."""
        return bool(self.jsonl or self.dataset)

    @property
    def source_parts(self) -> int:
        """How many parts a source has; a text file's are parted by tabs where several kinds of tokens are given."""
        columns = self.source_columns if self.tsv else self.source_keys if self.by_keys else ()
        return len(columns) if self.tsv or len(columns) > 1 else len(self.source_kinds)

    def idle(self) -> dict[str, str]:
        """The options that are set and do nothing beside the others, each with the reason."""
        found = {}
        kinds = {*self.source_kinds, self.target_tokenizer or self.tokenizer}
        if self.bpe_dropout and not kinds & {"auto", "bpe"}:
            found["bpe_dropout"] = f"with tokenizer {' and '.join(sorted(kinds))}; it is for bpe"
        if self.split_digits and not kinds & {"auto", "bpe", "unigram"}:
            found["split_digits"] = f"with tokenizer {' and '.join(sorted(kinds))}; it is for bpe and unigram"
        for name, files in (("dev_reference_column", "dev_tsv"), ("dev_reference_key", "dev_jsonl")):
            if getattr(self, name) and not getattr(self, files):
                found[name] = f"without {files}, whose references it names"
        return found

    @model_validator(mode="after")
    def _parts_fit(self) -> DataConfig:
        for name in ("target_column", "target_key"):
            if len(parts_of(getattr(self, name))) > 1:
                raise ValueError(
                    f"{name} {getattr(self, name)}: a target has one part; further references are "
                    "named by dev_reference_column"
                )
        if len(self.source_kinds) not in (1, self.source_parts):
            raise ValueError(
                f"source_tokenizer {self.source_tokenizer} has {len(self.source_kinds)} kinds for "
                f"{self.source_parts} parts of the source"
            )
        if self.source_parts > 1 and self.share_vocab:
            raise ValueError("share_vocab true needs a source of one part")
        return self


def check_copying(data: DataConfig) -> None:
    """Raise ValueError unless the words of a source can be those of an output: equal kinds of tokens on both sides."""
    if data.bpe_dropout:
        raise ValueError("copy_attn true with bpe_dropout, which cuts a word anew each time; leave one of them out")
    source, target = data.source_tokenizer or data.tokenizer, data.target_tokenizer or data.tokenizer
    if data.share_vocab or "auto" in (*data.source_kinds, target):
        return
    if target in ("bpe", "unigram") or target not in data.source_kinds:
        raise ValueError(
            "copy_attn true needs tokens that both sides have: source and target by word, both by char, or one shared "
            f"vocabulary of subwords (share_vocab true); got {source} and {target}"
        )
