"""A training may begin with another model's weights, with vectors of words, and with parts that stay as they are."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch

import tiny
from cli_tools import flags, refusal, works, write, write_pairs
from mirada.data.batches import Encoded, collate
from mirada.data.vocabulary import EOS
from mirada.store import checkpoint
from mirada.store.checkpoint import RESUME, WEIGHTS, read_archive
from mirada.train.batch_loss import gradients
from training_tools import PAIRS, SMALL, Tensors, assert_same, best, different, progress, trains, weights, write_data

STILL = {"max-updates": 1, "learning-rate": 1e-30}  # an update that moves nothing
DECODERS = ("classic", "bahdanau", "luong", "transformer")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def model(data: dict[str, object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model, with widths of its own."""
    folder = tmp_path_factory.mktemp("first") / "m"
    trains(folder, data, {"max-updates": 20, "hidden-size": 12, "decoder": "bahdanau", "readout": "state"})
    return folder


def from_model(folder: Path, *options: dict[str, object]) -> str:
    """Train into a folder without naming a size."""
    given = {name: value for name, value in SMALL.items() if name not in ("embedding-dim", "hidden-size", "tokenizer")}
    merged = given | {name: value for part in options for name, value in part.items()}
    return works("train", *flags(merged | {"model-dir": folder})).errors


def test_a_new_folder_begins_with_the_weights_and_options_of_a_model(data, model, tmp_path):
    """Other pairs, another rate, other dropout; sizes, system and vocabularies are the model's."""
    other = write_pairs(tmp_path / "other", PAIRS[:30])
    said = from_model(tmp_path / "m", data, STILL, {"tsv": other, "init-from": model, "dropout": 0.5})
    assert different(best(model), best(tmp_path / "m")) == []
    assert f"weights of {model}\n" in said
    assert "source vocabulary: 9 of 9 pieces are the model's, 0 are new\n" in said
    before, after = (checkpoint.read_config(folder) for folder in (model, tmp_path / "m"))
    assert after.model.model_dump(exclude={"dropout"}) == before.model.model_dump(exclude={"dropout"})
    assert after.model.dropout == 0.5
    for name in checkpoint.TOKENIZERS:
        assert (model / name).read_bytes() == (tmp_path / "m" / name).read_bytes()


def test_what_began_with_a_model_goes_on_without_it(data, model, tmp_path):
    """The model is read once: the training goes on exactly when it is gone."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in model.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    options = data | {"init-from": copy, "dropout": 0.3, "valid-every": 4}
    from_model(tmp_path / "whole", options, {"max-updates": 8})
    from_model(tmp_path / "halves", options, {"max-updates": 4})
    for path in copy.iterdir():
        path.unlink()
    said = from_model(tmp_path / "halves", options, {"max-updates": 8})
    assert "going on after update 4\n" in said
    assert "weights of" not in said
    assert_same(tmp_path / "whole", tmp_path / "halves")


def test_a_vocabulary_is_mapped_piece_by_piece(data, model, tmp_path):
    """Of a to e, c to g know three: their rows are the model's, in other places; f and g have rows of their own."""
    pairs = [tuple(side.translate(str.maketrans("ab", "gf")) for side in pair) for pair in PAIRS]
    files = {"tsv": write_pairs(tmp_path / "t", pairs[:50]), "dev-tsv": write_pairs(tmp_path / "d", pairs[50:])}
    said = from_model(tmp_path / "m", files, STILL, {"init-from": model, "init-vocab": "map", "tokenizer": "word"})
    for side in ("source", "target"):
        assert f"{side} vocabulary: 7 of 9 pieces are the model's, 2 are new\n" in said
    old, new = (checkpoint.load_model(folder, torch.device("cpu")) for folder in (model, tmp_path / "m"))
    places = {old.source.token(i): i for i in range(9)}
    left, right = best(model), best(tmp_path / "m")
    for i in range(9):
        piece = new.source.token(i)
        for name in ("encoder.embedding.weight", "embedding.weight", "output.weight", "output.bias"):
            if piece in places:
                assert torch.equal(right[name][i], left[name][places[piece]]), (name, piece)
            else:
                assert piece in "fg"
                assert name == "output.bias" or not (right[name][i] == left[name]).all(1).any()
    assert torch.equal(left["encoder.layers.0.0.w_h"], right["encoder.layers.0.0.w_h"])


def test_what_does_not_fit_is_one_line(data, model, tmp_path):
    options = SMALL | data | {"model-dir": tmp_path / "m", "init-from": model}
    del options["hidden-size"]
    line = refusal("train", *flags(options | {"embedding-dim": 6}))
    said = rf"{model}: weights embedding.weight are [9, 8], but these options need [9, 6]; "
    assert line == f"{model}: weights encoder.embedding.weight are [9, 8], but these options need [9, 6]; " + (
        "leave out the sizes: they are the model's own"
    ), said
    line = refusal("train", *flags(options | {"decoder": "luong", "readout": "none"}))
    assert line.startswith(f"{model}: only one of the two models has weights ")
    line = refusal("train", *flags(options | {"tokenizer": "char"}))
    assert line == (
        f"tokenizer char with init_vocab keep, and {model} has word; leave tokenizer out, or use init_vocab map"
    )
    line = refusal("train", *flags(options | {"init-from": tmp_path / "none"}))
    assert line == f"{tmp_path / 'none'}: no such model folder"
    assert not (tmp_path / "m").exists()


def test_what_other_options_refuse_points_here(data, model, tmp_path):
    trains(tmp_path / "m", data, {"max-updates": 1})
    line = refusal("train", *flags(SMALL | data | {"model-dir": tmp_path / "m", "learning-rate": 0.5}))
    assert "choose another model_dir (init_from begins there with these weights)" in line


# Parts that stay


PARTS = {
    "embeddings": lambda name: name.endswith("embedding.weight"),
    "output": lambda name: name.startswith("output"),
    "encoder": lambda name: name.startswith("encoder") and not name.endswith("embedding.weight"),
}


def moved(first: Tensors, second: Tensors) -> set[str]:
    """The names of what training has moved, by more than the rate of STILL."""
    return {name for name, value in first.items() if float((value - second[name]).abs().max()) > 1e-20}


@pytest.mark.parametrize("decoder", DECODERS)
def test_frozen_parts_stay_and_the_others_learn(decoder, data, tmp_path):
    options = data | {"decoder": decoder, "max-updates": 3, "weight-decay": 0.1, "optimizer": "adamw", "save-every": 1}
    if decoder == "transformer":
        options |= {"num-heads": 2, "ff-size": 8}
    given = {name: value for name, value in SMALL.items() if decoder != "transformer" or name != "hidden-size"}

    def run(name: str, *parts: dict[str, object]) -> Tensors:
        merged = given | options | {key: value for part in parts for key, value in part.items()}
        works("train", *flags(merged | {"model-dir": tmp_path / name}))
        return weights(tmp_path / name)

    first = run("still", STILL)
    for part, belongs in PARTS.items():
        after = run(part, {"freeze": part})
        assert moved(first, after) == {name for name in first if not belongs(name)}
    after = run("decoder", {"freeze": "decoder,output"})
    assert moved(first, after) == {name for name in first if PARTS["encoder"](name) or PARTS["embeddings"](name)}


def test_frozen_parts_go_on_exactly(data, tmp_path):
    options = data | {"freeze": "encoder,embeddings", "ema-decay": 0.9, "valid-every": 4}
    trains(tmp_path / "whole", options, {"max-updates": 8})
    trains(tmp_path / "halves", options, {"max-updates": 4})
    trains(tmp_path / "halves", options, {"max-updates": 8})
    assert_same(tmp_path / "whole", tmp_path / "halves")


def test_nothing_left_to_learn(data, tmp_path):
    options = SMALL | data | {"model-dir": tmp_path / "m", "freeze": "encoder,decoder,embeddings,output"}
    assert refusal("train", *flags(options)) == "freeze encoder,decoder,embeddings,output leaves nothing to learn"
    line = refusal("train", *flags(options | {"freeze": "body"}))
    assert line.startswith("options: training.freeze.0: input should be 'encoder', 'decoder', 'embeddings' or 'output'")


# Vectors of words


def vectors(path: Path, words: dict[str, float], *, width: int = 8, first: str = "") -> Path:
    """A file in which all numbers of a word are one."""
    lines = [" ".join([word, *[str(value)] * width]) for word, value in words.items()]
    return write(path, [first, *lines] if first else lines)


@pytest.mark.parametrize("first", ["", "3 8"], ids=["glove", "word2vec"])
def test_vectors_of_words(first, data, tmp_path):
    path = vectors(tmp_path / "v.vec", {"a": 0.25, "zebra": 9.0, "e": -2.0}, first=first)
    packed = tmp_path / "w.vec.gz"
    packed.write_bytes(gzip.compress(vectors(tmp_path / "w", {"b": 0.5}).read_bytes()))
    said = trains(tmp_path / "m", data, STILL, {"source-embeddings": path, "target-embeddings": packed})
    assert f"{path}: vectors of 2 of 9 words of the source vocabulary\n" in said
    assert f"{packed}: vectors of 1 of 9 words of the target vocabulary\n" in said
    source = checkpoint.load_model(tmp_path / "m", torch.device("cpu")).source
    rows = {
        source.token(i): row.unique().tolist() for i, row in enumerate(best(tmp_path / "m")["encoder.embedding.weight"])
    }
    assert (rows["a"], rows["e"]) == ([0.25], [-2.0])
    assert len(rows["b"]) == 8
    trains(tmp_path / "m", data, {"max-updates": 2, "learning-rate": 1e-30, "source-embeddings": "gone"})


def test_subwords_that_begin_words_have_their_vectors(tmp_path):
    tsv = write_pairs(tmp_path / "t", [(a, b) for a, b in zip(tiny.SOURCES * 4, tiny.TARGETS * 4, strict=True)])
    path = vectors(tmp_path / "v", {"the": 0.5, "el": 0.25, "heel": 3.0})
    data = {"tsv": tsv, "tokenizer": "bpe", "vocab-size": 60, "share-vocab": "true", "tied-embeddings": "true"}
    trains(tmp_path / "m", data, STILL, {"source-embeddings": path})
    loaded = checkpoint.load_model(tmp_path / "m", torch.device("cpu"))
    rows = {loaded.source.token(i): row.unique().tolist() for i, row in enumerate(loaded.model.embedding.weight)}
    assert rows["▁the"] == [0.5]
    assert rows["▁el"] == [0.25]
    assert all(row != [3.0] for row in rows.values())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["a 1 2 3"], ":1: a vector of 3 numbers, but embedding_dim is 8; give --embedding-dim the width of the file"),
        (["3 8", "a 1 2 3 4 5 6 7 x"], ":2: not a word and its numbers, separated by blanks"),
        (["a 1 2 3 4 5 6 7 nan"], ":1: a number that is none (NaN or infinite)"),
    ],
)
def test_vectors_that_are_none(lines, said, data, tmp_path):
    path = write(tmp_path / "v", lines)
    line = refusal("train", *flags(SMALL | data | {"model-dir": tmp_path / "m", "source-embeddings": path}))
    assert line == f"{path}{said}"
    assert not (tmp_path / "m").exists()


# Several batches an update


@pytest.mark.parametrize("decoder", DECODERS)
def test_gradients_of_several_batches_are_those_of_the_large_one(decoder):
    """In float64, weighted by tokens: three batches of different sizes, and all of their pairs in one."""
    options = tiny.options(decoder)
    config = options.model_copy(update={"model": options.model.model_copy(update={"dropout": 0.0})})
    made = tiny.random_model(config, (60, 60)).double()
    made.train()
    draw = torch.Generator().manual_seed(2)

    def ids(count: int) -> list[int]:
        return torch.randint(4, 60, (count,), generator=draw).tolist()

    pairs = Encoded([[*ids(n % 5 + 1), EOS] for n in range(9)], [ids(n % 4 + 1) for n in range(9)])
    tokens = sum(map(len, pairs.targets)) + 9
    found = []
    for parts in ([range(9)], [[0, 1], [2], [3, 4, 5, 6, 7, 8]]):
        made.zero_grad()
        values = [gradients(made, config, collate(pairs, part, torch.device("cpu")), tokens) for part in parts]
        found.append([float(sum(values)), *(parameter.grad.clone() for parameter in made.parameters())])
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    for large, small in zip(found[0][1:], found[1][1:], strict=True):
        torch.testing.assert_close(small, large, rtol=1e-10, atol=1e-13)


def test_an_epoch_of_five_batches_in_twos_is_three_updates(data, tmp_path):
    options = data | {"accum-count": 2, "dropout": 0.3, "valid-every": 5}
    trains(tmp_path / "whole", options, {"epochs": 2})
    assert progress(tmp_path / "whole")["updates"] == 6
    trains(tmp_path / "halves", options, {"max-updates": 5})
    assert (progress(tmp_path / "halves")["epoch"], progress(tmp_path / "halves")["position"]) == (1, 4)
    trains(tmp_path / "halves", options, {"epochs": 2})
    assert_same(tmp_path / "whole", tmp_path / "halves")


# The best few, and their mean


def test_the_best_few_are_kept_and_averaged(data, tmp_path):
    """Of six validations the three with the least loss; the mean of two models is that of their weights."""
    folder = tmp_path / "m"
    trains(folder, data, {"keep-best": 3, "valid-every": 2, "max-updates": 12})
    rows = sorted(progress(folder)["validations"], key=lambda row: row["loss"])
    kept = sorted((folder / "kept").iterdir())
    assert [path.name for path in kept] == sorted(f"update-{row['update']:07}" for row in rows[:3])
    assert different(best(kept[-1]), best(folder)) == []
    ran = works("average", *kept, "--out", tmp_path / "mean")
    assert ran.lines == [str(tmp_path / "mean")]
    parts, mean = [best(path) for path in kept], best(tmp_path / "mean")
    for name, value in mean.items():
        expected = sum(part[name].double() for part in parts) / 3
        torch.testing.assert_close(value, expected.float(), rtol=1e-6, atol=1e-7)
    assert works("translate", tmp_path / "mean", "--device", "cpu", given="a b\n").lines
    assert read_archive(tmp_path / "mean" / WEIGHTS).metadata["averaged"] == [str(path) for path in kept]
    assert not (tmp_path / "mean" / RESUME).exists()


def test_only_equal_models_have_a_mean(data, model, tmp_path):
    trains(tmp_path / "m", data, {"max-updates": 1})
    line = refusal("average", model, tmp_path / "m", "--out", tmp_path / "mean")
    assert line == (f"{tmp_path / 'm'}: decoder is luong, but bahdanau in {model}; only equal models have a mean")
    other = {"tsv": write_pairs(tmp_path / "t", [(a.replace("a", "z"), b) for a, b in PAIRS]), "max-updates": 1}
    trains(tmp_path / "z", other)
    line = refusal("average", tmp_path / "m", tmp_path / "z", "--out", tmp_path / "mean")
    assert line == (
        f"{tmp_path / 'z' / 'source.json'}: not the vocabulary of {tmp_path / 'm'}; only equal models have a mean"
    )
    assert refusal("average", model, "--out", tmp_path / "mean") == "one model is its own mean; give two or more"
    line = refusal("average", model, model, "--out", tmp_path / "m")
    assert line == f"{tmp_path / 'm'}: exists already; choose another --out"
    assert not (tmp_path / "mean").exists()
