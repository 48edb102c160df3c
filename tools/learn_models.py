"""Make docs/models, the four tiny models of the Learn pages, and their figures: `python tools/learn_models.py`.

They know the sentences of at most five words that the most frequent words of the embedded grammar make: some minutes of
one core, and each folder stays below 1 MB. With `figures` as argument only the figures are made anew.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from pathlib import Path

from mirada.cli import main
from mirada.corpora.grammar import AlignedPair, make_splits
from mirada.files import write_text

ROOT = Path(__file__).resolve().parent.parent
MODELS, FIGURES, WORK = ROOT / "docs/models", ROOT / "docs/figures", ROOT / "build/learn"
KEPT = ("config.yaml", "metrics.json", "model.safetensors", "source.json", "target.json")
WORDS = 160  # the English words that these models know
SYSTEMS = {
    "classic": "--decoder classic --rnn-type lstm --hidden-size 80",
    "bahdanau": "--decoder bahdanau --rnn-type gru --hidden-size 48 --attention-size 32",
    "luong": "--decoder luong --rnn-type gru --score general --hidden-size 64 --max-updates 2400",
    "transformer": "--decoder transformer --num-heads 4 --ff-size 96 --embedding-dim 48",
}
SHARED = (
    "--tokenizer bpe --vocab-size 520 --embedding-dim 32 --dropout 0 --label-smoothing 0 --batch-size 32"
    " --learning-rate 5e-3 --scheduling cosine --warmup-steps 60 --epochs 99 --max-updates 1200"
    " --valid-every 400 --patience 99 --beam-size 3 --device cpu"
)
SENTENCES = {
    "bahdanau": "How are you?",
    "luong": "How are you?",
    "transformer": "How are you?",
}


def words(pair: AlignedPair) -> list[str]:
    """The English words of a pair, in small letters."""
    return re.findall(r"[\w']+", pair.source.lower())


def make_data() -> list[str]:
    """Write the pairs of frequent words below build/learn; returns the options that name them."""
    splits = make_splits(20000, seed=1, max_words=5)
    counted = Counter(word for pair in splits.train for word in words(pair))
    known = {word for word, _ in counted.most_common(WORDS)} | {"how", "are", "you"}
    options = []
    for name, pairs in {"train": splits.train, "dev": splits.dev, "test": splits.test}.items():
        kept = [pair for pair in pairs if set(words(pair)) <= known]
        write_text(WORK / f"{name}.tsv", "".join(f"{pair.source}\t{pair.target}\n" for pair in kept))
        print(f"{name}: {len(kept)} pairs", file=sys.stderr)
        options += [] if name == "test" else ["--tsv" if name == "train" else "--dev-tsv", f"build/learn/{name}.tsv"]
    return options


def train(name: str, files: list[str]) -> None:
    """Train one system, and keep what is needed to use it."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    options = f"{SHARED} {SYSTEMS[name]} --model-dir build/learn/{name}".split()
    if name == "transformer":  # of the shared options those that it has
        at = options.index("--embedding-dim")
        del options[at : at + 2]
    if main(["train", *files, *options]):
        sys.exit(f"{name} was not trained")
    (MODELS / name).mkdir(parents=True, exist_ok=True)
    for file in KEPT:
        shutil.copy(folder / file, MODELS / name / file)
    main(["evaluate", f"build/learn/{name}", "--tsv", "build/learn/test.tsv"])


def draw() -> None:
    """The maps of attention that the pages show."""
    for name, text in SENTENCES.items():
        for kind in ("svg",):
            main(["explain", str(MODELS / name), text, "--format", kind, "--output", f"{FIGURES}/learn-{name}.{kind}"])


if __name__ == "__main__":
    import os

    os.chdir(ROOT)
    if sys.argv[1:] != ["figures"]:
        WORK.mkdir(parents=True, exist_ok=True)
        data = make_data()
        for system in sys.argv[1:] or SYSTEMS:
            train(system, data)
    draw()
