"""The demo: four systems trained on a small world in under three minutes, compared, and looked into."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mirada.config.configfile import parse
from mirada.config.model import applicable
from mirada.config.options import Config
from mirada.corpora.grammar import AlignedPair, write_splits
from mirada.corpora.village import village_splits
from mirada.escape import terminal
from mirada.evaluation.lengths import by_length, filled
from mirada.evaluation.metrics import evaluate
from mirada.explain.heatmap import terminal_map
from mirada.explain.page import page
from mirada.explain.trace import trace
from mirada.files import write_text
from mirada.messages import spoken
from mirada.scaling.engine import EngineChoice, workplace
from mirada.scaling.pool import Do, in_order
from mirada.study.compare.jobs import StoppedError
from mirada.train.loop import train
from mirada.train.progress import Monitor
from mirada.translator import Translator, load

# Sizes and rates that a small world of sixty words (corpora/village.py) is learned with; the same updates for all.
UPDATES = 700
SYSTEMS: dict[str, dict[str, Any]] = {
    "classic": {"decoder": "classic", "rnn_type": "lstm", "hidden_size": 256, "reverse_source": True},
    "bahdanau": {"decoder": "bahdanau", "rnn_type": "gru", "readout": "deep", "attention_size": 64},
    "luong": {"decoder": "luong", "rnn_type": "gru", "score": "dot"},
    "transformer": {"decoder": "transformer", "embedding_dim": 96, "enc_layers": 2, "dec_layers": 2, "ff_size": 192},
}
MODEL = {"embedding_dim": 64, "hidden_size": 128, "dropout": 0.0}
TRAINING = {
    "batch_size": 64,
    "learning_rate": 4e-3,
    "scheduling": "cosine",
    "warmup_steps": 60,
    "label_smoothing": 0.0,
    "epochs": 1000,
    "max_updates": UPDATES,
    "valid_every": UPDATES,
    "save_every": 100,
    "valid_metrics": (),
}
PAIRS, HELD_OUT, LONGEST, EDGES = 12_000, 400, 24, (4, 8, 12, 16, 20)
LONG = 16  # words of the sentence that is looked at
QUESTION = "How are you?"
NEXT = """What to try next:
  echo "{question}" | mirada translate {folder}/bahdanau --n-best 3
  echo "{long}" | mirada translate {folder}/classic
  mirada serve {folder}/classic {folder}/bahdanau --preload
  echo "{question}" | mirada translate {folder}/luong --alignment hard --save-attention attention.jsonl
  mirada evaluate {folder}/classic --src {folder}/data/test.en --tgt {folder}/data/test.es
  mirada train --src YOUR.src --tgt YOUR.tgt --model-dir runs/mine --decoder bahdanau
"""


class DemoSystem(NamedTuple):
    """A system to train, and the sentences that it translates then."""

    name: str
    config: Config
    sources: list[str]

    def __str__(self) -> str:
        """For messages."""
        return self.name


def demo(folder: Path, show: Callable[[str], None], *, seed: int = 1, workers: int = 2) -> None:
    """Make the corpus, train the four systems (or go on with those already there), and show what they do.

    Everything made is written below `folder`; `show` receives the lines to print; `workers` systems learn at a time.
    Raises StoppedError or InterruptedTrainingError after Ctrl-C, TrainingError, LostWorkError.
    """
    splits = village_splits(PAIRS, seed=seed, held_out=HELD_OUT, max_words=LONGEST)
    data = folder / "data"
    write_splits(splits, data, force=True)
    show(f"{len(splits.train)} English-Spanish pairs of sixty words, made by rules, in {terminal(str(data))}")
    show(f"{len(SYSTEMS)} systems learn from them, {UPDATES} updates each, {workers} at a time:")
    sources = [pair.source for pair in splits.test]
    systems = [DemoSystem(name, configure(folder, name, made, seed), sources) for name, made in SYSTEMS.items()]
    outputs = learned(systems, show, workers)
    long = telling(splits.test, outputs)
    show_translations(splits.test, outputs, list(dict.fromkeys([*range(5), long])), show)
    models = [load(folder / name, device="cpu") for name in SYSTEMS]
    show_attention(next(model for model in models if model.has_attention), sources[long], show)
    show_lengths(splits.test, outputs, folder, show)
    write_look(models, sources[long], folder / "look.html")
    show(NEXT.format(question=QUESTION, long=sources[long], folder=terminal(str(folder))))
    show(f"And open this page, where all of them write that long sentence: {terminal(str(folder / 'look.html'))}")


def learned(systems: list[DemoSystem], show: Callable[[str], None], workers: int) -> dict[str, list[str]]:
    """Train each system; returns what it makes of its sentences. Raises as `demo` does."""
    engine = EngineChoice("processes", workers, gpus=False) if workers > 1 else EngineChoice()
    try:
        with workplace(engine, make_learning, show, items=len(systems)) as place:
            return {system.name: done.result() for system, done in in_order(place, systems, most=len(systems))}
    except KeyboardInterrupt:
        raise StoppedError("stopped; the same command goes on from there") from None


def make_learning() -> Do:
    """What a worker does with a system."""
    import torch

    # Models this small gain nothing from a second thread, and lose tenfold by it where another process is busy.
    torch.set_num_threads(1)

    def learn(system: DemoSystem) -> list[str]:
        train(system.config, monitor=Monitor(label=system.name))
        return load(system.config.model_dir, device="cpu").translate(system.sources)

    return learn


def telling(pairs: Sequence[AlignedPair], outputs: dict[str, list[str]]) -> int:
    """A sentence of about LONG words that the classic system loses and all others keep; without one, the longest."""
    right = {
        name: [line == pair.target for line, pair in zip(lines, pairs, strict=True)] for name, lines in outputs.items()
    }
    lost = [i for i in range(len(pairs)) if all(kept[i] == (name != "classic") for name, kept in right.items())]
    sizes = [len(pair.source.split()) for pair in pairs]
    return min(lost, key=lambda i: abs(sizes[i] - LONG)) if lost else max(range(len(pairs)), key=lambda i: sizes[i])


def configure(folder: Path, name: str, options: dict[str, Any], seed: int) -> Config:
    """The options of one of the demo's models."""
    data = {"tokenizer": "bpe", "vocab_size": 400}
    for split, prefix in (("train", ""), ("dev", "dev_")):
        data |= {f"{prefix}src": str(folder / f"data/{split}.en"), f"{prefix}tgt": str(folder / f"data/{split}.es")}
    training = {**TRAINING, "seed": seed}
    search = {"beam_size": 3}
    values = {
        "model_dir": str(folder / name),
        "data": data,
        "model": applicable({**MODEL, **options}),
        "training": training,
    }
    return parse({**values, "search": search})


def show_translations(
    pairs: Sequence[AlignedPair], outputs: dict[str, list[str]], shown: Sequence[int], show: Callable[[str], None]
) -> None:
    """Held-out sentences through every system."""
    show("\nHeld-out sentences (never seen in training):")
    width = max(map(len, outputs))
    for i in shown:
        show(f"\n  {spoken('source'):>{width}}  {pairs[i].source}\n  {spoken('reference'):>{width}}  {pairs[i].target}")
        for name, lines in outputs.items():
            mark = "✓" if lines[i] == pairs[i].target else " "
            show(f"{mark} {name:>{width}}  {lines[i]}")


def show_attention(model: Translator, text: str, show: Callable[[str], None]) -> None:
    """Where a model looks while it writes, as shades."""
    best = model.search([text], with_attention=True)[0][0]
    if best.attention is None:
        return
    show(
        f"\nWhere {model.config.model.decoder} looked at {text!r}: each row is a word it wrote, darker = looked at more"
    )
    show(terminal_map(best.attention, best.tokens, best.source_tokens))


def write_look(models: Sequence[Translator], text: str, path: Path) -> None:
    """The page of one sentence through each system."""
    traces = [trace(model, text, options=model.config.search)[0] for model in models]
    write_text(path, page(traces))


def show_lengths(
    pairs: Sequence[AlignedPair], outputs: dict[str, list[str]], folder: Path, show: Callable[[str], None]
) -> None:
    """The question the field started from: does quality fall as sources grow?"""
    references, lengths = [[pair.target] for pair in pairs], [len(pair.source.split()) for pair in pairs]
    table: dict[str, Any] = {}
    edges = filled(lengths, EDGES)
    for name, lines in outputs.items():
        scores = by_length(lengths, lines, references, "bleu", edges=edges, samples=200)
        whole = evaluate(lines, references, ["bleu"])[0]
        table[name] = {"all": whole.value, **{score.label: score.value for score in scores}}
        counts = {score.label: score.count for score in scores}
    show(f"\nBLEU by source length in words, {len(pairs)} test sentences ({whole.signature}):")
    labels = [spoken("all"), *counts]
    show(f"{'':>12}" + "".join(f"{label:>9}" for label in labels))
    show(f"{spoken('sentences'):>12}" + "".join(f"{n:>9}" for n in [len(pairs), *counts.values()]))
    for name, row in table.items():
        show(f"{name:>12}" + "".join(f"{value:>9.1f}" for value in row.values()))
    show(f"{UPDATES} updates each; the classic system holds a sentence in one vector, the others look back.")
    show("A small world of sixty words, so that minutes suffice: `mirada bottleneck` asks it with intervals.")
    write_text(folder / "by_length.json", json.dumps({"counts": counts, "bleu": table}, indent=1) + "\n")
