"""Prepare the data that all toolkits share: `prepare.py FOLDER --train A B --test A B --g2p WORDS.tsv`.

Text is cut by one SentencePiece BPE model of both languages, so that all toolkits see the same pieces and count the
same tokens. Words with their phones (WORD<TAB>P H O N E S) are cut into letters and phones. Files may end in .gz.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
from pathlib import Path

from benchmarks.peers.workloads import SPECIALS, Corpus, corpus

DEVELOPMENT = 1000  # words kept from the training


def main() -> None:
    """Write FOLDER/data."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", nargs=2, type=Path, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--test", nargs=2, type=Path, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--g2p", type=Path, metavar="TSV")
    parser.add_argument("--vocabulary", type=int, default=8000, help="pieces, with the four special ones [8000]")
    values = parser.parse_args()
    if bool(values.train) != bool(values.test) or not (values.train or values.g2p):
        parser.error("expected --train and --test (T1, T2, T3), or --g2p (T4), or all three")
    (values.folder / "data").mkdir(parents=True, exist_ok=True)
    if values.train:
        prepare_text(values.folder, values.train, values.test, size=values.vocabulary)
    if values.g2p:
        prepare_words(corpus(values.folder, "g2p"), lines_of(values.g2p))


def prepare_text(folder: Path, train: list[Path], test: list[Path], *, size: int) -> None:
    """Learn the pieces from both sides of the training text, and cut all files by them."""
    import sentencepiece

    files, texts = corpus(folder, "text"), [lines_of(path) for path in (*train, *test)]
    for one, other in (0, 1), (2, 3):
        if len(texts[one]) != len(texts[other]):
            sys.exit(f"{(*train, *test)[one]} has {len(texts[one])} lines, its other side {len(texts[other])}")
    model = folder / "data" / "pieces"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts[0] + texts[1]),
        model_prefix=str(model),
        vocab_size=size,
        model_type="bpe",
        character_coverage=1.0,
        pad_id=SPECIALS.index("<pad>"),
        unk_id=SPECIALS.index("<unk>"),
        bos_id=SPECIALS.index("<s>"),
        eos_id=SPECIALS.index("</s>"),
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{model}.model")
    for path, lines in zip(files[:4], texts, strict=True):
        write(path, [" ".join(pieces.encode(line.strip(), out_type=str)) for line in lines])
    write(files.reference, texts[3])
    write(files.source_vocabulary, [pieces.id_to_piece(i) for i in range(len(SPECIALS), pieces.get_piece_size())])


def prepare_words(files: Corpus, lines: list[str]) -> None:
    """Letters and phones, the last words held back."""
    pairs = [line.split("\t") for line in lines if line]
    if bad := [number for number, pair in enumerate(pairs, 1) if len(pair) != 2]:
        sys.exit(f"line {bad[0]} of the words: expected WORD<TAB>P H O N E S")
    random.Random(1).shuffle(pairs)
    letters, phones = [" ".join(word) for word, _ in pairs], [phones for _, phones in pairs]
    for path, part in zip(
        files[:4],
        (letters[:-DEVELOPMENT], phones[:-DEVELOPMENT], letters[-DEVELOPMENT:], phones[-DEVELOPMENT:]),
        strict=True,
    ):
        write(path, part)
    write(files.reference, phones[-DEVELOPMENT:])
    for path, side in (files.source_vocabulary, letters), (files.target_vocabulary, phones):
        write(path, sorted({piece for line in side for piece in line.split()}))


def lines_of(path: Path) -> list[str]:
    """The lines of a text, which may be compressed."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return text.removesuffix("\n").split("\n")


def write(path: Path, lines: list[str]) -> None:
    """Write UTF-8 lines."""
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
