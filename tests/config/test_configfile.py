"""Options in YAML: what is written comes back, and each mistake is met by one line that says where and what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny
from mirada.config.configfile import BLOCKS, changed, dump, leaves, load, load_yaml, parse
from mirada.config.options import Config, ModelConfig, SearchConfig
from mirada.errors import ConfigError

# Words that YAML takes for something else, and what must be quoted.
TRICKY = ["no", "null", "~", "1e3", "2024-01-01", "0x1f", "a: b # c", "- x", "ñ 漢 \U0001f600", "'\"", " blank ", ""]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refuses(message: str) -> pytest.RaisesExc[ConfigError]:
    return pytest.raises(ConfigError, match=f"^{re.escape(message)}$")


# Round trip


def returns(config: Config, path: Path) -> bool:
    return load(write(path, dump(config))) == config


@pytest.mark.parametrize("decoder", list(tiny.MODELS))
def test_what_is_written_comes_back(tmp_path, decoder):
    assert returns(tiny.options(decoder), tmp_path / "a.yaml")


def test_every_block_changed_comes_back(tmp_path):
    config = parse(
        {
            "model_dir": "~/runs/é",
            "data": {"src": "a.gz", "tgt": "b", "source_tokenizer": "word", "vocab_size": 9, "normalize": "none"},
            "model": {"decoder": "bahdanau", "score": "mlp", "embedding_dropout": 0.0, "bidirectional": False},
            "training": {
                "max_minutes": 0.5,
                "learning_rate": 1e-07,
                "adam_betas": [0.5, 0.75],
                "valid_metrics": ["wer", "bleu"],
                "early_stopping_metric": "wer",
            },
            "search": {"sample": True, "top_p": 0.3, "max_output_length": 4},
        }
    )
    assert returns(config, tmp_path / "a.yaml")


@given(text=st.one_of(st.sampled_from(TRICKY), st.text(st.characters(codec="utf-8"))), rate=st.floats(1e-300, 1e300))
def test_any_text_and_any_number_come_back(tmp_path_factory, text, rate):
    config = parse({"data": {"src": text, "source_key": text}, "training": {"learning_rate": rate}})
    assert returns(config, tmp_path_factory.getbasetemp() / "any.yaml")


def test_options_are_written_in_the_order_of_their_fields(tmp_path):
    keys = load_yaml(write(tmp_path / "a.yaml", dump(Config())))
    assert list(keys) == ["model_dir", "data", "model", "training", "search"]
    assert all(list(keys[name]) == list(block.model_fields) for name, block in BLOCKS.items())


# Reading


def test_an_empty_file_means_the_defaults(tmp_path):
    for text in ("", "# nothing\n", "---\n"):
        assert load(write(tmp_path / "a.yaml", text)) == Config()


def test_a_byte_order_mark_is_no_option(tmp_path):
    assert load(write(tmp_path / "a.yaml", b"\xef\xbb\xbfmodel_dir: x\n")).model_dir == "x"


def test_a_number_with_an_exponent(tmp_path):
    """YAML 1.1 takes 1e-3, which has no point, for text."""
    assert load(write(tmp_path / "a.yaml", "training:\n  learning_rate: 1e-3\n")).training.learning_rate == 0.001


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("model:\n  decoder: luong\n bad: 1\n", 3),
        ("model:\n\tdecoder: luong\n", 2),
        ("model: {decoder: luong\n", 2),
        ("a: 1\nb: 2\nc: [1, 2}\n", 3),
    ],
)
def test_bad_syntax_is_met_by_its_line(tmp_path, text, line):
    path = write(tmp_path / "a.yaml", text)
    with pytest.raises(ConfigError, match=rf"^{re.escape(str(path))}:{line}: not valid YAML \(\S.+\)$"):
        load(path)


def test_yaml_makes_no_objects(tmp_path):
    path = write(tmp_path / "a.yaml", "model_dir: !!python/object/apply:os.getcwd []\n")
    with pytest.raises(ConfigError, match=r"a\.yaml:1: not valid YAML \(could not determine a constructor"):
        load(path)


def test_what_stands_twice_is_met_by_its_line(tmp_path):
    path = write(tmp_path / "a.yaml", "model:\n  dropout: 0.1\n  hidden_size: 3\n  dropout: 0.2\n")
    with refuses(f"{path}:4: not valid YAML ('dropout' stands twice)"):
        load(path)


def test_files_that_cannot_be_read(tmp_path):
    with refuses(f"{tmp_path / 'none.yaml'}: no such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match=f"^{re.escape(str(tmp_path))}: cannot be read \\(.*directory"):
        load(tmp_path)
    path = write(tmp_path / "a.yaml", b"model_dir: \xff\n")
    with pytest.raises(ConfigError, match=r"a\.yaml: cannot be read \(.*utf-8.*0xff"):
        load(path)


@pytest.mark.parametrize(("text", "kind"), [("- a\n- b\n", "list"), ("luong\n", "str"), ("3\n", "int")])
def test_no_mapping(tmp_path, text, kind):
    path = write(tmp_path / "a.yaml", text)
    with refuses(f"{path}: expected a mapping of options, got {kind}"):
        load(path)


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = write(tmp_path / "a.yaml", "model: {hiden_size: 3}\n")
    with refuses(f"{path}: unknown option 'model.hiden_size'; did you mean 'hidden_size'?"):
        load(path)


# Unknown names


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"modle": {}}, "unknown option 'modle'; did you mean 'model'?"),
        ({"model": {"hiden_size": 3}}, "unknown option 'model.hiden_size'; did you mean 'hidden_size'?"),
        ({"hidden_size": 3}, "unknown option 'hidden_size'; did you mean 'model.hidden_size'?"),
        ({"hiden_size": 3}, "unknown option 'hiden_size'; did you mean 'model.hidden_size'?"),
        (
            {"model": {"learning_rate": 1}},
            "unknown option 'model.learning_rate'; did you mean 'training.learning_rate'?",
        ),
        ({"model": {"xyzzy": 1}}, "unknown option 'model.xyzzy'"),
        ({"xyzzy": 1}, "unknown option 'xyzzy'"),
    ],
)
def test_an_unknown_name_is_met_by_the_nearest(values, message):
    with refuses(f"here: {message}"):
        parse(values, where="here")


@pytest.mark.parametrize(("block", "name"), leaves())
def test_every_option_is_found_when_its_block_was_forgotten(block, name):
    with refuses(f"options: unknown option {name!r}; did you mean '{block}.{name}'?"):
        parse({name: 1})


def test_keys_that_are_no_names():
    with pytest.raises(ConfigError, match="keys should be strings"):
        parse({1: 2})  # type: ignore[dict-item]


# One option changed


def test_a_changed_option_is_checked_again():
    options = SearchConfig(beam_size=4, n_best=2)
    assert changed(options, {"beam_size": 2}) == SearchConfig(beam_size=2, n_best=2)
    assert options.beam_size == 4
    with refuses("n_best 2 is larger than beam_size 1; n_best must be 1 to beam_size"):
        changed(options, {"beam_size": 1})
    with refuses("beam_size: input should be greater than or equal to 1 (got 0)"):
        changed(options, {"beam_size": 0})
    with pytest.raises(ConfigError, match=r"^unknown option 'beam'"):
        changed(options, {"beam": 2})


def test_a_changed_block_keeps_its_aliases_and_its_kind():
    assert changed(ModelConfig(), {"score": "mlp"}) == ModelConfig(score="additive")
    nested = changed(Config(), {"model": {"decoder": "classic"}})
    assert isinstance(nested, Config)
    assert nested.model.decoder == "classic"
