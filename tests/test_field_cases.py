"""Twenty-five ways in which trusted toolkits lose lines, models or nerves, and what happens here instead.

The cases were collected from the issue threads and sources of nine toolkits; each is met where a user would meet it, at
the command line. What stands for each is its behaviour here.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny
from cli_tools import Ran, mirada, refusal, reversals, works, write, write_pairs
from mirada.cli import main
from mirada.data.vocabulary import SPECIAL_TOKENS
from mirada.models.attention import masked_softmax
from mirada.search import run
from mirada.store import checkpoint
from mirada.store.checkpoint import Archive, read_archive, write_archive
from mirada.translator import Translator, load
from training_tools import PAIRS, SMALL, assert_same, different, trains, weights, write_data

ONE = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
LOOKING = pytest.mark.parametrize("model_folder", ["bahdanau", "luong", "transformer"], indirect=True)
SOURCES = "".join(f"{line}\n" for line in tiny.SOURCES)
WHITE = ["", " ", "\t", "\u00a0", "\u3000 \u2028"]


def translates(folder: Path, *options: object, given: str | bytes = SOURCES) -> list[str]:
    return works("translate", folder, "--device", "cpu", *options, given=given).lines


def train_on(place: Path, content: str | bytes | dict[str, bytes], *options: object) -> tuple[Path, Ran]:
    """Train one update on the bytes of a TSV file, or of the two files src and tgt."""
    files = content if isinstance(content, dict) else {"tsv": content.encode() if isinstance(content, str) else content}
    place.mkdir(exist_ok=True)
    flags: list[object] = ["--max-updates", 1, "--model-dir", place / "m", *options]
    for name, value in (SMALL | {"tokenizer": "word"}).items():
        flags += [f"--{name}", value]
    for name, value in files.items():
        (place / name).write_bytes(value)
        flags += [f"--{name}", place / name]
    return place / "m", mirada("train", *flags)


def rows(count: int = 20) -> list[str]:
    return [f"{source}\t{target}" for source, target in PAIRS[:count]]


def vocabulary(folder: Path, side: str = "source") -> dict[str, int]:
    content = json.loads((folder / f"{side}.json").read_text(encoding="utf-8"))
    return dict(content["model"]["vocab"])


# Input data


def test_case_01_empty_lines_shift_nothing(model_folder, tmp_path):
    """Training leaves out the whole pair, counts it and names its line; translating gives an empty line back."""
    sources, targets = ([pair[side] for pair in PAIRS[:20]] for side in (0, 1))
    sources[4], targets[9] = "", ""
    sides = {name: ("\n".join(side) + "\n").encode() for name, side in (("src", sources), ("tgt", targets))}
    folder, ran = train_on(tmp_path / "gaps", sides)
    assert ran.code == 0
    assert " (2 left out for a blank side: lines 5, 10)" in ran.errors
    whole = [f"{source}\t{target}" for source, target in zip(sources, targets, strict=True) if source and target]
    expected, _ = train_on(tmp_path / "whole", "\n".join(whole))
    assert_same(folder, expected)  # no later pair has moved
    outputs = translates(model_folder, given="the cat\n\na man\n")
    assert len(outputs) == 3
    assert outputs[1] == ""
    assert outputs[::2] == translates(model_folder, given="the cat\na man\n")


def test_case_02_blank_lines_are_the_same_for_every_system(model_folder):
    """Every system gives an empty line for a blank one, first, last, alone and in between."""
    for given in ("\n", "\n\n\n", " \nthe cat\n\t\n", "the cat\n\n"):
        outputs = translates(model_folder, "--batch-size", 1, given=given)
        assert [bool(line) for line in outputs] == [bool(line.strip()) for line in given.split("\n")[:-1]]


@pytest.mark.parametrize("blank", WHITE, ids=ascii)
def test_case_03_the_guard_against_blank_lines_guards(blank, tmp_path):
    """What Unicode calls blank trains nothing: no empty or white token gets into a vocabulary."""
    content = "\n".join([*rows(), f"{blank.replace(chr(9), ' ')}\ta b", f"a b\t{blank.replace(chr(9), ' ')}"])
    folder, ran = train_on(tmp_path, content)
    assert "(2 left out for a blank side: lines 21, 22)" in ran.errors
    assert all(token.strip() for token in vocabulary(folder))


@pytest.mark.parametrize("command", ["train", "score", "evaluate", "check"])
def test_case_04_unequal_counts_are_told_with_the_first_suspicious_line(command, model_folder, tmp_path):
    """Both counts, and the line where the files seem to part: never a silent cut at the shorter one."""
    lines = [("a " * (1 + n * 7 % 30)).strip() for n in range(200)]
    files = {"src": lines, "tgt": lines[:120] + lines[121:]}
    flags = [part for name, side in files.items() for part in (f"--{name}", write(tmp_path / name, side))]
    said = f"{tmp_path / 'src'} has 200 lines but {tmp_path / 'tgt'} has 199; by their lengths the files part at about"
    if command == "check":
        ran = mirada("data", "check", *flags)
        assert ran.code == 1
        assert said in ran.output
        line = ran.output.split(said)[1]
    else:
        line = refusal(command, *([] if command == "train" else [model_folder]), *flags)
        assert line.startswith(said)
        line = line.removeprefix(said)
    assert 110 <= int(re.match(r" line (\d+)", line)[1]) <= 121


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\v", "\f", "\x1c", "\x1d", "\x1e", "\0"], ids=ascii)
def test_case_05_only_the_line_feed_ends_a_line(char, tmp_path, tmp_path_factory):
    """As many sentences as `wc -l` counts, in training and in translating, whatever else looks like a line end."""
    content = "\n".join(line.replace(" ", f" x{char}y ", 1) for line in rows())
    _, ran = train_on(tmp_path, content)
    assert ran.code == 0
    assert "18 pairs\n" in ran.errors
    assert "2 dev pairs\n" in ran.errors
    folder = tiny.write_folder(tmp_path / "luong", "luong")
    assert len(translates(folder, given=f"the{char}cat\n{char}\na{char}man\n")) == 3


def test_case_06_windows_line_ends_train_the_same_model(tmp_path):
    """No carriage return becomes part of a token; what is written ends its lines with the line feed alone."""
    unix, _ = train_on(tmp_path / "unix", "\n".join(rows()) + "\n")
    windows, ran = train_on(tmp_path / "windows", "\r\n".join(rows()) + "\r\n")
    assert ran.code == 0
    assert_same(unix, windows)
    assert not any("\r" in token for side in ("source", "target") for token in vocabulary(windows, side))
    given = "a b c\r\n\r\nc d\r\n"
    ran = works("translate", windows, given=given)
    assert "\r" not in ran.output
    assert ran.lines == translates(unix, given=given.replace("\r", ""))


def test_case_07_a_byte_order_mark_is_no_part_of_the_first_token(tmp_path):
    """Files with and without the mark train the same model, and translate the same."""
    content = ("\n".join(rows()) + "\n").encode()
    plain, _ = train_on(tmp_path / "plain", content)
    marked, _ = train_on(tmp_path / "marked", b"\xef\xbb\xbf" + content)
    assert_same(plain, marked)
    assert translates(plain, given=b"\xef\xbb\xbfa b c\n") == translates(plain, given=b"a b c\n")


def test_case_08_composed_and_decomposed_letters_are_the_same(tmp_path):
    """The Unicode form is an option kept with the model (NFC): input in the other form gives the same output."""
    accented = [row.translate({ord("a"): "é", ord("b"): "ǔ", ord("c"): "ñ"}) for row in rows()]
    decomposed = [unicodedata.normalize("NFD", row) for row in accented]
    assert accented != decomposed
    folders = [train_on(tmp_path / name, "\n".join(side))[0] for name, side in (("nfc", accented), ("nfd", decomposed))]
    assert different(*(read_archive(folder / checkpoint.WEIGHTS).tensors for folder in folders)) == []
    given = "é ǔ ñ d\n"
    outputs = [translates(folders[0], given=unicodedata.normalize(form, given)) for form in ("NFC", "NFD")]
    assert outputs[0] == outputs[1] != ["<unk> <unk> <unk> d"]
    check = mirada("data", "check", "--tsv", write(tmp_path / "mixed.tsv", accented[:10] + decomposed[10:]))
    assert "NFC" in check.output


def test_case_09_a_quote_at_the_start_of_a_field_is_a_character(tmp_path):
    """Tab-separated means separated by tabs: no quoting swallows tabs and lines."""
    content = "\n".join(['"a b\tb a', 'a\t"b', '"a"\t"b', *rows()])
    folder, ran = train_on(tmp_path, content)
    assert ran.code == 0
    assert "21 pairs\n" in ran.errors  # of 23; two are split off
    scored = works("score", folder, "--tsv", tmp_path / "tsv", "--tokens").lines
    assert [json.loads(line)["line"] for line in scored] == list(range(1, 24))
    assert json.loads(scored[0])["tokens"] == ["b", "a", "</s>"]


def test_case_10_a_vocabulary_is_never_read_line_by_line(tmp_path):
    """White and empty entries of a vocabulary file are entries; one that would break lines is refused by name."""
    folder = tiny.write_folder(tmp_path / "m", "luong")
    path = folder / "target.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    vocab, last = content["model"]["vocab"], max(content["model"]["vocab"], key=content["model"]["vocab"].get)

    def with_entry(entry: str) -> None:
        renamed = {entry if token == last else token: index for token, index in vocab.items()}
        merges = [merge for merge in content["model"]["merges"] if "".join(merge) != last]
        path.write_text(json.dumps({**content, "model": {**content["model"], "vocab": renamed, "merges": merges}}))

    for entry in ("", "\u00a0", "#", "a\tb"):
        with_entry(entry)
        assert len(translates(folder)) == len(tiny.SOURCES)
    with_entry("a\nb")
    assert refusal("translate", folder) == f"{path}: one of its entries holds a line end"


def test_case_11_one_endless_line_kills_no_job(model_folder):
    """Longer than any in training, and 100,000 tokens: cut with a warning that names it, or refused under --strict."""
    lines = [tiny.SOURCES[n % 6] for n in range(1000)]
    lines[700] = "the cat sees " * 33_334
    lines[300] = "the cat sees " * 100
    given = "".join(f"{line}\n" for line in lines)
    options = ["--beam-size", 1, "--max-input-length", 200, "--max-output-length", 5, "--device", "cpu"]
    begun = time.monotonic()
    ran = works("translate", model_folder, *options, given=given)
    assert time.monotonic() - begun < 60
    assert len(ran.lines) == 1000
    assert re.fullmatch(
        r"mirada: line 301: \d+ tokens, cut to max_input_length 200\n"
        r"mirada: line 701: 433342 characters, cut to 200 tokens \(max_input_length 200\)\n"
        r"(mirada: \d+ of 1000 outputs reached the limit of their length before they ended \(see [^\n]*\)\n)?",
        ran.errors,
    )
    expected = translates(model_folder, *options, given="".join(f"{line}\n" for line in tiny.SOURCES))
    assert ran.lines[701:] == [expected[n % 6] for n in range(701, 1000)]
    strict = mirada("translate", model_folder, *options, "--strict", given=given)
    assert strict.code == 2
    assert re.fullmatch(r"mirada: line 301: .*, cut to max_input_length 200 \(--strict\)\n", strict.errors)


@LOOKING
def test_case_12_unknown_words_are_replaced_by_what_the_reader_sees(model_folder):
    """The surface form of the most attended source word: never <unk>, never </s>, never padding."""
    given = "漢字 ☃ Ωμέγα\n☃\nthe red fox sees 漢字 under the old tree, near the house\n"
    plain = translates(model_folder, "--min-output-length", 8, given=given)
    replaced = translates(model_folder, "--min-output-length", 8, "--replace-unk", given=given)
    if model_folder.name == "luong":
        assert any("<unk>" in line for line in plain)  # or this would show nothing
    assert not any(special in line for line in replaced for special in SPECIAL_TOKENS)


def test_case_13_a_vocabulary_of_other_text_is_told_before_training(tmp_path):
    """The share of unknown tokens of dev is printed at the start; above one half training does not start."""
    other = write_pairs(tmp_path / "dev.tsv", reversals(20, lengths=(2, 5), seed=1, symbols="pqrst"))
    _, ran = train_on(tmp_path / "far", "\n".join(rows()), "--dev-tsv", other)
    assert ran.code == 2
    assert "source tokens are not in the vocabulary; is it the same language, script and column as the" in ran.errors
    near = write_pairs(tmp_path / "near.tsv", [("a b c d p", "p d c b a"), ("b c d e", "e d c b")])
    folder, ran = train_on(tmp_path / "near", "\n".join(rows()), "--dev-tsv", near)
    assert f"{near}: 11.1% of source tokens are unknown\n" in ran.errors
    assert {"config.yaml", "source.json", "target.json", "model.safetensors"} <= {p.name for p in folder.iterdir()}


# Masks, batches, search


def test_case_14_the_batch_changes_nothing(model_folder):
    """Each sentence alone is translated as in any batch, in any order; limits are each sentence's own."""
    lines = [*tiny.SOURCES, "a", tiny.SOURCES[1] + " " + tiny.SOURCES[0]]
    together = translates(model_folder, "--n-best", 2, given="".join(f"{line}\n" for line in lines))
    for number, line in enumerate(lines):
        alone = translates(model_folder, "--n-best", 2, given=f"{line}\n")
        mine = [found.split(" ||| ")[1:] for found in together if found.startswith(f"{number} ||| ")]
        for (text, score), found in zip(mine, alone, strict=True):
            assert found.split(" ||| ")[1] == text
            assert float(found.split(" ||| ")[2]) == pytest.approx(float(score), abs=1.1e-4)


def test_case_15_padding_is_never_read(model_folder, tmp_path):
    """The log-probability of a short pair is its own beside a long one: no state, loss or weight sees padding."""
    pairs = [("a", "el"), (tiny.SOURCES[1], tiny.TARGETS[1]), ("the cat", "gato"), (tiny.SOURCES[0], "el")]
    path = write_pairs(tmp_path / "pairs.tsv", pairs)
    alone, together = (
        [float(line) for line in works("score", model_folder, "--tsv", path, "--batch-size", size).lines]
        for size in (1, 64)
    )
    assert together == pytest.approx(alone, abs=1e-4)


@LOOKING
def test_case_16_nothing_to_look_at_is_no_nan(model_folder, tmp_path):
    """A softmax over nothing is zeros, with a gradient of zeros; blank lines have no weights, and no NaN is written."""
    scores = torch.randn(2, 3, requires_grad=True)
    found = masked_softmax(scores, torch.tensor([[True, True, False], [False, False, False]]))
    found.square().sum().backward()
    assert found[1].tolist() == [0.0, 0.0, 0.0]
    assert torch.isfinite(scores.grad).all()
    assert scores.grad[1].tolist() == [0.0, 0.0, 0.0]
    translates(model_folder, "--save-attention", tmp_path / "a.jsonl", given="\nthe cat\n \n")
    text = (tmp_path / "a.jsonl").read_text(encoding="utf-8")
    assert "NaN" not in text
    found = [json.loads(line)["attention"] for line in text.splitlines()]
    assert found[0] == found[2] == []
    assert found[1]


def test_case_17_what_never_ends_is_given_as_far_as_it_came(model_folder):
    """The best unfinished output, marked so; no made-up one fills an n-best list; n_best above beam_size is refused."""
    (found,) = load(model_folder, device="cpu").search(
        [tiny.SOURCES[0]], options=load(model_folder).config.search.model_copy(update={"max_output_length": 1})
    )
    assert [output.finished for output in found] == [False]
    lines = translates(model_folder, "--max-output-length", 1, "--min-output-length", 1, "--n-best", 3)
    assert len(lines) == 3 * len(tiny.SOURCES)
    assert not any("<pad>" in line for line in lines)
    message = "n_best 4 is larger than beam_size 3; n_best must be 1 to beam_size"
    assert refusal("translate", model_folder, "--n-best", 4) == message
    # A vocabulary of 60, two of which are never said, has 58 outputs of at most one token: no more come back.
    options = ["--max-output-length", 1, "--beam-size", 1000, "--n-best", 1000]
    assert len(translates(model_folder, *options, given="the cat\n")) == 58


def test_case_18_every_hypothesis_has_its_own_length(model_folder):
    """A score is the log-probability that `score` gives, divided by the penalty of the output's own length."""
    found = load(model_folder, device="cpu").search(tiny.SOURCES)
    for outputs in found:
        for output in outputs:
            penalty = (5 + len(output.token_log_probabilities)) / 6
            assert output.score == pytest.approx(output.log_probability / penalty, abs=1e-6)
            assert output.log_probability == pytest.approx(sum(output.token_log_probabilities), abs=1e-5)
    assert len({len(outputs[0].tokens) for outputs in found}) > 1
    greedy = translates(model_folder, "--beam-size", 1)
    assert greedy == load(model_folder, device="cpu").translate(tiny.SOURCES, beam_size=1)


@ONE
def test_case_19_too_big_a_batch_is_halved(model_folder, monkeypatch):
    """A batch that memory cannot hold is halved and tried again; where one alone cannot be held, its line is named."""
    expected = translates(model_folder)
    real, sizes = run.Track._encoded, []

    def small(self: run.Track, tasks: list[object], *rest: object) -> object:
        sizes.append(len(tasks))
        if sizes[-1] > most:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes")
        return real(self, tasks, *rest)

    monkeypatch.setattr(run.Track, "_encoded", small)
    most = 2
    assert translates(model_folder) == expected
    assert max(sizes) > most
    assert 6 <= sum(size for size in sizes if size <= most) <= 12  # each sentence, and none over and over
    most = 0
    line = refusal("translate", model_folder, given=SOURCES)
    assert re.fullmatch(r"line \d \(\d+ tokens\): too little memory even for this one alone", line)


# Checkpoints, runs


@pytest.mark.parametrize("decoder", list(tiny.MODELS))
def test_case_20_stopped_and_gone_on_is_never_stopped(decoder, tmp_path):
    """N updates are k updates and N − k more, bit for bit: weights, optimiser, random state, place in the data."""
    data = write_data(tmp_path)
    options = {"decoder": decoder, "dropout": 0.3, "valid-every": 4, "save-every": 1, "num-heads": 2}
    options = options if decoder == "transformer" else {k: v for k, v in options.items() if k != "num-heads"}
    whole = trains(tmp_path / "whole", data, options, {"max-updates": 16})
    trains(tmp_path / "parts", data, options, {"max-updates": 8})
    said = trains(tmp_path / "parts", data, options, {"max-updates": 16})
    assert "going on after update 8\n" in said
    assert_same(tmp_path / "whole", tmp_path / "parts")
    assert whole.splitlines()[-1] == said.splitlines()[-1]


def test_case_21_one_seed_decides_everything(tmp_path):
    """The same command makes the same folder, byte by byte; another seed makes another."""
    data = write_data(tmp_path)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        trains(tmp_path / name, data, {"epochs": 2, "dropout": 0.3, "seed": seed})
    a, b, c = ((tmp_path / name / checkpoint.WEIGHTS).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_case_22_a_folder_from_a_gpu_loads_and_goes_on_without_one(tmp_path):
    """Nothing in a folder says where a tensor was, and nothing in it is pickled; a GPU's random state is left alone.

    Stands in for a real GPU: the options say cuda, and the saved state holds a GPU's random numbers.
    """
    data = write_data(tmp_path)
    folder = tmp_path / "m"
    trains(folder, data, {"max-updates": 4})
    expected = translates(folder, given="a b c\n")
    config = (folder / checkpoint.CONFIG).read_text(encoding="utf-8")
    (folder / checkpoint.CONFIG).write_text(config.replace("device: cpu", "device: cuda:0"), encoding="utf-8")
    state = read_archive(folder / checkpoint.RESUME)
    tensors = {**state.tensors, "random_cuda": torch.zeros(16, dtype=torch.uint8)}
    write_archive(folder / checkpoint.RESUME, Archive(tensors, state.metadata))
    assert translates(folder, given="a b c\n") == expected
    assert "going on after update 4\n" in trains(folder, data, {"max-updates": 5})
    if not torch.cuda.is_available():
        message = "device 'cuda:0': this machine has 0 CUDA devices; use auto or cpu"
        assert refusal("translate", folder, "--device", "cuda:0") == message


def test_case_23_weights_and_vocabulary_belong_together(tmp_path):
    """Translating changes no file of the model; a vocabulary of another model is named, same size or not."""
    data = write_data(tmp_path)
    trains(tmp_path / "m", data, {"max-updates": 2})
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    translates(tmp_path / "m", given="a b z\n")
    works("score", tmp_path / "m", "--tsv", data["tsv"])
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before
    path = tmp_path / "m" / "target.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"a"', '"z"'), encoding="utf-8")
    message = "not the tokeniser that model.safetensors was trained with; it was altered, or is of another model"
    assert refusal("translate", tmp_path / "m") == f"{path}: {message}"
    other = tiny.write_folder(tmp_path / "other", "luong")
    shutil.copy(other / "target.json", path)
    assert refusal("translate", tmp_path / "m") == f"{path}: a tokeniser of the kind BPE, but the options say word"


@LOOKING
@pytest.mark.parametrize("flags", [["--beam-size", 1], ["--beam-size", 3], ["--beam-size", 3, "--n-best", 3]])
def test_case_24_attention_comes_out_with_its_tokens(model_folder, flags, tmp_path):
    """For greedy, beam and n-best: a row for each token of exactly this output, a column for each source token."""
    outputs = translates(model_folder, *flags, "--save-attention", tmp_path / "a.jsonl")
    looked = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(looked) == len(outputs)
    translator = load(model_folder, device="cpu")
    for row, line in zip(looked, outputs, strict=True):
        found = np.array(row["attention"])
        assert found.shape == (len(row["target"]), len(row["source"]))
        assert row["source"][-1] == "</s>"
        np.testing.assert_allclose(found.sum(1), 1, atol=1e-4)
        text = line.split(" ||| ")[1] if "--n-best" in flags else line
        assert translator.target_tokenizer.join(token for token in row["target"] if token != "</s>") == text
    (forced,) = translator.score(["the cat"], ["el gato"], with_attention=True)
    assert forced.attention.shape == (len(forced.tokens), len(forced.source_tokens))


def test_case_25_a_misspelt_option_is_met_by_the_right_one(model_folder, tmp_path):
    """In a file, as a flag, at the top or in the wrong block; and every mistake in data names file and line."""
    config = tmp_path / "c.yaml"
    for text, message in (
        ("model: {hiden_size: 3}", "unknown option 'model.hiden_size'; did you mean 'hidden_size'?"),
        ("batch_size: 3", "unknown option 'batch_size'; did you mean 'training.batch_size'?"),
        ("training: {dropout: 0.1}", "unknown option 'training.dropout'; did you mean 'model.dropout'?"),
    ):
        config.write_text(text, encoding="utf-8")
        assert refusal("train", config) == f"{config}: {message}"
    flag = refusal("translate", model_folder, "--beamsize", 3)
    assert flag == "unknown argument '--beamsize'; did you mean '--beam-size'?; see `mirada translate --help-all`"
    bad = tmp_path / "bad.tsv"
    bad.write_bytes(b"a\tb\nc\td\nd\t\xff\n")
    assert refusal("train", "--tsv", bad) == f"{bad}:3: byte 0xff at column 3 is not UTF-8; {CONVERT}"
    bad.write_bytes(b"a\tb\nc\n")
    assert refusal("train", "--tsv", bad) == f"{bad}:2: 1 column, expected at least 2, separated by tabs"


CONVERT = "convert the file to UTF-8 (e.g. iconv -f latin1 -t utf-8)"


# More of the same kind


@ONE
def test_bytes_that_are_no_text_name_line_and_column(model_folder):
    """What stands before such a line is translated and comes out first."""
    ran = mirada("translate", model_folder, "--device", "cpu", given=b"the cat\na man\nol\xe9\nthe fox\n")
    assert ran.code == 2
    assert ran.lines == translates(model_folder, given="the cat\na man\n")
    assert ran.errors == f"mirada: standard input:3: byte 0xe9 at column 3 is not UTF-8; {CONVERT}\n"


@ONE
def test_a_line_of_megabytes_is_refused_before_it_fills_the_memory(model_folder):
    ran = mirada("translate", model_folder, "--device", "cpu", given=b"the cat\n" + bytes(20_000_000))
    assert ran.code == 2
    assert ran.errors == (
        "mirada: standard input:2: a line of more than 16,777,216 bytes; is this a text with line ends?\n"
    )


@ONE
def test_the_input_is_never_emptied_by_its_own_output(model_folder, tmp_path):
    path = write(tmp_path / "a", tiny.SOURCES)
    message = f"{path}: given twice, to be read and written or to be written by two; choose another"
    assert refusal("translate", model_folder, "--input", path, "--output", path) == message
    assert refusal("translate", model_folder, "--input", path, "--save-attention", path) == message
    (tmp_path / "link").symlink_to(path)
    assert "given twice" in refusal("translate", model_folder, "--input", path, "--output", tmp_path / "link")
    assert path.read_bytes() == SOURCES.encode()


@ONE
def test_a_batch_of_nothing_is_refused(model_folder):
    for size in (0, -1, "x"):
        message = f"argument --batch-size: expected a number from 1 up, got '{size}'; see `mirada translate --help`"
        assert refusal("translate", model_folder, f"--batch-size={size}") == message


@ONE
def test_half_a_surrogate_pair_is_no_text(model_folder):
    """Only Python can hand such a text over; it is named."""
    translator: Translator = load(model_folder, device="cpu")
    with pytest.raises(Exception, match=r"^text 2 is no text that Unicode can write: 'a\\ud800'$") as caught:
        translator.translate(["the cat", "a\ud800"])
    assert type(caught.value).__name__ == "DataError"


def test_a_training_goes_on_when_nobody_reads_its_notes(tmp_path, monkeypatch):
    """`mirada train … 2>&1 | head` ends the notes, not the training."""

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    data = write_data(tmp_path)
    trains(tmp_path / "heard", data, {"max-updates": 3})
    flags = [part for name, value in (SMALL | data).items() for part in (f"--{name}", str(value))]
    monkeypatch.setattr("sys.stderr", Gone())
    assert main(["train", *flags, "--max-updates", "3", "--model-dir", str(tmp_path / "unheard")]) == 0
    monkeypatch.undo()
    assert_same(tmp_path / "heard", tmp_path / "unheard")


def test_a_finished_model_is_never_overwritten_by_a_new_start(tmp_path):
    """A model that was copied without its saved state is no training to go on with, and none to start anew on."""
    data = write_data(tmp_path)
    trains(tmp_path / "m", data, {"max-updates": 3})
    before = weights(tmp_path / "m")
    (tmp_path / "m" / checkpoint.RESUME).rename(tmp_path / "away")
    flags = [part for name, value in (SMALL | data).items() for part in (f"--{name}", str(value))]
    line = refusal("train", *flags, "--max-updates", 3, "--model-dir", tmp_path / "m")
    assert line == (
        f"{tmp_path / 'm'} holds a model, but not the resume.safetensors to go on with; choose another model_dir"
    )
    (tmp_path / "away").rename(tmp_path / "m" / checkpoint.RESUME)
    assert different(weights(tmp_path / "m"), before) == []


@ONE
def test_standard_streams_that_are_closed(model_folder, monkeypatch, capsys):
    """Python gives None for a stream that was closed by whoever started it (`<&-`)."""
    monkeypatch.setattr("sys.stdin", None)
    assert main(["translate", str(model_folder), "--device", "cpu"]) == 2
    assert capsys.readouterr().err == "mirada: standard input is closed; give --input, or something to read\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the cat\n")))
    monkeypatch.setattr("sys.stdout", None)
    assert main(["translate", str(model_folder), "--device", "cpu"]) == 2
    assert capsys.readouterr().err == "mirada: standard output is closed; give --output\n"
