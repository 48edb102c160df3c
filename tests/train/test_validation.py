"""How good a model is on the dev set, by a second road, and whatever the batches."""

from __future__ import annotations

from math import exp, inf, log

import pytest
import torch

import tiny
from mirada.config.configfile import parse
from mirada.config.options import TrainingConfig
from mirada.data.batches import BatchSize, Encoded, collate
from mirada.data.corpus import Corpus
from mirada.data.vocabulary import BOS, EOS, PAD
from mirada.errors import ConfigError
from mirada.train.validation import Sample, check_metrics, dev_loss, dev_metrics, draw_sample
from mirada.translator import Translator

CPU = torch.device("cpu")


def dev_set(translator: Translator) -> Encoded:
    sources, targets = (
        translator.source_tokenizer.encode(tiny.SOURCES),
        translator.target_tokenizer.encode(tiny.TARGETS),
    )
    return Encoded([[*ids, EOS] for ids in sources], targets)


def test_loss_and_accuracy_token_by_token(translator):
    dev = dev_set(translator)
    costs, right = [], []
    for row, target in enumerate(dev.targets):
        batch = collate(dev, [row], CPU)
        with torch.no_grad():
            hidden = translator.model.forward(batch.source, batch.lengths, batch.target_in).hidden[0]
            logits = translator.model.logits(hidden).double()
            logits[:, [PAD, BOS]] = -inf
            log_p = logits.log_softmax(1)
        for step, token in enumerate([*target, EOS]):
            costs.append(-log_p[step, token].item())
            right.append(log_p[step].argmax().item() == token)
    expected = {
        "loss": sum(costs) / len(costs),
        "ppl": exp(sum(costs) / len(costs)),
        "accuracy": 100 * sum(right) / len(right),
    }
    for size in (BatchSize(64, False), BatchSize(2, False), BatchSize(50, True), BatchSize(1, True)):
        assert dev_loss(translator.model, dev, size) == pytest.approx(expected, rel=1e-5)


def test_dev_loss_is_what_score_says(translator):
    """By the second road that a user has: mean −log p a token of the given targets, </s> included."""
    scored = translator.score(tiny.SOURCES, tiny.TARGETS)
    costs = [-log_p for found in scored for log_p in found.token_log_probabilities]
    found = dev_loss(translator.model, dev_set(translator), BatchSize(4, False))
    assert found["loss"] == pytest.approx(sum(costs) / len(costs), rel=1e-5)


@pytest.mark.parametrize("model_folder", ["luong"], indirect=True)
def test_a_hopeless_model_has_a_finite_perplexity(translator):
    dev = dev_set(translator)
    bias = translator.model.output.bias
    before = bias.detach().clone()
    with torch.no_grad():
        bias[EOS] = 1e4
    try:
        found = dev_loss(translator.model, dev, BatchSize(64, False))
    finally:
        with torch.no_grad():
            bias.copy_(before)
    assert found["loss"] > 1000
    assert log(found["ppl"]) == pytest.approx(100)


@pytest.mark.parametrize("search", [{"beam_size": 1}, {"beam_size": 4, "max_output_length": 3}], ids=str)
def test_metrics_are_of_what_the_models_own_search_finds(search, translator):
    dev, config = dev_set(translator), parse({"search": search, "training": {"valid_metrics": ["exact", "cer"]}})
    outputs = [found[0].text for found in translator.search(tiny.SOURCES, options=config.search)]
    references = [*outputs[:4], "something else", "and else"]
    texts = Corpus(tiny.SOURCES, references, list(range(6)), [], "dev")
    sample = draw_sample(dev, texts, count=500, seed=1)
    found = dev_metrics(translator.model, sample, translator.target_tokenizer, config)
    assert found["exact"] == pytest.approx(100 * 4 / 6)
    first = Sample(*(part[:4] for part in sample))
    found = dev_metrics(translator.model, first, translator.target_tokenizer, config)
    assert found == pytest.approx({"exact": 100, "cer": 0})
    assert dev_metrics(translator.model, sample, translator.target_tokenizer, parse({})) == {}


def test_the_sample_is_drawn_by_the_seed_and_knows_all_targets_of_a_source():
    """A sorted file: its first lines are all of one kind. Sources are the file's order; each stands once."""
    names = [f"{i:03}" for i in range(100) for _ in range(2)]
    texts = Corpus(names, [f"{name} {i % 2}" for i, name in enumerate(names)], list(range(200)), [], "dev")
    ids = Encoded([[i, EOS] for i in range(200)], [[i] for i in range(200)])
    found = draw_sample(ids, texts, count=30, seed=5)
    places = [source[0] for source in found.sources]
    assert places == sorted(places)
    assert len(set(places)) == 30
    assert max(places) > 150
    assert all(place % 2 == 0 for place in places)
    assert found.references == [[f"{names[place]} 0", f"{names[place]} 1"] for place in places]
    assert draw_sample(ids, texts, count=30, seed=5) == found != draw_sample(ids, texts, count=30, seed=6)
    assert len(draw_sample(ids, texts, count=500, seed=5).sources) == 100


def test_unknown_metrics_are_met_before_the_training():
    check_metrics(TrainingConfig(valid_metrics=("bleu", "rouge"), early_stopping_metric="bleu"))
    with pytest.raises(ConfigError, match="unknown metric 'blue'; did you mean 'bleu'"):
        check_metrics(TrainingConfig(valid_metrics=("wer", "blue")))
    with pytest.raises(ConfigError, match="metric 'rouge' is several; name one of rouge1, rouge2, rougeL"):
        check_metrics(TrainingConfig(valid_metrics=("rouge",), early_stopping_metric="rouge"))
