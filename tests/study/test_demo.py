"""The demo: which sentence it looks at, what it says and writes, that it goes on, and that Ctrl-C ends it cleanly."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from threading import Thread

import pytest

from cli_tools import works
from mirada.corpora.grammar import AlignedPair
from mirada.corpora.village import village_splits
from mirada.evaluation.metrics import evaluate
from mirada.study import demo as module
from mirada.study.compare.jobs import StoppedError
from mirada.study.demo import DemoSystem, configure, demo, learned, telling


def pairs(*sizes: int) -> list[AlignedPair]:
    """Sentences of so many words."""
    return [AlignedPair(" ".join("a" * size), " ".join("b" * size), ()) for size in sizes]


def outputs(found: list[AlignedPair], **lost: set[int]) -> dict[str, list[str]]:
    """What systems write: all right but these."""
    return {name: ["" if i in wrong else pair.target for i, pair in enumerate(found)] for name, wrong in lost.items()}


def test_the_sentence_looked_at_is_a_long_one_that_only_the_classic_system_loses() -> None:
    found = pairs(3, 20, 15, 9, 24)
    assert telling(found, outputs(found, classic={1, 2, 3}, bahdanau=set(), luong=set())) == 2
    assert telling(found, outputs(found, classic={1, 2, 3}, bahdanau={2}, luong=set())) == 1
    assert telling(found, outputs(found, classic=set(), bahdanau=set(), luong=set())) == 4, "without one, the longest"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two systems, forty pairs, four updates."""
    monkeypatch.setattr(module, "PAIRS", 40)
    monkeypatch.setattr(module, "HELD_OUT", 8)
    monkeypatch.setattr(module, "UPDATES", 4)
    training = {"max_updates": 4, "valid_every": 4, "save_every": 1, "warmup_steps": 1}
    monkeypatch.setattr(module, "TRAINING", module.TRAINING | training)
    monkeypatch.setattr(module, "MODEL", module.MODEL | {"embedding_dim": 8, "hidden_size": 8})
    monkeypatch.setattr(
        module, "SYSTEMS", {name: module.SYSTEMS[name] | {"hidden_size": 8} for name in ("classic", "luong")}
    )


@pytest.mark.usefixtures("small")
def test_it_ends_with_what_to_type_and_a_page_and_runs_again(tmp_path: Path) -> None:
    ran = works("demo", "--out", tmp_path / "demo", "--workers", 1)
    shown = ran.output
    for part in ("2 systems learn from them, 4 updates each, 1 at a time", "How are you?", "BLEU by source length"):
        assert part in shown
    assert f"mirada translate {tmp_path / 'demo'}/luong" in shown
    assert shown.splitlines()[-1].endswith(str(tmp_path / "demo/look.html"))
    assert "</html>" in (tmp_path / "demo/look.html").read_text(encoding="utf-8")
    table = json.loads((tmp_path / "demo/by_length.json").read_text())
    assert sum(table["counts"].values()) == 9
    assert set(table["bleu"]) == {"classic", "luong"}
    assert [line for line in ran.errors.splitlines() if line.startswith("luong: ")][-1].startswith("luong: stopped: 4")
    weights = {path: path.read_bytes() for path in tmp_path.rglob("model.safetensors")}
    again = works("demo", "--out", tmp_path / "demo", "--workers", 1)
    assert again.output == shown
    assert " of 4 updates" not in again.errors
    assert {path: path.read_bytes() for path in weights} == weights


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_ctrl_c_saves_both_and_the_same_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRAINING", module.TRAINING | {"max_updates": 100_000, "valid_every": 100_000})

    def press() -> None:
        while len(list(tmp_path.glob("*/resume.safetensors"))) < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    Thread(target=press, daemon=True).start()
    with pytest.raises(StoppedError, match="the same command goes on") as stopped:
        demo(tmp_path, lambda line: None)
    assert stopped.value.exit_code == 130
    saved = {path: path.read_bytes() for path in tmp_path.glob("*/resume.safetensors")}
    assert len(saved) == 2
    time.sleep(0.5)
    assert {path: path.read_bytes() for path in saved} == saved, "nobody trains any more"


@pytest.mark.slow
def test_the_classic_system_knows_short_sentences_and_falls_and_attention_does_not(tmp_path: Path) -> None:
    """With the demo's own sizes, two at a time: half a minute."""
    splits = village_splits(module.PAIRS, seed=1, held_out=module.HELD_OUT, max_words=module.LONGEST)
    module.write_splits(splits, tmp_path / "data")
    sources = [pair.source for pair in splits.test]
    names = ("classic", "luong")
    systems = [DemoSystem(name, configure(tmp_path, name, module.SYSTEMS[name], 1), sources) for name in names]
    found = learned(systems, lambda line: None, 2)

    def bleu(name: str, least: int, most: int) -> float:
        chosen = [i for i, source in enumerate(sources) if least <= len(source.split()) <= most]
        return evaluate([found[name][i] for i in chosen], [[splits.test[i].target] for i in chosen], ["bleu"])[0].value

    assert bleu("classic", 1, 8) >= 60
    assert bleu("classic", 1, 8) - bleu("classic", 17, 99) > 20
    assert bleu("luong", 17, 99) > 90
