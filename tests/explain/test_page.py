"""The page without the server: one file, no network; its words, and that what it is made of fits together.

What it shows and does is tested in a browser: tests/serving/test_browser.py (`make test-browser`).
"""

from __future__ import annotations

import json
import re

import pytest

import tiny
from explain_tools import make
from mirada.config.options import SearchConfig
from mirada.explain.legend import legend
from mirada.explain.page import MODULES, embeddable, page, script, static
from mirada.explain.trace import plain, trace
from mirada.messages import speaking, spoken
from mirada.translator import load

ENGLISH = r"\b(the|of|where|over|each|with|what|all|source|output|state|scores|weights|head|is)\b"
WORDS = static().joinpath("words.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tiny.write_folder(tmp_path_factory.mktemp("page") / "bahdanau", "bahdanau")
    return trace(load(folder, device="cpu"), "a bc b", options=SearchConfig(beam_size=2))


def test_nothing_is_fetched_and_no_text_breaks_out(traces):
    html = page(traces)
    assert not re.search(r"""(src|href)\s*=\s*["']?((https?:)?//|/static)""", html)
    assert html.count("default-src 'none'") == 1
    assert "</script><b>" not in embeddable("</script><b>\u2028")
    assert json.loads(embeddable("</script><b>\u2028")) == "</script><b>\u2028"


def test_the_page_holds_the_traces_without_the_vocabularys_logits(traces):
    found = json.loads(re.search(r'id="traces">(.*?)</script>', page(traces), re.S)[1])
    whole = json.loads(json.dumps([plain(one) for one in traces]))
    assert "logits" in whole[0]["steps"][0]
    for one in whole:
        for step in one["steps"]:
            del step["logits"]
    assert found == whole


def test_the_modules_are_all_there_and_each_needs_only_those_above():
    names = {path.name.removesuffix(".js") for path in static().iterdir() if path.name.endswith(".js")}
    assert names == set(MODULES)
    for place, name in enumerate(MODULES):
        text = static().joinpath(f"{name}.js").read_text(encoding="utf-8")
        assert set(re.findall(r'from "\./(\w+)\.js"', text)) <= set(MODULES[:place]), name
        assert len(text.splitlines()) <= 300, name


def test_as_one_script_no_name_is_declared_twice():
    declared = re.findall(r"^(?:async )?(?:const|let|function) (\w+)", script(), re.M)
    assert len(declared) > 80
    assert {name for name in declared if declared.count(name) > 1} == set()
    assert not re.search(r"^(import|export) ", script(), re.M)


def block(name: str) -> str:
    """One language's words."""
    return re.search(rf"^  {name}: \{{(.*?)^  \}},", WORDS, re.S | re.M)[1]


def test_both_languages_name_everything():
    english, spanish = (re.findall(r'(?:^|, |^ +)(\w+): "', block(name), re.M) for name in ("en", "es"))
    assert english == spanish
    code = script() + static().joinpath("index.html").read_text(encoding="utf-8")
    used = set(re.findall(r'data-(?:say|label)="(\w+)"|say\("(\w+)"\)|button\("(\w+)", ', code))
    assert {word for words in used for word in words if word and word != "out"} <= set(english)


SYSTEMS = [
    {"decoder": "classic", "rnn_type": "lstm", "enc_layers": 2, "dec_layers": 2},
    {"decoder": "classic", "feed_context": True, "reverse_source": True},
    {"decoder": "bahdanau", "readout": "deep"},
    *({"decoder": "luong", "score": score} for score in ("dot", "general", "additive", "concat", "scaled_dot")),
    {"decoder": "transformer", "enc_layers": 2, "dec_layers": 2},
    {"decoder": "transformer", "norm": "post"},
    {"decoder": "bahdanau", "coverage": True, "copy_attn": True, "attention_window": "local-m"},
    {"decoder": "luong", "attention_window": "local-p"},
    {"decoder": "transformer", "copy_attn": True, "copy_head": 2, "dec_layers": 2},
]


@pytest.mark.parametrize("options", SYSTEMS)
def test_every_meaning_and_phrase_has_its_spanish(options):
    """Words in equations that are in no list would stand in English on the Spanish page."""
    translator = make(**options)
    one = trace(translator, "the cat", options=SearchConfig(beam_size=1, max_output_length=2))[0]
    for name, entry in legend(translator.config.model, one.legend).items():
        assert f'"{entry.meaning}":' in WORDS, name
        rest = entry.equation
        for phrase in re.findall(r'\["([^"]+)", "', WORDS):
            rest = rest.replace(phrase, "")
        left = set(re.findall(r"(?<![\w_{])[a-z]{4,}", rest)) - {"tanh", "softmax", "maxout", "cell"}
        assert left == set(), (name, entry.equation)
        with speaking("es"):
            assert not re.search(ENGLISH, f"{spoken(entry.meaning)} {spoken(entry.equation)}"), name
