"""`mirada align` from files to lines: numbering, gold, choice on dev, and agreement with `mirada translate`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny
from mirada.cli import main
from mirada.config import configfile
from mirada.corpora.grammar import make_splits, write_splits
from mirada.data.vocabulary import EOS
from mirada.evaluation.aligning import MEAN, Options, Reading, align
from mirada.store import checkpoint
from mirada.train import prepare
from mirada.translator import Translation, Translator, load

STAY = Reading(MEAN, 0)
LOOKING = ["bahdanau", "luong", "transformer"]
looking = pytest.mark.parametrize("model_folder", LOOKING, indirect=True)
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Six pairs with a gold link each; in line 2 a side is blank."""
    write(tmp_path / "a.en", *tiny.SOURCES)
    write(tmp_path / "a.es", tiny.TARGETS[0], "  ", *tiny.TARGETS[2:])
    write(tmp_path / "a.align", "0-0 1p2", "", *["0-0"] * 4)
    return tmp_path


def write(path: Path, *lines: str) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def pairs(folder: Path, name: str = "a") -> list[str]:
    return ["--src", str(folder / f"{name}.en"), "--tgt", str(folder / f"{name}.es")]


def run(captured: Captured, *arguments: object) -> tuple[list[str], str]:
    """Lines of standard output, and standard error."""
    assert main(["align", *map(str, arguments), "--device", "cpu"]) == 0
    output, errors = captured.readouterr()
    assert output.endswith("\n")
    return output.removesuffix("\n").split("\n"), errors


def refuses(captured: Captured, *arguments: object) -> str:
    """The one line of an error."""
    assert main(["align", *map(str, arguments)]) == 2
    output, errors = captured.readouterr()
    assert output == ""
    assert errors.count("\n") == 1
    return errors.removeprefix("mirada: ").removesuffix("\n")


def links(line: str) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in (token.split("-") for token in line.split())}


# Lines


@looking
def test_a_line_a_pair_and_an_empty_one_where_a_side_is_blank(model_folder, files, capsys):
    lines, errors = run(capsys, model_folder, *pairs(files))
    assert len(lines) == len(tiny.SOURCES)
    assert lines[1] == ""
    for line, source, target in zip(lines, tiny.SOURCES, tiny.TARGETS, strict=True):
        if line:
            # One link for each target word, and to a word that is there.
            assert [j for _, j in sorted(links(line), key=lambda link: link[1])] == list(range(len(target.split())))
            assert max(i for i, _ in links(line)) < len(source.split())
    assert errors.startswith("6 pairs, 1 with a blank side; heads mean, shift 0\nmeans over pairs: entropy (nats) ")


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_tsv_keeps_its_lines_too(model_folder, files, capsys):
    whole = [f"{source}\t{target}" for source, target in zip(tiny.SOURCES, tiny.TARGETS, strict=True)]
    write(files / "a.tsv", whole[0], "", *whole[2:])
    assert run(capsys, model_folder, "--tsv", files / "a.tsv")[0] == run(capsys, model_folder, *pairs(files))[0]


@pytest.mark.parametrize("model_folder", ["bahdanau"], indirect=True)
def test_batches_change_nothing(model_folder, files, capsys):
    whole = run(capsys, model_folder, *pairs(files))[0]
    assert run(capsys, model_folder, *pairs(files), "--batch-size", 1)[0] == whole


# Agreement with translate


PHRASES = sorted(
    {
        " ".join(words[i:j])
        for words in (source.split() for source in tiny.SOURCES)
        for i in range(len(words))
        for j in range(i + 1, len(words) + 1)
    }
)


def write_model(folder: Path, decoder: str, kind: str) -> Path:
    """A tiny model of another kind of tokens, that prefers long ones, so that its outputs mostly split as written."""
    base = tiny.options(decoder)
    data = configfile.changed(base.data, {"source_tokenizer": kind, "target_tokenizer": kind, "vocab_size": 90})
    config = base.model_copy(update={"data": data})
    source, target = prepare.learn_tokenizers(config, tiny.CORPUS)
    model = tiny.random_model(config, (len(source), len(target)))
    with torch.no_grad():
        for i in range(EOS + 1, len(target)):
            model.output.bias[i] -= 9.0 if kind == "bpe" and len(target.token(i)) < 3 else 0.0
    folder.mkdir()
    checkpoint.write_start(folder, config, source, target)
    archive = checkpoint.Archive(checkpoint.weights_of(model), {"metrics": {}, "updates": 1, "best": True})
    checkpoint.write_archive(folder / checkpoint.WEIGHTS, archive)
    return folder


def splits_as_written(translator: Translator, found: Translation) -> bool:
    """Whether reading an output again gives the tokens that wrote it."""
    (pieces,) = translator.target_tokenizer.pieces([found.text])
    return bool(pieces) and [piece.text for piece in pieces] == [token for token in found.tokens if token != "</s>"]


@pytest.mark.parametrize("kind", ["bpe", "word"])
@pytest.mark.parametrize("decoder", LOOKING)
def test_forcing_a_models_own_output_gives_the_links_and_weights_of_translate(decoder, kind, tmp_path, capsys):
    """`translate --alignment hard`, then `align` on what it wrote: the same links, and the same weights below them."""
    folder = write_model(tmp_path / "model", decoder, kind)
    write(tmp_path / "own.en", *PHRASES)
    given = [str(folder), "--input", str(tmp_path / "own.en"), "--alignment", "hard", "--device", "cpu"]
    assert main(["translate", *given]) == 0
    outputs = [line.split(" ||| ") for line in capsys.readouterr().out.removesuffix("\n").split("\n")]
    write(tmp_path / "own.es", *(text for text, _ in outputs))
    lines, _ = run(capsys, folder, *pairs(tmp_path, "own"))
    model = load(folder, device="cpu")
    best = [found[0] for found in model.search(PHRASES, with_attention=True)]
    forced = model.score(PHRASES, [text for text, _ in outputs], with_attention=True)
    same = [i for i, found in enumerate(best) if splits_as_written(model, found)]
    assert len(same) > 30
    for i in same:
        assert best[i].text == outputs[i][0]
        assert links(lines[i]) == links(outputs[i][1])
        rows = len(best[i].tokens)
        assert forced[i].tokens[:rows] == best[i].tokens
        assert forced[i].source_tokens == best[i].source_tokens
        assert forced[i].attention[:rows] == pytest.approx(best[i].attention, abs=1e-5)


@looking
def test_with_tokens_the_units_are_those_of_translate(translator):
    """Of a subword model: words."""
    sides = (tiny.SOURCES[:1], tiny.TARGETS[:1])
    by_tokens, by_words = (list(align(translator, sides, [STAY], Options(units))) for units in ("tokens", "words"))
    assert by_tokens == by_words


# Heads


@pytest.mark.parametrize("model_folder", ["transformer"], indirect=True)
def test_heads_of_the_last_layer_have_the_attention_as_their_mean(translator):
    scored = translator.score(tiny.SOURCES, tiny.TARGETS, with_attention=True, with_heads=True, batch_size=4)
    for pair in scored:
        assert pair.heads.shape == (1, 2, len(pair.tokens), len(pair.source_tokens))
        assert pair.heads[-1].mean(0) == pytest.approx(pair.attention, abs=1e-6)
        assert pair.heads.sum(-1) == pytest.approx(np.ones(pair.heads.shape[:3]), abs=1e-5)
    assert all(pair.heads is None for pair in translator.score(tiny.SOURCES, tiny.TARGETS, with_attention=True))


@pytest.mark.parametrize("model_folder", ["bahdanau", "luong"], indirect=True)
def test_one_attention_has_no_heads(translator):
    (pair,) = translator.score(["the fox"], ["el zorro"], with_heads=True)
    assert pair.heads is None
    assert pair.attention is not None


@pytest.mark.parametrize("model_folder", ["transformer"], indirect=True)
def test_all_heads_are_reported_at_both_shifts(model_folder, files, capsys):
    gold = ["--gold", files / "a.align"]
    lines, errors = run(capsys, model_folder, *pairs(files), *gold, "--heads", "all")
    assert lines == run(capsys, model_folder, *pairs(files))[0]
    table = re.findall(r"  heads (\S+) +shift (\d)  AER (\S+)", errors)
    assert [row[:2] for row in table] == [(head, shift) for head in ("mean", "1.1", "1.2") for shift in "01"]
    for head, shift, aer in table:
        alone = run(capsys, model_folder, *pairs(files), *gold, "--heads", head, "--shift", shift)[1]
        assert f"against gold:     AER {aer} " in alone


# Gold


def error_rate(lines: list[str], gold: list[str]) -> float:
    """AER by rows of text, for gold of sure links only."""
    hits = sum(len(set(line.split()) & set(right.split())) for line, right in zip(lines, gold, strict=True))
    return 1 - 2 * hits / sum(len(line.split()) for line in (*lines, *gold))


@looking
def test_the_embedded_gold_is_usable_end_to_end(model_folder, tmp_path, capsys):
    write_splits(make_splits(20, seed=5, held_out=12), tmp_path)
    given = [*pairs(tmp_path, "test"), "--gold", tmp_path / "test.align", "--units", "punctuation"]
    lines, errors = run(capsys, model_folder, *given)
    gold = (tmp_path / "test.align").read_text(encoding="utf-8").splitlines()
    assert f"against gold:     AER {error_rate(lines, gold):.4f}  " in errors
    count = len(" ".join(gold).split())
    assert f"gold: {count} sure, {count} with the possible;" in errors
    # Each of the units has a link: marks stand apart, "How are you?" has four and "¿Cómo estás?" has four.
    assert (tmp_path / "test.en").read_text(encoding="utf-8").startswith("How are you?\n")
    assert [j for _, j in sorted(links(lines[0]), key=lambda link: link[1])] == [0, 1, 2, 3]


@pytest.mark.parametrize("model_folder", ["bahdanau"], indirect=True)
def test_json_says_everything(model_folder, files, capsys):
    lines, _ = run(capsys, model_folder, *pairs(files))
    report = json.loads("\n".join(run(capsys, model_folder, *pairs(files), "--gold", files / "a.align", "--json")[0]))
    assert report["links"] == lines
    assert (report["pairs"], report["blank"], report["reading"]) == (6, 1, {"head": "mean", "shift": 0})
    assert report["attention"].keys() == {"entropy", "coverage", "monotonicity", "end"}
    gold = report["gold"]
    hits = sum("0-0" in line.split() for line in lines)
    possible = hits + ("1-2" in lines[0].split())
    made = len(" ".join(lines).split())
    assert [gold[name] for name in ("links", "sure", "possible", "hit_sure", "hit_possible")] == [
        made,
        5,
        6,
        hits,
        possible,
    ]
    assert gold["aer"] == pytest.approx(1 - (hits + possible) / (made + 5))
    assert report["dev"] == report["every"] == []


@looking
def test_auto_chooses_on_dev(model_folder, files, capsys):
    """Gold that is what shift 1 gives makes shift 1 the choice, whatever the test gold would say."""
    by_shift = [run(capsys, model_folder, *pairs(files), "--shift", shift)[0] for shift in (0, 1)]
    assert by_shift[0] != by_shift[1]
    for wanted, unwanted in ((0, 1), (1, 0)):
        write(files / "dev.align", *by_shift[wanted])
        write(files / "test.align", *by_shift[unwanted])
        given = [*pairs(files), "--gold", files / "test.align", "--shift", "auto", "--json"]
        dev = ["--dev-src", files / "a.en", "--dev-tgt", files / "a.es", "--dev-gold", files / "dev.align"]
        report = json.loads("\n".join(run(capsys, model_folder, *given, *dev)[0]))
        assert report["reading"] == {"head": "mean", "shift": wanted}
        assert report["links"] == by_shift[wanted]
        assert [(row["shift"], row["aer"] == 0) for row in report["dev"]] == [(0, wanted == 0), (1, wanted == 1)]
        assert report["gold"]["aer"] > 0


@pytest.mark.parametrize("model_folder", ["transformer"], indirect=True)
def test_auto_chooses_a_head(model_folder, files, capsys):
    right = run(capsys, model_folder, *pairs(files), "--heads", "1.2")[0]
    assert right != run(capsys, model_folder, *pairs(files))[0]
    write(files / "dev.align", *right)
    dev = ["--dev-src", files / "a.en", "--dev-tgt", files / "a.es", "--dev-gold", files / "dev.align"]
    lines, errors = run(capsys, model_folder, *pairs(files), *dev, "--heads", "auto")
    assert lines == right
    assert "heads 1.2, shift 0" in errors.split("\n")[0]
    assert "chosen on dev from:\n  heads mean   shift 0  AER " in errors


# Mistakes


def test_a_classic_model_is_refused(tmp_path, files, capsys):
    folder = tiny.write_folder(tmp_path / "classic", "classic")
    assert refuses(capsys, folder, *pairs(files)) == f"{folder}: a classic model has no attention to align with"


@pytest.mark.parametrize("model_folder", ["transformer"], indirect=True)
@pytest.mark.parametrize("head", ["1.3", "0.1", "2.1", "last", ""])
def test_an_unknown_head_is_refused(model_folder, files, capsys, head):
    expected = f"--heads {head}: expected mean, all, auto or, of this model, one from 1.1 to 1.2 (layer.head)"
    assert refuses(capsys, model_folder, *pairs(files), f"--heads={head}") == expected


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_heads_of_one_attention_are_refused(model_folder, files, capsys):
    expected = "--heads 1.1: expected mean, all, auto or, of this model, no others: it is no Transformer"
    assert refuses(capsys, model_folder, *pairs(files), "--heads", "1.1") == expected


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0"] * 5, ": 5 lines of links, but there are 6 pairs; line n is for pair n"),
        (
            ["0-0", "", "0-0", "0-x", "", ""],
            ":4: bad link '0-x'; expected source-target from 0, such as 0-1 (sure) or 0p1 (possible)",
        ),
        (
            ["0-0", "", "0-0 7-1", "", "", ""],
            ":3: link 7-1 is outside the pair, which has 7 source and 6 target words; were they split in another way "
            "(--units)?",
        ),
        (
            ["0-0", "0-0", "", "", "", ""],
            ":2: link 0-0 is outside the pair, which has 0 source and 0 target words; were they split in another way "
            "(--units)?",
        ),
    ],
)
def test_gold_that_does_not_fit_is_refused(model_folder, files, capsys, lines, message):
    write(files / "bad.align", *lines)
    arguments = [*pairs(files), "--gold", files / "bad.align"]
    assert refuses(capsys, model_folder, *arguments) == f"{files / 'bad.align'}{message}"


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_files_of_unequal_length_are_refused(model_folder, files, capsys):
    write(files / "short.es", *tiny.TARGETS[:5])
    message = refuses(capsys, model_folder, "--src", files / "a.en", "--tgt", files / "short.es")
    assert message.startswith(f"{files / 'a.en'} has 6 lines but {files / 'short.es'} has 5; ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shift", "auto"], "auto chooses by AER on dev pairs: give --dev-src, --dev-tgt and --dev-gold"),
        (
            ["--heads", "auto", "--dev-gold", "d"],
            "auto chooses by AER on dev pairs: give --dev-src, --dev-tgt and --dev-gold",
        ),
        (
            ["--dev-gold", "d"],
            "dev pairs are there to choose by: add --shift auto or --heads auto, or leave them out",
        ),
        (
            ["--shift", "auto", "--dev-tsv", "d", "--dev-gold", "./g", "--gold", "g"],
            "g: chosen by and reported on; --dev-gold must be of other pairs than --gold",
        ),
        (["--heads", "all"], "--heads all reports the AER of every head: give --gold"),
        (["--batch-size", "0"], "--batch-size must be at least 1, got 0"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(capsys, arguments, message):
    assert refuses(capsys, "nowhere", *arguments) == message


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_no_pairs_are_refused(model_folder, capsys):
    assert (
        refuses(capsys, model_folder)
        == "no input pairs: give them as --src and --tgt, or --tsv, or --jsonl, or --dataset"
    )
