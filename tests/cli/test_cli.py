"""The command line from outside: quick help, one line for a mistake, and numbers that others give too."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import tiny
from cli_tools import ENVIRONMENT, Ran, command, mirada, one_line, process, refusal, works, write, write_pairs
from mirada.cli import COMMANDS
from mirada.config.configfile import BLOCKS
from mirada.translator import load

HEAVY = {"torch", "numpy", "pydantic", "yaml", "rich", "tokenizers", "safetensors", "sacrebleu"}
one_model = pytest.mark.parametrize("model_folder", ["luong"], indirect=True)

# Help


def test_help_loads_nothing_heavy():
    """What takes long is loading libraries, so there is none of them."""
    line = [sys.executable, "-X", "importtime", *command("--help")[1:]]
    done = subprocess.run(line, capture_output=True, env=ENVIRONMENT, text=True, check=True)
    loaded = {row.split("|")[-1].strip().split(".")[0] for row in done.stderr.splitlines()}
    assert "mirada" in loaded
    assert loaded & HEAVY == set()
    assert done.stdout == works("--help").output


def test_help_of_the_commands_loads_no_torch():
    program = (
        "import sys\nfrom mirada.cli import COMMANDS, main\n"
        "for words in [*map(str.split, COMMANDS), ['data', 'make'], ['data', 'check']]:\n"
        "    assert main([*words, '--help']) == 0\n"
        "print(sorted({'torch', 'tokenizers', 'sacrebleu', 'matplotlib'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=ENVIRONMENT, text=True, check=True)
    assert done.stderr == "[]\n"
    assert done.stdout.count("usage: mirada ") == len(COMMANDS) + 2


def test_help_tells_every_option_its_default_and_its_values():
    text = works("train", "--help-all").output
    words = " ".join(text.split())
    assert "--hidden-size N width of the recurrent decoder's state (unless given: by the pairs) [512]" in words
    assert "--decoder classic|bahdanau|luong|transformer\n" in text
    for block, options in BLOCKS.items():
        for name in options.model_fields:
            assert len(re.findall(rf"^  --{name.replace('_', '-')}[, ]", text, re.MULTILINE)) == (block != "serve"), (
                name
            )


def test_help_shows_examples_and_the_usual_options_first():
    short, everything = (works("train", flag).output for flag in ("--help", "--help-all"))
    assert short.index("examples:") < short.index("positional arguments:") < short.index("\n  --src")
    assert "--model-dir" in short
    assert "--plateau-patience" in everything
    assert "--plateau-patience" not in short
    hidden = len(re.findall("^  --", everything, re.MULTILINE)) - len(re.findall("^  --", short, re.MULTILINE))
    assert f"{hidden} more options: mirada train --help-all\n" in short
    assert "more options" not in works("average", "--help").output
    assert "training pairs" not in works("score", "--help-all").output


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("train --lr 3", "unknown argument '--lr'; did you mean '--learning-rate'?; see `mirada train --help-all`"),
        ("train --source a", "unknown argument '--source'; did you mean '--src'?; see `mirada train --help-all`"),
        ("train --attention dot", "unknown argument '--attention'; did you mean '--score'?; see `mirada train"),
        ("explain model how are you", "how: no such model folder; a text of several words stands in quotes"),
        ("translate two", "two: a file, expected a model folder; texts to translate are read from standard input"),
        ("translate model/model.safetensors", "model/model.safetensors: a file of a model; give its folder, model"),
        ("translate .", ".: not a model folder (config.yaml is missing; it holds the models model)"),
        ("translate model how are you", "how: no such model folder; a text to translate is read from standard input"),
        ("evaluate model --src two", "--src without --tgt; give pairs as --src and --tgt, or --tsv, or"),
        ("train --tsv two --dev-tgt two", "--dev-tgt without --dev-src; give pairs as --dev-src and --dev-tgt, or"),
        ("compare --models model --out x --test-src two", "--test-src without --test-tgt; give pairs as --test-src"),
    ],
)
@one_model
def test_what_a_person_would_type_next_is_answered(line, answer, folder):
    assert refusal(*line.split(), given="a\n").startswith(answer)
    assert works("--help").output == works("help").output == works("-h").output


def test_no_command_is_a_mistake_that_help_answers():
    assert mirada() == Ran(2, works("--help").output, "")


def test_version():
    assert works("--version").output == works("version").output == f"mirada {version('mirada')}\n"
    assert process("--version") == works("--version")


# Mistakes


@pytest.fixture
def folder(tmp_path: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model and with files that do not fit each other, to be in."""
    (tmp_path / "model").symlink_to(model_folder)
    (tmp_path / "empty").mkdir()
    write(tmp_path / "two", ["a", "b"])
    write(tmp_path / "three", ["a", "b", "c"])
    write(tmp_path / "bad.yaml", ["model:", "  hiden_size: 3"])
    write(tmp_path / "worse.yaml", ["model: ["])
    monkeypatch.chdir(tmp_path)
    return tmp_path


TRAIN = "train --model-dir new "
MISTAKES = {
    "trian": "unknown command 'trian'; did you mean 'train'?; `mirada --help` lists them",
    "data chekc": "unknown action 'chekc'; did you mean 'check'?; `mirada data` knows make, check, prepare and invent",
    "train --hiden-size 4": "unknown argument '--hiden-size'; did you mean '--hidden-size'?; see ",
    "translate": "give a model folder, or --server URL; see `mirada translate --help`",
    "train --hidden-size": "argument --hidden-size/--model.hidden-size: expected one argument; see ",
    TRAIN + "--hidden-size big": "options: model.hidden_size: input should be a valid integer",
    TRAIN + "--hidden-size 0": "options: model.hidden_size: input should be greater than or equal to 1 (got '0')",
    TRAIN + "--decoder lstm": "options: model.decoder: input should be 'classic', 'bahdanau', 'luong' or 'transformer'",
    TRAIN + "--decoder classic --score dot": "options: score dot with decoder classic, which has no attention; leave ",
    TRAIN + "--early-stopping-metric bleu": "options: early_stopping_metric bleu is not computed; use loss, or name ",
    TRAIN: "no training pairs: give them as --src and --tgt, or --tsv, or --jsonl, or --dataset",
    TRAIN + "--src two": "--src without --tgt; give pairs as --src and --tgt, or --tsv, or --jsonl, or --dataset",
    TRAIN + "--tsv none.tsv": "none.tsv: no such file",
    TRAIN + "--tsv two": "two:1: 1 column, expected at least 2, separated by tabs",
    TRAIN + "--src two --tgt three": "two has 2 lines but three has 3; line 3 is the first that only three has",
    TRAIN + "none.yaml": "none.yaml: no such file",
    TRAIN + "bad.yaml": "bad.yaml: unknown option 'model.hiden_size'; did you mean 'hidden_size'?",
    TRAIN + "worse.yaml": "worse.yaml:2: not valid YAML (",
    "train --model-dir two --tsv two": "two: cannot be made (File exists); choose another --model-dir",
    "translate none": "none: no such model folder",
    "translate two": "two: a file, expected a model folder; texts",
    "translate empty": "empty: not a model folder (config.yaml is missing)",
    "translate model --input none": "none: no such file",
    "translate model --input empty": "empty: is a directory, expected a file",
    "translate model --output no/where": "no/where: cannot be written (No such file or directory)",
    "translate model --batch-size 0": "argument --batch-size: expected a number from 1 up, got '0'; see ",
    "translate model --n-best 4": "n_best 4 is larger than beam_size 3; n_best must be 1 to beam_size",
    "translate model --alignment firm": "argument --alignment: invalid choice: 'firm'",
    "translate model --device gpu9": "device 'gpu9' is unknown; use auto, cpu, cuda or cuda:N",
    "score model --src two --tgt three": "two has 2 lines but three has 3; line 3 is the first that only three has",
    "score model": "no input pairs: give them as --src and --tgt, or --tsv, or --jsonl, or --dataset",
    "evaluate": "give either a model folder with --src/--tgt (or --tsv, --jsonl), or --hyp with --ref",
    "evaluate --hyp two": "--hyp needs --ref, a file of references",
    "evaluate two --ref two": "--ref goes with --hyp; a model's references are given by --tgt (or --tsv, --jsonl)",
    "evaluate --hyp two --ref two --tgt two": "--tgt beside --ref: two ways to name the references; give one of them",
    "evaluate --hyp two --ref two --beam-size 2": "--beam-size goes with a model folder; with --hyp it would change",
    "evaluate --hyp two --ref two --save-outputs x": "--save-outputs goes with a model folder; with --hyp it would",
    "evaluate --hyp two --ref three": "two has 2 lines and three has 3; they must be equal",
    "evaluate --hyp two --ref two --metrics blue": "unknown metric 'blue'; did you mean 'bleu'? (valid: bleu, ",
    "evaluate empty --src two --tgt two": "empty: not a model folder (config.yaml is missing)",
    "compare --out x --models model --budget 5epochs": "--budget does nothing with --models, which are only tested; ",
    "compare --out x --models model --seeds 2": "--seeds does nothing with --models, which are only tested; leave it ",
    "compare --out x --models model --match-parameters": "--match-parameters does nothing with --models, which are ",
    "compare --out x --models model --systems luong-dot": "name systems to train (--systems) or models to test ",
    "compare --out x --src two --tgt two --pairs 9": "--pairs is of the embedded corpus; beside --src it would change ",
    "data check": "no training pairs: give them as --src and --tgt, or --tsv, or --jsonl, or --dataset",
    "data check --src two --tgt absent": "absent: no such file",
    "data make": "the following arguments are required: --out; see `mirada data make --help`",
}


@one_model
@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_answered_in_one_line(line, folder):
    assert refusal(*line.split()).startswith(MISTAKES[line])


@pytest.mark.parametrize("model_folder", ["classic"], indirect=True)
@pytest.mark.parametrize("option", ["--alignment hard", "--alignment soft", "--save-attention a.jsonl"])
def test_a_classic_model_has_no_attention(option, folder):
    said = "model: a classic model has no attention to align with or to save"
    assert refusal("translate", "model", *option.split(), given="a\n") == said
    assert not (folder / "a.jsonl").exists()


@one_model
def test_a_line_that_is_no_text(folder):
    """What came before it has been translated."""
    ran = mirada("translate", "model", "--device", "cpu", given=b"the cat\n\xff\n")
    assert (ran.code, len(ran.lines)) == (2, 1)
    assert one_line(ran.errors).startswith("standard input:2: byte 0xff at column 1 is not UTF-8; convert the file")


def test_a_mistake_in_a_process(tmp_path):
    ran = process("translate", tmp_path / "none")
    assert ran == Ran(2, "", f"mirada: {tmp_path / 'none'}: no such model folder\n")


# Scores and measures


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "pairs", list(zip(tiny.SOURCES, tiny.TARGETS, strict=True)))


def test_scores_are_those_of_python(model_folder, pairs):
    expected = load(model_folder, device="cpu").score(tiny.SOURCES, tiny.TARGETS)
    line = ("score", model_folder, "--tsv", pairs, "--device", "cpu")
    assert works(*line).lines == [f"{found.log_probability:.6f}" for found in expected]
    rows = [json.loads(row) for row in works(*line, "--tokens", "--batch-size", 2).lines]
    for number, (row, found) in enumerate(zip(rows, expected, strict=True), start=1):
        assert (row["line"], tuple(row["tokens"])) == (number, found.tokens)
        assert row["token_log_probabilities"] == pytest.approx(found.token_log_probabilities, abs=1e-5)
        assert row["log_probability"] == pytest.approx(sum(row["token_log_probabilities"]))


@one_model
def test_scores_name_the_lines_that_are_left(model_folder, tmp_path):
    holed = write_pairs(tmp_path / "p", [("a cat", "un gato"), ("", "un gato"), ("a man", "un hombre")])
    rows = works("score", model_folder, "--tsv", holed, "--tokens", "--device", "cpu").lines
    assert [json.loads(row)["line"] for row in rows] == [1, 3]


def test_measures_are_those_of_sacrebleu(tmp_path):
    """The same files through sacreBLEU's own command."""
    outputs = [line.replace("el", "un").replace("rojo", "verde") for line in tiny.TARGETS]
    files = [write(tmp_path / "hyp", outputs), write(tmp_path / "ref", tiny.TARGETS)]
    files.append(write(tmp_path / "ref2", [line.upper() for line in tiny.TARGETS]))
    for several in ([files[1]], files[1:]):
        line = [sys.executable, "-m", "sacrebleu", *several, "-i", files[0], "-m", "bleu", "chrf", "ter", "-w", "9"]
        done = subprocess.run([*map(str, line)], capture_output=True, env=ENVIRONMENT, text=True, check=True)
        references = [part for path in several for part in ("--ref", path)]
        ran = works("evaluate", "--hyp", files[0], *references, "--metrics", "bleu, chrf,ter", "--json")
        report = json.loads(ran.output)
        assert report["items"] == len(tiny.TARGETS)
        for row, peer in zip(report["metrics"], json.loads(done.stdout), strict=True):
            assert row["value"] == pytest.approx(peer["score"], abs=1e-8)
            assert 0 < row["value"] < 100
            assert row["made"] == peer["signature"]
            assert row["low"] <= row["value"] <= row["high"]


@one_model
def test_a_model_is_measured_by_what_it_translates(model_folder, pairs, tmp_path):
    given = "".join(f"{source}\n" for source in tiny.SOURCES)
    outputs = works("translate", model_folder, "--device", "cpu", "--beam-size", 2, given=given).lines
    saved, chosen = tmp_path / "out", ["--metrics", "chrf,wer"]
    line = ("evaluate", model_folder, "--tsv", pairs, "--device", "cpu", "--beam-size", 2, *chosen)
    by_model = works(*line, "--save-outputs", saved).output
    assert saved.read_text() == "".join(f"{output}\n" for output in outputs)
    sides = [write(tmp_path / "ref", tiny.TARGETS), write(tmp_path / "src", tiny.SOURCES)]
    assert by_model == works("evaluate", "--hyp", saved, "--ref", sides[0], "--src", sides[1], *chosen).output
    assert by_model.startswith("6 items; 95 % intervals by bootstrap over items\nchrf ")
    assert "chrf by source length:\n  1–5 words" in by_model


@one_model
def test_several_references_for_one_source(model_folder, tmp_path):
    """One of two sources has two references; an item is right if its output is one of them."""
    given = "".join(f"{source}\n" for source in tiny.SOURCES[:2])
    outputs = works("translate", model_folder, "--device", "cpu", given=given).lines
    assert outputs[0] != outputs[1]
    rows = [(tiny.SOURCES[0], "no"), (tiny.SOURCES[1], "no"), (tiny.SOURCES[0], outputs[0])]
    line = ("evaluate", model_folder, "--tsv", write_pairs(tmp_path / "p", rows), "--device", "cpu", "--json")
    for several, items, right in (([], 3, 100 / 3), (["--multi-reference"], 2, 50)):
        report = json.loads(works(*line, "--metrics", "exact", *several).output)
        assert report["items"] == items
        assert report["metrics"][0]["value"] == pytest.approx(right)
        assert sum(bucket["count"] for bucket in report["by_length"]) == items


# Data


def test_a_corpus_is_made_and_found_good(tmp_path):
    pytest.importorskip("mirada.corpora.grammar")
    out = tmp_path / "corpus"
    made = works("data", "make", "--out", out, "--pairs", 300, "--max-words", 12).lines
    assert sorted(made) == sorted(str(path) for path in out.iterdir())
    assert {path.name for path in out.iterdir()} == {
        f"{part}.{end}" for part in ("train", "dev", "test") for end in ("en", "es", "align")
    }
    train = ["--src", out / "train.en", "--tgt", out / "train.es"]
    ran = works("data", "check", *train, "--dev-src", out / "dev.en", "--dev-tgt", out / "dev.es")
    assert ran.output.startswith("train: 300 pairs\n")
    assert ran.lines[-1].startswith("0 errors, ")
    before = (out / "train.en").read_bytes()
    assert "exists; choose another folder, or force (--force)" in refusal("data", "make", "--out", out, "--pairs", 300)
    said = refusal("data", "make", "--out", out / "more", "--pairs", 100_000_000_000)
    assert re.match(
        rf"{re.escape(str(out / 'more'))}: 100,000,000,000 pairs need about 31,[0-9]{{3}}.[0-9] GB and", said
    )
    assert not (out / "more").exists()
    works("data", "make", "--out", out, "--pairs", 300, "--max-words", 12, "--seed", 2, "--force")
    assert (out / "train.en").read_bytes() != before


@one_model
def test_a_corpus_that_would_hurt(model_folder, tmp_path):
    """Unequal sides, and dev words that the model does not know."""
    files = [write(tmp_path / "a", tiny.SOURCES), write(tmp_path / "b", tiny.TARGETS[:5])]
    ran = mirada("data", "check", "--src", files[0], "--tgt", files[1], "--json")
    report = json.loads(ran.output)
    assert (ran.code, ran.errors, report["exit_code"]) == (1, "", 1)
    assert report["findings"][0]["kind"] == "line_counts"
    good = ["--src", files[0], "--tgt", write(tmp_path / "c", tiny.TARGETS), "--model", model_folder]
    strange = write_pairs(tmp_path / "d", [("жук", "un gato")])
    found = json.loads(mirada("data", "check", *good, "--test-tsv", strange, "--json").output)["findings"]
    assert "unknown_tokens" in {finding["kind"] for finding in found}


def test_garbage_is_not_looked_for_while_a_command_starts_and_ends():
    code = "import gc, sys; sys.argv = ['mirada', '--version']; from mirada.cli import YOUNG, main; main(); "
    code += "assert gc.get_threshold()[0] == YOUNG and gc.get_freeze_count() > 1000"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_many_pairs_are_announced_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("mirada.cli.data.MANY", 250)
    errors = works("data", "make", "--out", tmp_path / "d", "--pairs", 300, "--max-words", 12).errors
    assert errors.splitlines() == [
        "mirada: about 0 MB on disk, at most",
        "mirada: 250 pairs made, of 300 and dev and test",
        "mirada: 500 pairs made, of 300 and dev and test",
    ]
