"""What must hold whatever bytes come: properties with the examples that test them, for tests and for long fuzzing."""

from __future__ import annotations

import io
import json
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import yaml
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import tiny
from mirada.cli import main
from mirada.config import configfile
from mirada.config.options import Config, DataConfig, SearchConfig
from mirada.data import corpus
from mirada.data.arriving import line_blocks
from mirada.data.checks.check import check_corpus
from mirada.data.checks.findings import to_json
from mirada.data.corpus import Corpus
from mirada.data.lines import BOM
from mirada.data.tokenizer import Tokenizer, TokenizerOptions, train_tokenizer
from mirada.data.vocabulary import EOS, SPECIAL_TOKENS, UNK
from mirada.errors import ConfigError, DataError, MiradaError
from mirada.evaluation.alignment import format_links, parse_links
from mirada.store import checkpoint
from mirada.store.checkpoint import Archive
from mirada.train import prepare
from mirada.translator import Translator

CPU = torch.device("cpu")
LONGEST_MESSAGE = 2000
PATIENCE = 30.0  # seconds for one example: a slow machine is no failure, a hang is
BARS = ["||| a", "a ||| b", "|||", "0-0 ||| -1.5", "a\tb |||", "b 0-0", "-1.5 ▁"]


class Bench:
    """Folders to work in, and what takes time to make: models and tokenisers."""

    def __init__(self, place: Path):
        self.place = place
        place.mkdir(parents=True, exist_ok=True)

    @cached_property
    def model(self) -> Path:
        """A valid model folder."""
        return tiny.write_folder(self.place / "model", "luong")

    @cached_property
    def bars(self) -> Path:
        """A model whose every other word is made to be taken for a field mark."""
        data = {"source_tokenizer": "word", "target_tokenizer": "word"}
        model = {"decoder": "bahdanau", "rnn_type": "gru", "embedding_dim": 8, "hidden_size": 8}
        config = configfile.parse({"data": data, "model": model, "search": {"max_length_ratio": 0.1}})
        own = prepare.learn_tokenizers(config, Corpus(BARS, BARS, list(range(len(BARS))), [], "bars"))
        torch.manual_seed(1)
        system = tiny.build_model(config.model, source_vocab=len(own[0]), target_vocab=len(own[1]))
        with torch.no_grad():
            for parameter in system.parameters():
                parameter.uniform_(-1.0, 1.0)
        folder = self.place / "bars"
        folder.mkdir()
        checkpoint.write_start(folder, config, *own)
        checkpoint.write_model(folder, system, {"metrics": {}}, config)
        return folder

    @cached_property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """One of each kind."""
        lines = [*tiny.SOURCES, *tiny.TARGETS, "αβγ 漢字 ñ\u0303 42", "a-b! ?"] * 3
        return {kind: train_tokenizer(lines, TokenizerOptions(kind, 90)) for kind in ("bpe", "unigram", "word", "char")}

    def file(self, name: str, content: bytes) -> Path:
        """Write a file to be read."""
        path = self.place / name
        path.write_bytes(content)
        return path


class Property(NamedTuple):
    """What must hold, for which examples."""

    name: str
    says: str
    examples: st.SearchStrategy[Any]
    check: Callable[[Any, Bench], None]


def attempt(tested: Property, bench: Bench, *, examples: int, number: int | None = None) -> int:
    """Try a property on so many examples (those of a number, always the same); returns how many it were."""
    count = 0

    @settings(max_examples=examples, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(tested.examples)
    def one(example: Any) -> None:
        nonlocal count
        count += 1
        begun = time.monotonic()
        tested.check(example, bench)
        assert time.monotonic() - begun < PATIENCE

    (one if number is None else seed(number)(one))()
    return count


def one_line(error: BaseException, *, start: str = "") -> None:
    """A message is one line of a bearable length, and begins by saying where."""
    message = str(error)
    assert message.startswith(start)
    assert message
    assert "\n" not in message
    assert len(message) < LONGEST_MESSAGE


# Bytes that files and pipes may hold

FRAGMENTS = [
    *(b"a", b"the red fox", b"\n", b"\n", b"\t", b"\r\n", b" ", b'"', b"\\", b"{", b"}", b"[", b":", b",", b"|||"),
    *(b"\0", b"\x85", b"\xc2\x85", b"\xe2\x80\xa8", b"\v\f", b"\x1c", b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80"),
    *(b"e\xcc\x81", b"\xf0\x9f\x98\x80", b"<s>", b"<unk>", b"</s>", b"\xe2\x96\x81", b"zz" * 40),
    *(b'{"source": "a", "target": "b"}\n', b'{"source": "a\\nb", "target": "\\ud800"}\n', b"x\ty\n", b"1e999", b"null"),
]
BYTES = st.one_of(st.binary(max_size=60), st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join))
TEXTS = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("ab ñe\u0301漢\t\u2028\0▁<>|")), max_size=60)


def lines_of(content: bytes) -> list[bytes]:
    """The lines by the contract, in the plainest way."""
    body = content.removeprefix(BOM)
    lines = body.split(b"\n")
    return [line.removesuffix(b"\r") for line in (lines if lines[-1] else lines[:-1])]


def check_readers(example: tuple[str, bytes, bytes], bench: Bench) -> None:
    """Line n of one side meets line n of the other, or there is one clear error; a check never fails."""
    kind, left, right = example
    paths = [bench.file("left", left), bench.file("right", right)]
    try:
        if kind == "tsv":
            found = corpus.read_tsv(paths[0])
        elif kind == "jsonl":
            found = corpus.read_jsonl(paths[0])
        else:
            found = corpus.read_parallel(*paths)
    except DataError as error:
        one_line(error)
    else:
        count = len(lines_of(left))
        assert sorted(found.lines + found.skipped) == list(range(1, count + 1))
        for source, target, number in zip(found.sources, found.targets, found.lines, strict=True):
            raw = lines_of(left)[number - 1].decode()
            if kind == "text":
                assert (source, target) == (raw, lines_of(right)[number - 1].decode())
            elif kind == "tsv":
                assert raw.split("\t")[:2] == [source, target]
            else:
                assert json.loads(raw)["source"] == source
    files = {"text": {"src": paths[0], "tgt": paths[1]}, "tsv": {"tsv": paths[0]}, "jsonl": {"jsonl": paths[0]}}[kind]
    try:
        json.loads(to_json(check_corpus(DataConfig(**{name: str(path) for name, path in files.items()}))))
    except DataError as error:
        one_line(error)


class Pieces(io.RawIOBase):
    """A stream that gives its bytes in pieces, as a pipe does."""

    def __init__(self, pieces: list[bytes]):
        self.pieces = [piece for piece in pieces if piece]

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Give the next piece, or what fits of it."""
        piece = self.pieces.pop(0) if self.pieces else b""
        if len(piece) > len(buffer):
            self.pieces.insert(0, piece[len(buffer) :])
        taken = piece[: len(buffer)]
        buffer[: len(taken)] = taken
        return len(taken)


def check_arriving(pieces: list[bytes], bench: Bench) -> None:
    """Lines that arrive in any pieces are the lines of the whole, up to the same error."""

    def gather(groups: Any) -> tuple[list[str], str]:
        lines: list[str] = []
        try:
            for group in groups:
                lines += group
        except DataError as error:
            return lines, str(error)
        return lines, ""

    whole = b"".join(pieces)
    expected = gather([line] for line in corpus.stream_lines(io.BytesIO(whole), "in"))
    assert gather(line_blocks(io.BufferedReader(Pieces(list(pieces))), "in")) == expected
    assert gather(line_blocks(io.BytesIO(whole), "in")) == expected
    decoded, error = expected
    assert [line.encode() for line in decoded] == lines_of(whole)[: len(decoded)]
    assert bool(error) == (len(decoded) < len(lines_of(whole)))


def check_tokenizers(example: tuple[str, str], bench: Bench) -> None:
    """Any text has ids in the vocabulary, pieces where they stand, and comes back from what is known of it."""
    kind, text = example
    tokenizer = bench.tokenizers[kind]
    (ids,), (pieces,) = tokenizer.encode([text]), tokenizer.pieces([text])
    assert [piece.id for piece in pieces] == ids
    assert all((i == UNK or i > EOS) and i < len(tokenizer) for i in ids)
    assert all(0 <= piece.span[0] <= piece.span[1] <= len(text) for piece in pieces)
    back = tokenizer.decode(ids)
    assert "\n" not in back
    if UNK not in ids:
        assert tokenizer.decode(tokenizer.encode([back])[0]) == back
    named = set(text.split()) & set(SPECIAL_TOKENS)  # a special token's name as a word is unknown, and comes back so
    if kind in ("char", "word") and not named and not set(text) & set("\x1c\x1d\x1e\x1f▁"):
        try:
            own = train_tokenizer([text], TokenizerOptions(kind, 1000))
        except DataError as error:
            one_line(error)
            assert not text.split()
        else:
            assert own.decode(own.encode([text])[0]) == " ".join(unicodedata.normalize("NFC", text).split())


# The line contract of `translate`, through the command line

FLAGS = st.fixed_dictionaries(
    {
        "beam": st.sampled_from((["--beam-size=1"], ["--beam-size=3"], ["--sample", "--temperature=2"])),
        "batch": st.sampled_from((1, 3, 64)),
        "more": st.lists(
            st.sampled_from(("--replace-unk", "--scores", "--strict", "--max-input-length=2", "--min-output-length=2")),
            unique=True,
        ),
        "alignment": st.sampled_from((None, "hard", "soft")),
    }
)


def translated(model: Path, content: bytes, flags: list[str]) -> tuple[int, str, list[str]]:
    """Run `mirada translate` in this process; returns exit code, output and the lines of standard error."""
    out, err = io.BytesIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(content))
    stdout = io.TextIOWrapper(out, encoding="utf-8", newline="\n")
    try:
        with redirect_stdout(stdout), redirect_stderr(err):
            code = main(["translate", str(model), "--device=cpu", "--max-output-length=6", *flags])
    finally:
        sys.stdin = before
    stdout.flush()
    return code, out.getvalue().decode("utf-8"), err.getvalue().splitlines()


def check_contract(example: tuple[bool, bytes, dict[str, Any]], bench: Bench) -> None:
    """As many lines out as in, or a prefix of them and one clear error."""
    bars, content, options = example
    flags = [*options["beam"], f"--batch-size={options['batch']}", *options["more"]]
    flags += [f"--alignment={options['alignment']}"] if options["alignment"] else []
    code, text, said = translated(bench.bars if bars else bench.model, content, flags)
    out = text.split("\n")
    assert out.pop() == ""
    assert all(line.startswith("mirada: ") for line in said)
    expected = len(lines_of(content))
    if code == 0:
        assert len(out) == expected
    else:
        assert code == 2
        assert said
        assert len(out) < max(1, expected)
    for line in out if options["alignment"] == "hard" else ():
        parse_links(line.rsplit(" ||| ", 1)[1] if " ||| " in line else "", "here")


def check_n_best(example: tuple[bytes, int], bench: Bench) -> None:
    """`id ||| text ||| score ||| links` reads back, whatever words are in the text."""
    content, count = example
    flags = ["--beam-size=4", "--max-length-ratio=0.1"]
    code, text, _ = translated(bench.bars, content, [*flags, f"--n-best={count}", "--alignment=hard"])
    plain_code, plain, _ = translated(bench.bars, content, flags)
    assert code == plain_code
    first: dict[int, str] = {}
    for line in text.split("\n")[:-1]:
        number, rest = line.split(" ||| ", 1)
        output, score, links = rest.rsplit(" ||| ", 2)
        assert np.isfinite(float(score))
        sure, _ = parse_links(links, "here")
        assert all(j < len(output.split()) for _, j in sure)
        first.setdefault(int(number), output)
    assert list(first) == list(range(len(first)))
    assert list(first.values()) == plain.split("\n")[:-1]


# Links

LINKS = st.frozensets(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=20)


def check_links(example: tuple[frozenset[Any], frozenset[Any], str], bench: Bench) -> None:
    """Links that are written read back; any other text is links or one clear error."""
    sure, possible, text = example
    assert parse_links(format_links(sure, possible), "here") == (sure, sure | possible)
    try:
        found = parse_links(text, "file:3")
    except DataError as error:
        one_line(error, start="file:3: ")
    else:
        assert parse_links(format_links(*found), "here") == found


# Options

NAMES = [*configfile.BLOCKS, *(leaf for _, leaf in configfile.leaves()), "model_dir", "x", "", "<<", "a\nb", "1"]


def keyed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings under names that are, or look like, those of options."""
    return st.dictionaries(st.sampled_from(NAMES), inner, max_size=4)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.sampled_from(["luong", "auto", "bleu", 10**30])
)
VALUES = st.recursive(SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), keyed(inner)), max_leaves=8)
MARKS = ["&a ", "*a", "<<: ", "!!python/object:os.system ", "!!int ", "!!bool ", "!!timestamp ", "? ", "- ", "{", "["]
MARKS += ["%YAML 1.1\n", "---\n", "...\n", "'", '"', "|\n", ": ", "#", "\t", "\n", "  ", "9" * 5000, "2024-99-99", "\0"]


YAML = st.one_of(
    keyed(VALUES).map(lambda values: yaml.safe_dump(values, allow_unicode=True).encode()),
    st.lists(st.one_of(st.sampled_from([*MARKS, *NAMES]), st.text(max_size=5)), max_size=12).map(
        lambda parts: "".join(parts).encode("utf-8", "replace")
    ),
    st.integers(1, 3000).map(lambda depth: b"[" * depth),
    st.integers(1, 3000).map(lambda depth: b"a: {" * depth),
    BYTES,
)


def check_options(content: bytes, bench: Bench) -> None:
    """A file of options is read, or refused with one clear line."""
    try:
        found = configfile.load(bench.file("options.yaml", content))
    except ConfigError as error:
        one_line(error, start=str(bench.place / "options.yaml"))
    else:
        assert isinstance(found, Config)
        assert configfile.load(bench.file("again.yaml", configfile.dump(found).encode())) == found


# Model folders

PLACES = st.floats(0, 1, exclude_max=True)
HARM = st.tuples(st.sampled_from(("flip", "cut", "insert", "delete", "swap", "value")), PLACES, PLACES, BYTES, VALUES)
FILES = (checkpoint.CONFIG, checkpoint.WEIGHTS, *checkpoint.TOKENIZERS)


def harmed(name: str, content: bytes, harm: tuple[str, float, float, bytes, Any]) -> bytes:
    """A file after one accident, or after somebody's change of one value in it."""
    kind, where, extent, more, value = harm
    start, length = int(where * len(content)), 1 + int(extent * 40)
    if kind == "value":
        return changed(name, content, where, value)
    if kind == "flip" and content:
        return content[:start] + bytes([content[start] ^ 1 << int(extent * 8)]) + content[start + 1 :]
    if kind == "cut":
        return content[:start]
    if kind == "insert":
        return content[:start] + more + content[start:]
    if kind == "delete":
        return content[:start] + content[start + length :]
    part = content[start : start + length]
    return content[:start] + part[::-1] + content[start + length :]


def changed(name: str, content: bytes, where: float, value: Any) -> bytes:
    """The file with one value of its mapping (YAML, JSON, a safetensors header) replaced."""
    try:
        if name == checkpoint.CONFIG:
            return yaml.safe_dump(replaced(yaml.safe_load(content), where, value)).encode()
        if name != checkpoint.WEIGHTS:
            return json.dumps(replaced(json.loads(content), where, value)).encode()
        size = int.from_bytes(content[:8], "little")
        header = json.dumps(replaced(json.loads(content[8 : 8 + size]), where, value)).encode()
        return len(header).to_bytes(8, "little") + header + content[8 + size :]
    except (ValueError, yaml.YAMLError):  # already harmed beyond reading
        return content[: int(where * len(content))]


def replaced(tree: Any, where: float, value: Any) -> Any:
    """A tree of lists and mappings with one node, chosen by `where`, replaced."""
    homes: list[tuple[Any, Any]] = []

    def visit(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            homes.append((node, key))
            visit(node[key])

    visit(tree)
    if not homes:
        return value
    node, key = homes[int(where * len(homes))]
    node[key] = value
    return tree


def check_folder(example: tuple[str, list[Any]], bench: Bench) -> None:
    """A harmed folder loads with the very same weights and works, or is refused with one clear line."""
    name, harms = example
    folder = bench.place / "harmed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bench.model, folder)
    content = (folder / name).read_bytes()
    for harm in harms:
        content = harmed(name, content, harm)
    (folder / name).write_bytes(content)
    try:
        loaded = checkpoint.load_model(folder, CPU)
        options = SearchConfig(beam_size=2, max_output_length=4)
        outputs = Translator(loaded).search(["the red fox", "", "ñ \0"], options=options, with_attention=True)
    except MiradaError as error:
        one_line(error, start=str(folder))
    else:
        assert len(outputs) == 3
        assert not any("\n" in output.text for found in outputs for output in found)
        original = checkpoint.read_archive(bench.model / checkpoint.WEIGHTS).tensors
        found = checkpoint.weights_of(loaded.model)
        assert all(torch.equal(found[key], weights) for key, weights in original.items())


def check_archive(example: tuple[dict[str, Any], list[Any]], bench: Bench) -> None:
    """A harmed file of saved state reads back as it was, or is refused with one clear line."""
    note, harms = example
    archive = Archive({"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.uint8)}, note)
    path = bench.place / "archive.safetensors"
    checkpoint.write_archive(path, archive)
    content = path.read_bytes()
    for harm in harms:
        content = harmed(checkpoint.WEIGHTS, content, harm)
    path.write_bytes(content)
    try:
        found = checkpoint.read_archive(path)
    except MiradaError as error:
        one_line(error)
        assert harms
    else:
        assert all(torch.equal(found.tensors[name], tensor) for name, tensor in archive.tensors.items())
        assert harms or found.metadata == archive.metadata


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
PROPERTIES = [
    Property(
        "readers",
        "readers (two files, TSV, JSONL) and `data check` on any bytes",
        st.tuples(st.sampled_from(("text", "tsv", "jsonl")), BYTES, BYTES),
        check_readers,
    ),
    Property("arriving", "lines that arrive in any pieces", st.lists(BYTES, max_size=8), check_arriving),
    Property(
        "tokenizers",
        "tokenisers of four kinds on any text, there and back",
        st.tuples(st.sampled_from(("bpe", "unigram", "word", "char")), TEXTS),
        check_tokenizers,
    ),
    Property(
        "contract",
        "`translate` on any bytes: n lines in, n lines out, or one clear error",
        st.tuples(st.booleans(), BYTES, FLAGS),
        check_contract,
    ),
    Property("n_best", "n-best lists and links read back", st.tuples(BYTES, st.integers(2, 4)), check_n_best),
    Property("links", "Pharaoh links, written and read", st.tuples(LINKS, LINKS, TEXTS), check_links),
    Property("options", "files of options: any YAML, any bytes", YAML, check_options),
    Property(
        "folder",
        "model folders with flipped, cut, moved and changed contents",
        st.tuples(st.sampled_from(FILES), st.lists(HARM, min_size=1, max_size=3)),
        check_folder,
    ),
    Property(
        "archive",
        "saved states with flipped, cut, moved and changed contents",
        st.tuples(st.dictionaries(TEXTS, JSON_VALUES, max_size=3), st.lists(HARM, max_size=3)),
        check_archive,
    ),
]
