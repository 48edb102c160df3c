"""What holds for every way of searching, and greedy choice. Beam search and sampling have files of their own."""

from __future__ import annotations

from math import fsum, log

import pytest
import torch

from mirada.config.options import SearchConfig
from mirada.errors import ConfigError, DataError
from mirada.search.decode import Sentences, search
from mirada.search.step import largest, producible
from search_tools import WAYS, run, steps
from toy_decoder import BOS, EOS, PAD, UNK, Found, ToyDecoder, plain_greedy


@pytest.fixture(params=list(WAYS))
def options(request: pytest.FixtureRequest) -> SearchConfig:
    return WAYS[request.param]


@pytest.mark.parametrize("seed", range(20))
def test_greedy_follows_the_likeliest_token(seed):
    toy = ToyDecoder(seed, sentences=6, end=1)
    for sentence, [output] in enumerate(run(toy, WAYS["greedy"])):
        expected = plain_greedy(toy, sentence, 8)
        assert steps(output) == expected.tokens
        assert output.log_probability == pytest.approx(expected.log_probability, abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_an_output_are_those_of_walking_its_tokens(options, seed):
    toy = ToyDecoder(seed, sentences=5, end=0.5)
    for sentence, outputs in enumerate(run(toy, options)):
        assert len(outputs) == options.n_best
        for output in outputs:
            own, attention = toy.walk(sentence, steps(output))
            assert output.token_log_probabilities == pytest.approx(own, abs=1e-9)
            assert output.log_probability == fsum(output.token_log_probabilities)
            assert output.score == pytest.approx(Found(steps(output), fsum(own)).score(options.alpha), abs=1e-9)
            torch.testing.assert_close(output.attention, torch.tensor(attention, dtype=torch.float64))


def test_score_is_the_log_probability_without_length_penalty(options):
    options = options.model_copy(update={"alpha": 0.0})
    for [output, *_] in run(ToyDecoder(1, sentences=4), options):
        assert output.score == output.log_probability


def test_outputs_come_best_first(options):
    for outputs in run(ToyDecoder(2, sentences=8), options, limit=4):
        keys = [(not output.finished, -output.score) for output in outputs]
        assert keys == sorted(keys)


@pytest.mark.parametrize("seed", range(5))
def test_a_sentence_alone_is_the_sentence_in_any_batch(options, seed):
    toy = ToyDecoder(seed, sentences=6, end=0.5)
    limits, prefixes = [3, 8, 5, 1, 8, 6], [[], [4], [4, 5, 4], [5], [], [0]]
    alone = [run(toy, options, i, limit=[limits[i]], prefix=[prefixes[i]]) for i in range(6)]
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 0, 2, 4], [4, 4, 2]):
        batch = run(toy, options, *order, limit=[limits[i] for i in order], prefix=[prefixes[i] for i in order])
        for place, sentence in enumerate(order):
            for here, there in zip(batch[place], alone[sentence][0], strict=True):
                assert here.tokens == there.tokens
                assert here.finished == there.finished
                assert here.log_probability == pytest.approx(there.log_probability, abs=1e-9)
                torch.testing.assert_close(here.attention, there.attention)


def test_memory_is_never_repeated_and_sentences_leave_at_their_limit(options):
    toy = ToyDecoder(3, sentences=3, vocabulary=9, end=-50)
    found = run(toy, options, limit=[1, 6, 3])
    assert [len(outputs[0].tokens) for outputs in found] == [1, 6, 3]
    assert not any(output.finished for outputs in found for output in outputs)
    assert [rows for _, rows in toy.rows] == [3, 3, 2, 2, 1, 1, 1], "one more step each, for </s> alone"
    assert toy.memory_sizes == [rows * 4 * 2 for _, rows in toy.rows]
    rows = {"greedy": 1, "beam": 4, "sample": 3}[next(name for name in WAYS if WAYS[name] == options)]
    first = rows if options.sample else 1  # one hypothesis a sentence before the first choice
    assert [n // a for n, a in toy.rows] == [first, *[rows] * 6]


def test_sentences_leave_when_they_have_ended(options):
    toy = ToyDecoder(4, sentences=3, end=-50)
    toy.table[1, ..., EOS] += 100
    found = run(toy, options, limit=5)
    assert found[1][0].tokens == ()
    assert found[1][0].finished
    assert found[1][0].log_probability == pytest.approx(0, abs=1e-9)
    # n_best outputs are wanted, so beam search goes on with sentence 1 until there are as many.
    left = 2 if options.n_best == 3 and not options.sample else 1
    assert [a for _, a in toy.rows] == [3] * left + [2] * (6 - left)


def test_padding_and_start_are_never_produced_though_the_decoder_likes_them(options):
    toy = ToyDecoder(5, sentences=8)
    toy.table[..., [PAD, BOS]] += 20
    tokens = [token for outputs in run(toy, options) for output in outputs for token in output.tokens]
    assert set(tokens) == {UNK, 4, 5}


def test_unproducible_tokens_take_no_probability():
    logits = torch.tensor([[log(1), 9.0, 9.0, log(2), log(5)]])
    torch.testing.assert_close(producible(logits).softmax(1), torch.tensor([[1 / 8, 0, 0, 2 / 8, 5 / 8]]))
    assert logits[0, PAD] == 9, "the decoder's own logits stay as they are"
    assert producible(logits.half()).dtype == torch.float32


def test_fewest_tokens(options):
    options = options.model_copy(update={"min_output_length": 4})
    found = run(ToyDecoder(6, sentences=8, end=6), options)
    lengths = [len(output.tokens) for outputs in found for output in outputs if output.finished]
    assert min(lengths) == 4


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_comes_twice(options, size):
    toy = ToyDecoder(7, sentences=8, sharpness=3, end=-2)

    def repeated(tokens: list[int]) -> bool:
        grams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
        return len(set(grams)) < len(grams)

    free = run(toy, options, limit=12)
    assert any(repeated(steps(output)) for outputs in free for output in outputs)
    ruled = run(toy, options.model_copy(update={"no_repeat_ngram_size": size}), limit=12)
    assert not any(repeated(steps(output)) for outputs in ruled for output in outputs)


def test_where_every_token_is_forbidden_the_output_may_end(options):
    # Three ordinary tokens, none twice, and no end before nine: after three tokens only the end is left.
    options = options.model_copy(update={"no_repeat_ngram_size": 1, "min_output_length": 9})
    for outputs in run(ToyDecoder(8, sentences=4), options, limit=12):
        assert all(output.finished and sorted(output.tokens) == [UNK, 4, 5] for output in outputs)


def test_forced_prefix_starts_every_output_and_counts_with_its_own_probability(options):
    toy, prefix = ToyDecoder(9, sentences=4, end=1), [[4, 4, 5], [], [5], [0, 5]]
    for sentence, outputs in enumerate(run(toy, options, prefix=prefix)):
        wanted = prefix[sentence]
        own = toy.walk(sentence, wanted)[0]
        for output in outputs:
            assert list(output.tokens[: len(wanted)]) == wanted
            assert output.token_log_probabilities[: len(wanted)] == pytest.approx(own, abs=1e-9)


def test_prefix_is_forced_against_the_rules_on_choice(options):
    options = options.model_copy(update={"no_repeat_ngram_size": 1})
    [outputs] = run(ToyDecoder(9), options, prefix=[[4, 4, 4]])
    assert all(output.tokens[:3] == (4, 4, 4) and 4 not in output.tokens[3:] for output in outputs)


def test_prefix_longer_than_the_limit_raises_the_limit_to_its_length(options):
    for end, finished in ((-50, False), (50, True)):
        [outputs] = run(ToyDecoder(10, vocabulary=12, end=end), options, limit=2, prefix=[[4, 5, 4]])
        assert outputs[0].tokens == (4, 5, 4)
        assert outputs[0].finished == finished


def test_the_limit_counts_tokens_and_the_end_may_still_be_written(options):
    for ends in (False, True):
        toy = ToyDecoder(19, sentences=4, vocabulary=12, end=-100)
        toy.table[:, 0, BOS, 4] += 300
        toy.table[:, BOS, 4, 5] += 300
        toy.table[:, 4, 5, EOS] += 400 * ends
        for output, *_ in run(toy, options, limit=2):
            assert (output.tokens, output.finished) == ((4, 5), ends)
            assert output.log_probability == pytest.approx(0, abs=1e-9)


def test_an_output_at_the_limit_does_not_come_twice_with_and_without_its_end():
    toy = ToyDecoder(20, sentences=6, end=1)
    for outputs in run(toy, SearchConfig(beam_size=8, n_best=8), limit=2):
        assert len({output.tokens for output in outputs}) == len(outputs)


def test_common_prefix_costs_one_row_a_sentence():
    toy = ToyDecoder(11, sentences=2, end=-50)
    run(toy, WAYS["beam"], limit=5, prefix=[[4, 4], [5, 5, 5]])
    assert [n // a for n, a in toy.rows] == [1, 1, 1, 4, 4, 4]


def test_nothing_finished_gives_partial_outputs(options):
    [outputs] = run(ToyDecoder(12, vocabulary=9, end=-50), options, limit=3)
    assert [(len(output.tokens), output.finished) for output in outputs] == [(3, False)] * options.n_best
    assert [len(output.token_log_probabilities) for output in outputs] == [3] * options.n_best
    assert [len(output.attention) for output in outputs] == [3] * options.n_best


def test_attention_comes_only_when_asked_for_and_where_there_is_any(options):
    toy = ToyDecoder(13, sentences=2)
    limits = Sentences(torch.tensor([4, 4]))
    outputs = search(toy, *toy.begin(), options, limits)
    assert all(output.attention is None for found in outputs for output in found)
    classic = search(
        lambda *given: toy(*given)._replace(attention=None), *toy.begin(), options, limits, with_attention=True
    )
    assert outputs == classic


def test_no_gradients_are_recorded_and_results_are_ordinary_tensors(options):
    toy, modes = ToyDecoder(14), []

    def step(*given):
        modes.append(torch.is_inference_mode_enabled())
        return toy(*given)

    [[output, *_]] = search(step, *toy.begin(), options, Sentences(torch.tensor([5])), with_attention=True)
    assert all(modes)
    assert output.attention is not None
    assert not output.attention.is_inference()
    assert output.attention.untyped_storage().nbytes() == output.attention.numel() * 8, (
        "its own memory, not the batch's"
    )


def test_half_precision_logits_are_searched_in_float32(options):
    toy = ToyDecoder(15, sentences=2)

    def half(*given):
        result = toy(*given)
        return result._replace(logits=result.logits.bfloat16())

    for outputs in search(half, *toy.begin(), options, Sentences(torch.tensor([6, 6]))):
        for output in outputs:
            assert output.log_probability == pytest.approx(sum(output.token_log_probabilities))
            assert any(value != torch.tensor(value).bfloat16().item() for value in output.token_log_probabilities)


def test_no_sentences_no_outputs(options):
    toy = ToyDecoder(16)
    memory, state = toy.begin()
    assert search(toy, memory, state, options, Sentences(torch.tensor([], dtype=torch.long))) == []


def test_limit_below_one_is_an_error(options):
    with pytest.raises(ConfigError, match="sentence 2: the output limit is 0; it must be at least 1"):
        run(ToyDecoder(17, sentences=2), options, limit=[3, 0])


@pytest.mark.parametrize(
    ("prefix", "token", "position"), [([4, EOS], "</s>", 2), ([BOS], "<s>", 1), ([4, PAD, 5], "<pad>", 2)]
)
def test_special_token_in_a_prefix_is_an_error(options, prefix, token, position):
    message = f"sentence 2: token {position} of the forced prefix is the special token '{token}'"
    with pytest.raises(DataError, match=message):
        run(ToyDecoder(18, sentences=2), options, prefix=[[4], prefix])


@pytest.mark.parametrize("columns", [5, 64 * 64 - 1, 64 * 64, 64 * 64 + 17, 64 * 100])
@pytest.mark.parametrize("k", [1, 3])
def test_largest_by_blocks_is_largest(columns, k):
    values = torch.randn(7, columns, generator=torch.Generator().manual_seed(columns))
    values[2, 3:] = -torch.inf
    values[4, -1] = 9
    expected = values.topk(k, dim=1)
    found, index = largest(values, k)
    torch.testing.assert_close(found, expected.values, rtol=0, atol=0)
    assert torch.equal(values.gather(1, index), found)
    assert torch.equal(index[[0, 1, 3, 4]], expected.indices[[0, 1, 3, 4]])


def test_largest_of_a_row_without_any_stays_in_range():
    values = torch.full((2, 64 * 64 + 1), -torch.inf)
    values[1, -1] = 0
    found, index = largest(values, 3)
    assert found.tolist() == [[-torch.inf] * 3, [0, -torch.inf, -torch.inf]]
    assert index[1, 0] == 64 * 64
    assert index.max() <= 64 * 64
