"""`mirada translate`: n lines in, n lines out, whatever is in them; and everything that can stand beside an output."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

import mirada as package
import tiny
from cli_tools import ENVIRONMENT, Ran, command, mirada, process, works, write
from mirada.cli import main
from mirada.config.options import SearchConfig
from mirada.models.luong import Luong
from mirada.search.scheduler import Scheduler
from mirada.translator import Translation, load

GIVEN = "".join(f"{line}\n" for line in tiny.SOURCES)
ODD = ["the cat", "", "a\u2028man", "\u2028", " ", "the\x0b\x0c\x1c\x85fox", "a\rb", "\ufeff", "ñ ü 猫 🦊", "<s> </s>"]
looking = pytest.mark.parametrize("model_folder", ["bahdanau", "luong", "transformer"], indirect=True)
one_model = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)


def translates(folder: Path, *options: object, given: str | bytes = GIVEN) -> list[str]:
    return works("translate", folder, "--device", "cpu", *options, given=given).lines


def test_lines_out_are_lines_in(model_folder):
    """The same whether many are searched together or each alone, and as Python has them."""
    outputs = translates(model_folder)
    assert outputs == translates(model_folder, "--batch-size", 1) == load(model_folder).translate(tiny.SOURCES)
    assert outputs == translates(model_folder, "--batch-size", "auto")
    for option in ([], ["--replace-unk"] if model_folder.name != "classic" else []):
        odd = translates(model_folder, *option, given="\n".join(ODD))
        assert len(odd) == len(ODD)
        assert [bool(line.strip()) for line in ODD[:7]] == [True, False, True, False, False, True, True]
        assert odd[1] == odd[4] == ""
        assert odd[0] != ""


@one_model
def test_a_terminal_is_told_what_to_type(model_folder, monkeypatch, capsys):
    ours, theirs = os.openpty()
    os.write(ours, b"the cat\n\x04")
    with open(theirs, encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        assert main(["translate", str(model_folder), "--device", "cpu"]) == 0
    os.close(ours)
    said = capsys.readouterr()
    assert said.err.startswith("mirada: type a line and Enter for its translation; Ctrl-D ends\n")
    assert said.out.splitlines() == load(model_folder, device="cpu").translate(["the cat"])


@one_model
@pytest.mark.parametrize(
    "given",
    [
        b"the cat\na man\n",
        b"the cat\na man",
        b"the cat\r\na man\r\n",
        b"\xef\xbb\xbfthe cat\na man\n",
        b"\xef\xbb\xbfthe cat\r\na man",
    ],
)
def test_marks_and_line_ends_are_no_text(given, model_folder, tmp_path):
    expected = load(model_folder, device="cpu").translate(["the cat", "a man"])
    assert translates(model_folder, given=given) == expected
    (tmp_path / "given").write_bytes(given)
    assert translates(model_folder, "--input", tmp_path / "given", given="") == expected
    assert translates(model_folder, "--src", tmp_path / "given", "--output", tmp_path / "out", given="") == []
    assert (tmp_path / "out").read_bytes().decode() == "".join(f"{line}\n" for line in expected)


@one_model
def test_nothing_in_nothing_out(model_folder):
    assert translates(model_folder, given="") == []
    assert translates(model_folder, given="\n") == [""]


def test_several_outputs_a_line(model_folder):
    """`id ||| text ||| score`, as Python has them, and the best is the one that a single output would be."""
    options = ["--beam-size", 4]
    best = [line.split("\t") for line in translates(model_folder, *options, "--scores", given=f"\n{GIVEN}")]
    rows = [line.split(" ||| ") for line in translates(model_folder, *options, "--n-best", 3, given=f"\n{GIVEN}")]
    assert best[0] == ["", "0.0000"]
    assert rows[0] == ["0", *best[0]]
    search = load(model_folder, device="cpu").config.search.model_copy(update={"beam_size": 4, "n_best": 3})
    for number, outputs in enumerate(load(model_folder, device="cpu").search(tiny.SOURCES, options=search), start=1):
        own = [row[1:] for row in rows if row[0] == str(number)]
        assert own == [[output.text, f"{output.score:.4f}"] for output in outputs]
        assert own[0] == best[number]
        order = [(not output.finished, -output.score) for output in outputs]
        assert order == sorted(order)  # what was cut at the limit comes last
    assert [int(row[0]) for row in rows] == [0, *(number for number in range(1, 7) for _ in range(3))]


@looking
def test_attention_as_json(model_folder, tmp_path):
    """A row of weights for each output token, over the source tokens and </s>, that sums to one."""
    saved = tmp_path / "attention.jsonl"
    outputs = translates(model_folder, "--save-attention", saved, given=f"{GIVEN}\n")
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    tokenizer = load(model_folder, device="cpu").target_tokenizer
    assert [row["line"] for row in rows] == list(range(7))
    assert (rows[-1]["source"], rows[-1]["target"], rows[-1]["attention"]) == (["</s>"], ["</s>"], [])
    for row, output in zip(rows[:-1], outputs, strict=False):
        assert row["source"][-1] == "</s>"
        assert len(row["attention"]) == len(row["target"])
        for weights in row["attention"]:
            assert len(weights) == len(row["source"])
            assert sum(weights) == pytest.approx(1, abs=1e-5)
        assert tokenizer.join(token for token in row["target"] if token != "</s>") == output


@looking
def test_weights_beside_the_output(model_folder, tmp_path):
    saved = tmp_path / "attention.jsonl"
    lines = translates(model_folder, "--alignment", "soft", "--save-attention", saved)
    for line, row in zip(lines, map(json.loads, saved.read_text().splitlines()), strict=True):
        weights = [[float(weight) for weight in part.split(",")] for part in line.split(" ||| ")[1].split()]
        assert weights == [pytest.approx(expected, abs=1e-4) for expected in row["attention"]]


@looking
def test_links_beside_the_output(model_folder):
    """Links name words of the source and of the output, from 0, as the API has them."""
    translator = load(model_folder, device="cpu")
    found = [outputs[0] for outputs in translator.search(tiny.SOURCES, with_attention=True)]
    lines = translates(model_folder, "--alignment", "hard", given=f"{GIVEN}\n")
    assert lines == [f"{output.text} ||| {translator.word_links(output)}" for output in found] + [" ||| "]
    for source, line in zip(tiny.SOURCES, lines, strict=False):
        output, links = line.split(" ||| ")
        for i, j in (link.split("-") for link in links.split()):
            assert int(i) < len(source.split())
            assert int(j) < len(output.split())


@one_model
def test_flags_in_other_spellings(model_folder):
    expected = translates(model_folder, "--n-best", 2, "--beam-size", 2)
    assert translates(model_folder, "--n_best=2", "--search.beam_size", 2) == expected
    assert translates(model_folder, "--search.n-best=2", "--beam_size=2") == expected


@one_model
def test_a_line_that_is_too_long(model_folder):
    """It is cut with a warning, or refused where that was asked for."""
    options = ["--device", "cpu", "--max-input-length", 3, "--batch-size", 2]
    ran = works("translate", model_folder, *options, given=GIVEN)
    assert len(ran.lines) == 6
    said = re.findall(r"^mirada: line (\d): \d+ tokens, cut to max_input_length 3$", ran.errors, re.MULTILINE)
    assert said == list("123456")
    strict = mirada("translate", model_folder, "--device", "cpu", "--max-input-length", 3, "--strict", given=GIVEN)
    assert (strict.code, strict.output) == (2, "")
    assert strict.errors.endswith("cut to max_input_length 3 (--strict)\n")


# As a process


@one_model
def test_a_pipe_gives_the_same_bytes(model_folder):
    given = "\n".join(ODD).encode()
    ran = process("translate", model_folder, "--device", "cpu", given=given)
    assert ran.lines == translates(model_folder, given=given)
    assert all(line.startswith("mirada: ") for line in ran.errors.splitlines()), "notes about lines only"


@pytest.mark.slow
@one_model
@pytest.mark.parametrize("name", ["translate", "score"])
def test_a_reader_that_has_enough(name, model_folder, tmp_path):
    """`| head -1`: no complaint, and no wait for the rest."""
    many = [write(tmp_path / side, lines * 300) for side, lines in (("s", tiny.SOURCES), ("t", tiny.TARGETS))]
    files = ["--input", many[0]] if name == "translate" else ["--src", many[0], "--tgt", many[1], "--tokens"]
    line = command(name, model_folder, "--device", "cpu", *files)
    running = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    assert running.stdout.readline().endswith(b"\n")
    running.stdout.close()
    errors = running.stderr.read()
    running.stderr.close()
    assert (running.wait(60), errors) == (0, b"")


@pytest.mark.parametrize("words", ["--help", "--version", "train --help", "data"])
def test_a_reader_that_never_read(words):
    """What is written only at the very end (a short help) may meet a closed pipe too."""
    running = subprocess.Popen(command(*words.split()), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
    running.stdout.close()
    errors = running.stderr.read()
    running.stderr.close()
    assert (running.wait(60), errors) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_the_output():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command("--help"), stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (2, b"mirada: standard output: No space left on device\n")


# What is said about the lines, and files by their names


def notes(ran: Ran) -> list[str]:
    return [line.removeprefix("mirada: ") for line in ran.errors.splitlines()]


@one_model
def test_words_never_seen_are_counted_line_by_line_and_then_together(model_folder):
    long = ("--max-output-length", 200)
    few = works("translate", model_folder, *long, given="the cat 猫\nthe cat\nΩ 猫\n")
    assert notes(few)[:2] == [
        "line 1: 1 of 3 words never seen in training",
        "line 3: 2 of 2 words never seen in training",
    ]
    many = works("translate", model_folder, *long, given="猫\n" * 7)
    said = [f"line {n}: 1 of 1 words never seen in training" for n in (1, 2, 3)]
    assert notes(many)[:4] == [*said, "7 of 7 lines hold words never seen in training"]


@one_model
def test_outputs_at_their_limit_are_counted(model_folder):
    ran = works("translate", model_folder, "--max-output-length", 1, "--beam-size", 1, given=GIVEN)
    unfinished = sum(not found[0].finished for found in searched(model_folder))
    what = "reached the limit of their length before they ended (see --max-output-length, --max-length-ratio)"
    assert unfinished
    assert notes(ran) == [f"{unfinished} of {len(tiny.SOURCES)} outputs {what}"]


def searched(folder: Path) -> list[list[Translation]]:
    return load(folder, device="cpu").search(tiny.SOURCES, options=SearchConfig(beam_size=1, max_output_length=1))


@one_model
@pytest.mark.parametrize(("name", "opened"), [("out.gz", gzip.open), ("out.xz", lzma.open), ("out.GZ", gzip.open)])
def test_a_name_that_promises_a_format_gets_it(model_folder, tmp_path, name, opened):
    expected = translates(model_folder)
    assert translates(model_folder, "--output", tmp_path / name) == []
    with opened(tmp_path / name, "rt", encoding="utf-8") as stream:
        assert stream.read() == "".join(f"{line}\n" for line in expected)
    assert translates(model_folder, "--input", tmp_path / name, given="")


@one_model
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("flag", ["--output", "--save-attention"])
def test_a_full_disk_is_told_by_the_file_s_name(model_folder, flag):
    ran = mirada("translate", model_folder, flag, "/dev/full", given=GIVEN)
    assert ran.code == 2
    assert notes(ran)[-1] == "/dev/full: cannot be written (No space left on device)"


@one_model
def test_forced_beginnings_from_a_file(model_folder, tmp_path):
    begins = write(tmp_path / "begins", ["el gato", "", "un libro", "", "", ""])
    outputs = translates(model_folder, "--prefix-file", begins)
    free = translates(model_folder)
    assert outputs[0].startswith("el gato")
    assert outputs[2].startswith("un libro")
    assert [outputs[i] for i in (1, 3, 4, 5)] == [free[i] for i in (1, 3, 4, 5)]
    few = mirada("translate", model_folder, "--prefix-file", write(tmp_path / "few", ["a"]), given=GIVEN)
    assert (few.code, notes(few)[-1]) == (2, "1 prefixes, and more lines; each line needs one, or an empty one")
    many = mirada("translate", model_folder, "--prefix-file", write(tmp_path / "many", ["a"] * 9), given=GIVEN)
    assert (many.code, notes(many)[-1]) == (2, f"{tmp_path / 'many'}: more lines than the input, which has 6")


@one_model
def test_replacing_unknown_words_by_a_model_that_writes_none(model_folder):
    ran = works("translate", model_folder, "--replace-unk", "true", given="the cat\n")
    what = "replace_unk: this model writes pieces of words, so it writes no <unk> and nothing will be replaced"
    assert notes(ran)[0] == what


@one_model
def test_symbols_are_joined_back(model_folder):
    plain = translates(model_folder)
    assert translates(model_folder, "--join-output") == ["".join(line.split()) for line in plain]
    assert any(" " in line for line in plain)


@one_model
def test_a_sentence_passes_few_frames_on_its_way_to_the_decoder(model_folder, monkeypatch):
    """As docs/architecture.md counts them: until the scheduler has the request, and in its thread to the first step."""
    root, ways = Path(package.__file__).parent, []

    def watch(owner, verb):
        inner = getattr(owner, verb)

        def watched(*given, **named):
            ways.append([frame.filename for frame in traceback.extract_stack() if root in Path(frame.filename).parents])
            return inner(*given, **named)

        monkeypatch.setattr(owner, verb, watched)

    watch(Scheduler, "search")
    watch(Luong, "step")
    translates(model_folder, given="the cat\n")
    submitted, stepped = ways[:2]
    assert len(submitted) + 1 + len(stepped) + 1 <= 14
    assert len({*submitted, *stepped}) + 2 <= 9  # and those of the scheduler and of the model
