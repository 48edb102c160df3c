"""What is chosen from the number of pairs, what never is, and how long a training is planned to be."""

from __future__ import annotations

from typing import Any

import pytest

from cli_tools import flags, works, write_pairs
from mirada.config.configfile import parse
from mirada.config.options import Config, TrainingConfig
from mirada.data.corpus import Corpus
from mirada.store.folder import read_config
from mirada.train.choices import (
    ENDLESS,
    Length,
    choose,
    choose_copying,
    choose_judge,
    choose_metrics,
    choose_ties,
    copied_share,
    describe,
    plan_length,
)
from training_tools import SMALL


def chosen(pairs: int, **blocks: dict[str, Any]) -> Config:
    return choose(parse(blocks), pairs)[0]


def sizes(config: Config) -> tuple[int, int, float, int]:
    model = config.model
    return model.embedding_dim, model.hidden_size, model.dropout, config.training.batch_size


def test_more_pairs_make_wider_models_larger_batches_and_less_dropout():
    found = [sizes(chosen(pairs)) for pairs in (700, 10_000, 50_000, 1_000_000)]
    for side in (0, 1, 3):
        column = [row[side] for row in found]
        assert column == sorted(column)
    assert [row[2] for row in found] == sorted((row[2] for row in found), reverse=True)
    assert found[0] != found[-1]


def test_what_is_given_stays():
    given = {"model": {"hidden_size": 77, "dropout": 0.05}, "training": {"batch_size": 5}}
    found, notes = choose(parse(given), 700)
    assert (found.model.hidden_size, found.model.dropout, found.training.batch_size) == (77, 0.05, 5)
    assert found.model.embedding_dim == 128
    assert notes == [
        "chosen for 700 pairs: embedding_dim 128, learning_rate 0.003 (--embedding-dim, --learning-rate say otherwise)"
    ]
    everything = parse({**parse({}).model_dump(), "model": {**parse({}).model.model_dump(), "hidden_size": 77}})
    assert choose(everything, 700) == (everything, [])


def test_the_choices_are_said_with_the_options_that_override_them():
    assert choose(parse({}), 700)[1] == [
        "chosen for 700 pairs: embedding_dim 128, hidden_size 256, dropout 0.3, batch_size 16, learning_rate 0.003 "
        "(--embedding-dim, --hidden-size, --dropout, --batch-size, --learning-rate say otherwise)"
    ]
    (line,) = choose(parse({"model": {"decoder": "transformer"}, "training": {"max_minutes": 5}}), 5_000_000)[1]
    assert line.startswith("chosen for 5,000,000 pairs: embedding_dim 256, ff_size 1024, dropout 0.1, batch_size 64, ")
    assert "scheduling linear" in line


@pytest.mark.parametrize(
    ("pairs", "options", "rate"),
    [
        (700, {}, 3e-3),
        (19_999, {"model": {"decoder": "classic"}}, 3e-3),
        (20_000, {}, 1e-3),  # wider
        (20_000, {"model": {"hidden_size": 256}}, 3e-3),
        (700, {"model": {"hidden_size": 257}}, 1e-3),
        (700, {"model": {"decoder": "transformer"}}, 1e-3),
        (700, {"training": {"init_from": "somewhere"}}, 1e-3),  # what is known is not to be overwritten
        (700, {"training": {"learning_rate": 2e-3}}, 2e-3),
    ],
)
def test_small_recurrent_models_learn_at_a_higher_rate(pairs, options, rate):
    assert choose(parse(options), pairs)[0].training.learning_rate == rate


def test_widths_that_others_rule_out_are_not_chosen():
    """With tied_softmax Luong's two widths are one: the chosen embedding would not fit what was given."""
    tied = chosen(700, model={"tied_softmax": True, "embedding_dim": 512})
    assert (tied.model.embedding_dim, tied.model.hidden_size, tied.model.dropout) == (512, 512, 0.3)


def test_by_the_clock_the_rate_falls_and_nothing_else_stops():
    found = chosen(700, training={"max_minutes": 5}).training
    assert (found.scheduling, found.patience) == ("linear", ENDLESS)
    given = chosen(700, training={"max_minutes": 5, "scheduling": "constant", "patience": 3}).training
    assert (given.scheduling, given.patience) == ("constant", 3)


def test_a_batch_of_tokens_holds_thousands():
    assert chosen(700, training={"batch_type": "token"}).training.batch_size == 4096


@pytest.mark.parametrize(
    ("options", "batches", "expected"),
    [
        ({}, 44, Length(69, 3036, None, 303, 121)),  # few pairs: 3,000 updates at least, warm-up a tenth of them
        ({}, 1000, Length(20, 20_000, None, 400, None)),  # twenty passes, each validated
        ({"epochs": 3}, 44, Length(3, 132, None, 13, None)),
        ({"max_updates": 500}, 44, Length(20, 500, None, 50, None)),
        ({"max_updates": 9000}, 44, Length(205, 9000, None, 400, 360)),  # as many passes as that takes
        ({"max_updates": 9000, "epochs": 2}, 44, Length(2, 88, None, 8, None)),
        ({"warmup_steps": 7, "valid_every": 5}, 44, Length(69, 3036, None, 7, 5)),
        ({"max_minutes": 2.0}, 44, Length(22_728, 1_000_032, 110.0, 400, None)),
    ],
)
def test_the_plan(options, batches, expected):
    assert plan_length(TrainingConfig(**options), batches, 10.0) == expected


def test_the_plan_is_said():
    options = TrainingConfig()
    flags = "--epochs, --max-updates, --max-minutes, --warmup-steps, --scheduling, --valid-every"
    assert describe(options, plan_length(options, 44, 0.0), 44) == (
        "plan: 3,036 updates at most, 44 an epoch, the first 303 with a rising rate, then inverse_sqrt; "
        f"validation every 121 updates ({flags} say otherwise)"
    )
    options = TrainingConfig(max_minutes=5, scheduling="linear")
    said = describe(options, plan_length(options, 44, 0.0), 44)
    assert said.startswith(
        "plan: until 5 minutes are over, 44 updates an epoch, the first 400 (or a tenth of all) with"
    )
    assert "validation each tenth of the time (" in said


@pytest.mark.parametrize(
    ("kind", "targets", "expected"),
    [
        ("bpe", ["the cat sleeps on the mat", "where is the red book now"], ("bleu", "chrf")),
        ("word", ["kitchen", "hallway", "garden"], ("exact",)),
        ("word", ["a b c d e", "b c a d a"], ("exact",)),
        ("word", [f"w{i} x{i} y{i} z{i} v{i}" for i in range(400)], ("bleu", "chrf")),
        ("char", ["abastar", "comí"], ("exact",)),
        ("char", ["我们明天去北京，然后坐火车去上海。" * 4], ("bleu", "chrf")),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_metric_fits_the_targets(kind, targets, expected):
    config = parse({"data": {"target_tokenizer": kind}})
    found = choose_metrics(config, targets, ()).training
    assert found.valid_metrics == expected
    assert found.early_stopping_metric == expected[-1]
    assert choose_metrics(config, targets, {"early_stopping_metric"}).training.early_stopping_metric == "loss"


def corpus(*pairs: tuple[str, str]) -> Corpus:
    sources, targets = map(list, zip(*pairs, strict=True))
    return Corpus(sources, targets, [], [], "")


def test_how_much_of_a_target_stands_in_its_source():
    """abcxde in abcde: abc and de, five of six; single letters and other orders do not count."""
    pairs = corpus(("abcde", "abcxde"), ("ab", "ba"), ("axbxc", "a-b-c"), ("", ""))
    assert copied_share(pairs) == pytest.approx(5 / 24)


INFLECTED = corpus(("hablar", "hablaba"), ("comer", "comía"), ("vivir", "vivimos"))


def test_letters_are_copied_where_most_of_a_target_stands_in_its_source():
    spelt = {"source_tokenizer": "char", "target_tokenizer": "char"}
    found, notes = choose_copying(parse({"data": spelt}), INFLECTED)
    assert found.model.copy_attn
    assert notes == [
        "chosen for targets of which 63% stands in their sources: copy_attn true (--copy-attn says otherwise)"
    ]
    others = corpus(("Ana", "אנה"), ("David", "דוד"))
    for data, model, pairs in (
        (spelt, {}, others),
        (spelt, {"decoder": "classic"}, INFLECTED),
        (spelt, {"attention_window": "local-p"}, INFLECTED),
        ({"source_tokenizer": "word", "target_tokenizer": "char"}, {}, INFLECTED),
        ({"source_tokenizer": "bpe", "target_tokenizer": "bpe"}, {}, INFLECTED),
    ):
        config = parse({"data": data, "model": model})
        assert choose_copying(config, pairs) == (config, [])


def test_copying_is_chosen_from_files_and_given_options_stay(tmp_path):
    """The stored options tell; said once on standard error."""
    rows = [(f"{stem}ar", f"{stem}aba") for stem in ("habl", "cant", "salt", "and")]
    pairs = write_pairs(tmp_path / "a.tsv", rows * 9)
    given = SMALL | {"tsv": pairs, "dev-tsv": pairs, "max-updates": 1}
    del given["tokenizer"]
    for name, more, copies in (("own", {}, True), ("asked", {"copy-attn": "false"}, False)):
        ran = works("train", *flags(given | more | {"model-dir": tmp_path / name}))
        assert read_config(tmp_path / name).model.copy_attn is copies
        assert ran.errors.count("copy_attn true (--copy-attn says otherwise)") == copies
    works("translate", tmp_path / "own", given="ladrar\n")


def test_a_metric_that_cannot_measure_does_not_judge():
    single = [["kitchen"], ["hallway"], ["garden"]]
    judge, said = choose_judge("bleu", single)
    assert judge == "loss"
    assert said[0].endswith("; the loss says what is best")
    assert choose_judge("exact", single) == ("exact", [])
    assert choose_judge("loss", single) == ("loss", [])


def test_words_are_copied_where_sources_hold_the_rare_ones():
    """Every sentence has a name of its own, which its source has as well; then a name that no source has."""
    names = [f"Name{i}" for i in range(40)]
    sources, targets = [f"greet {name} kindly" for name in names], [f"hello dear {name}" for name in names]
    data = {"tokenizer": "bpe", "source_tokenizer": "bpe", "target_tokenizer": "bpe", "share_vocab": True}
    for own, copied in (names, True), (names[::-1], False):
        corpus = Corpus([f"greet {name} kindly" for name in own], targets, list(range(40)), [], "text")
        found, said = choose_copying(parse({"data": data}), corpus)
        assert found.model.copy_attn == copied
        line = "chosen for targets whose rare words stand in their sources, 100%: copy_attn true (--copy-attn says"
        assert said == ([f"{line} otherwise)"] if copied else [])
    corpus = Corpus(sources, targets, list(range(40)), [], "text")
    for other in {"share_vocab": False}, {"bpe_dropout": 0.1}:
        assert not choose_copying(parse({"data": data | other}), corpus)[0].model.copy_attn


def test_under_an_hour_on_a_cpu_a_model_is_narrow():
    for minutes, width in (10, 256), (90, 512), (None, 512):
        training = {"device": "cpu"} | ({"max_minutes": minutes} if minutes else {})
        assert choose(parse({"training": training}), 50_000)[0].model.hidden_size == width


@pytest.mark.parametrize(
    ("model", "given", "tied"),
    [
        ({"embedding_dim": 64, "hidden_size": 64}, (), ("tied_embeddings", "tied_softmax")),
        ({"embedding_dim": 64, "hidden_size": 128}, (), ("tied_embeddings",)),
        ({"embedding_dim": 64, "hidden_size": 64}, ("tied_softmax",), ("tied_embeddings",)),
        ({"embedding_dim": 64, "hidden_size": 64}, ("tied_softmax", "tied_embeddings"), ()),
    ],
)
def test_one_vocabulary_has_one_embedding(model, given, tied):
    config = parse({"data": {"tokenizer": "bpe", "share_vocab": True}, "model": model})
    found, said = choose_ties(config, given)
    assert [name for name in ("tied_embeddings", "tied_softmax") if getattr(found.model, name)] == list(tied)
    assert bool(said) == bool(tied)
    assert all(f"{name} true" in said[0] for name in tied)


def test_ties_are_chosen_where_the_vocabulary_is(tmp_path):
    """Sides of one language, in bpe; not where the user says how the vocabularies are."""
    lines = [f"the {a} sees the {b} and the {c}" for a in "xyz" for b in "xyz" for c in "xyz"]
    pairs = write_pairs(tmp_path / "a.tsv", list(zip(lines, lines[::-1], strict=True)))
    given = SMALL | {"tsv": pairs, "dev-tsv": pairs, "max-updates": 1, "tokenizer": "bpe", "hidden-size": 8}
    works("train", *flags(given | {"model-dir": tmp_path / "m"}))
    assert read_config(tmp_path / "m").model.tied_softmax
    works("train", *flags(given | {"model-dir": tmp_path / "n", "share-vocab": "true"}))
    assert not read_config(tmp_path / "n").model.tied_softmax
