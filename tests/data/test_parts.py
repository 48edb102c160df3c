"""Sources of several parts: each part's own tokens, <sep> between them, one vocabulary, one file."""

from __future__ import annotations

import json
import re

import pytest

from cli_tools import mirada, refusal, works, write
from mirada.config.configfile import parse
from mirada.data.corpus import Corpus, load_pairs, read_jsonl, read_tsv
from mirada.data.parts import Parts, load_source, split_parts, train_source
from mirada.data.tokenizer import Tokenizer, TokenizerOptions
from mirada.data.vocabulary import EOS, SEP, UNK
from mirada.errors import ConfigError, DataError, ModelFolderError
from mirada.models import build_model
from mirada.train import prepare
from mirada.translator import load

OPTIONS = TokenizerOptions("bpe", 90)
VERBS = [f"{stem}ar" for stem in ("habl", "cant", "bail", "nad", "pas", "mir", "tom", "llev", "dej", "llam")]
ENDS = {"V;IND;1": "o", "V;IND;2": "as", "V;IND;3": "a", "V.PTCP": "ado"}
ROWS = [(verb, tags, verb[:-2] + end) for verb in VERBS for tags, end in ENDS.items()]
TEXTS = [f"{verb}\t{tags}" for verb, tags, _ in ROWS]


def parts(kinds: str = "char,features", texts: list[str] = TEXTS) -> Parts:
    made = train_source(texts, kinds.split(","), OPTIONS)
    assert isinstance(made, Parts)
    return made


# Ids


def test_each_part_has_its_own_tokens_with_a_separator_between():
    own = parts()
    (pieces,) = own.pieces(["hablar\tV;IND;2"])
    assert [piece.text for piece in pieces] == [*"hablar", "<sep>", "V", ";IND", ";2"]
    assert [piece.id for piece in pieces] == own.encode(["hablar\tV;IND;2"])[0]
    assert [own.token(piece.id) for piece in pieces] == [piece.text for piece in pieces]
    assert [piece.word for piece in pieces] == list(range(10))
    text = "hablar\tV;IND;2"
    assert ["".join(text[slice(*piece.span)]) for piece in pieces] == [*"hablar", "\t", "V", ";IND", ";2"]
    assert own.kind == "char,features"


def test_ids_of_different_kinds_never_meet_and_fill_the_vocabulary():
    own = parts("char,features,char", [f"{text}\tx" for text in TEXTS])
    ids = {i for row in own.encode([f"{text}\tx" for text in TEXTS]) for i in row}
    assert ids == set(range(SEP, len(own)))
    names = [own.token(i) for i in range(len(own))]
    assert names[:5] == ["<unk>", "<pad>", "<s>", "</s>", "<sep>"]
    assert len(own) == 5 + sum(len(tokenizer) - 4 for tokenizer in own.inner.values())
    assert len(own.inner) == 2  # parts of one kind share their vocabulary
    (row,) = own.encode(["x\tV\tx"])
    assert row[0] == row[-1]


def test_parts_come_back_as_text():
    own = parts()
    assert [own.decode(ids) for ids in own.encode(TEXTS)] == TEXTS
    assert own.decode([*own.encode([TEXTS[0]])[0], EOS]) == TEXTS[0]


def test_missing_empty_unknown_and_further_parts():
    own = parts()
    assert own.encode(["", " \t "]) == [[], []]
    assert SEP not in own.encode(["hablar"])[0]
    assert own.encode(["\tV"])[0][0] == SEP
    assert own.encode(["hablar\tQ"])[0][-1] == UNK
    assert own.pieces(["h\tQ"])[0][-1].text == "Q"
    assert [piece.text for piece in own.pieces(["h\tV\tV;IND"])[0]] == ["h", "<sep>", "V", "<sep>", "V", ";IND"]


def test_texts_of_a_list_are_parted_too_and_have_the_tokens_of_their_part():
    own = parts("word,word", ["who\tyes\x1eno", "me\tno"])
    assert [piece.text for piece in own.pieces(["who\tno\x1eyes"])[0]] == ["who", "<sep>", "no", "<sep>", "yes"]
    assert split_parts(["a\tb\x1ec", "d\te"], 2) == [["a", "d"], ["b", "c", "e"]]
    assert split_parts(["a\tb"], 1) == [["a\tb"]]


# Files


def test_one_file_gives_the_same_ids(tmp_path):
    own = parts()
    own.save(tmp_path / "source.json")
    loaded = load_source(tmp_path / "source.json", "char,features")
    assert loaded.encode(TEXTS) == own.encode(TEXTS)
    assert len(loaded) == len(own)
    assert isinstance(train_source(["a"], ["char"], OPTIONS), Tokenizer)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.update(parts=["char"]), "not the tokenisers of a source with the parts char,features"),
        (lambda c: c.pop("tokenizers"), "not the tokenisers of a source with the parts char,features"),
        (lambda c: c["tokenizers"].pop("char"), "not the tokenisers of a source with the parts char,features"),
        (lambda c: c["tokenizers"].update(char={}), "not a tokeniser file ("),
        (lambda c: c["tokenizers"]["char"].update(normalizer=None), "not made by mirada for char; its normalisation"),
        (lambda c: c["tokenizers"]["char"]["model"]["vocab"].update(q=99), "its entries are not numbered from 0"),
    ],
)
def test_a_file_that_mirada_would_not_write(tmp_path, change, said):
    path = tmp_path / "source.json"
    parts().save(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ModelFolderError, match=f"^{re.escape(f'{path}: {said}')}"):
        load_source(path, "char,features")


# Columns and keys


def test_a_line_of_names_shifts_nothing(model_folder, tmp_path):
    """Line n of a file beside the pairs, or of the output, belongs to pair n, not to line n of the file of pairs."""
    rows = ["the cat\tel gato", "\tx", "a man\tun hombre"]
    named = write(tmp_path / "a.tsv", ["en\tes", *rows])
    columns = ["--tsv", named, "--source-column", "en", "--target-column", "es"]
    groups, outputs = write(tmp_path / "g", ["one", "none", "two"]), write(tmp_path / "o", ["el gato", "", "un perro"])
    ran = works("evaluate", "--hyp", outputs, *columns, "--groups", groups, "--metrics", "exact", "--json")
    found = {group["group"]: group["value"] for group in json.loads(ran.output)["by_group"]}
    assert found == {"one": 100.0, "two": 0.0}
    bare = ["--tsv", write(tmp_path / "b.tsv", rows)]
    if "classic" not in model_folder.name:
        assert works("align", model_folder, *columns).lines == works("align", model_folder, *bare).lines
    assert works("score", model_folder, *columns).lines == works("score", model_folder, *bare).lines


def test_columns_by_number_and_by_name(tmp_path):
    rows = [f"{verb}\t{form}\t{tags}" for verb, tags, form in ROWS]
    plain = read_tsv(write(tmp_path / "a.tsv", rows), source_column="1,3", target_column=2)
    assert (plain.sources[:2], plain.targets[:2]) == (TEXTS[:2], ["hablo", "hablas"])
    named = write(tmp_path / "b.tsv", ["lemma\tform\ttags", *rows])
    found = read_tsv(named, source_column="lemma,tags", target_column="form")
    assert (found.sources, found.targets) == (plain.sources, plain.targets)
    assert found.lines[0] == 2
    said = (
        f"{named}:1: no column named 'tag' (columns of the first line: 'lemma', 'form', 'tags'); did you mean 'tags'?"
    )
    with pytest.raises(DataError, match=f"^{re.escape(said)}$"):
        read_tsv(named, source_column="lemma,tag", target_column="form")


def test_keys_and_lists(tmp_path):
    records = [{"q": "who?", "turns": ["a\tb", "c"], "answer": ["me", "", "I"]}, {"q": "x", "turns": [], "answer": "y"}]
    path = write(tmp_path / "a.jsonl", [json.dumps(record) for record in records])
    found = read_jsonl(path, source_key="q,turns", target_key="answer")
    assert found.sources == ["who?\ta b\x1ec", "x\t"]
    assert (found.targets, found.references) == (["me", "y"], [("I",), ()])
    assert found.all_references() == [["me", "I"], ["y"]]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (None, [["x"], ["x"], ["x"]]),
        ("3", [["x", "r1"], ["x"], ["x"]]),
        ("3,4", [["x", "r1", "r2"], ["x", "r2"], ["x"]]),
        ("3-", [["x", "r1", "r2", "r3"], ["x", "r2"], ["x"]]),
    ],
)
def test_dev_pairs_have_the_references_that_are_there(tmp_path, columns, expected):
    dev = write(tmp_path / "a.tsv", ["s\tx\tr1\tr2\tr3", "s\tx\t\tr2", "\t", "s\tx"])
    data = parse({"data": {"tsv": str(dev), "dev_tsv": str(dev), "dev_reference_column": columns}}).data
    assert load_pairs(data, seed=1)[1].all_references() == expected


def test_references_under_a_key(tmp_path):
    records = [{"source": "s", "target": ["x", "y"], "more": "z"}, {"source": "s", "target": "x"}]
    dev = str(write(tmp_path / "a.jsonl", [json.dumps(record) for record in records]))
    data = parse({"data": {"jsonl": dev, "dev_jsonl": dev, "dev_reference_key": "more"}}).data
    assert load_pairs(data, seed=1)[1].all_references() == [["x", "y", "z"], ["x"]]
    for name, files in (("dev_reference_column", "dev_tsv"), ("dev_reference_key", "dev_jsonl")):
        said = f"^options: {name} 3 does nothing without {files}, whose references it names$"
        with pytest.raises(ConfigError, match=said):
            parse({"data": {name: "3"}})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"source_column": "0"}, "'0' is no column; columns are counted from 1, or named as in the first line"),
        ({"source_column": "1,,2"}, "'' is no column; columns are counted from 1, or named as in the first line"),
        (
            {"source_tokenizer": "char,tags"},
            "'tags' is no kind of tokens; expected auto, bpe, unigram, word, char",
        ),
        (
            {"tsv": "a", "source_column": "1,2", "source_tokenizer": "char,char,char"},
            "source_tokenizer char,char,char has",
        ),
        (
            {"target_column": "2,3"},
            "target_column 2,3: a target has one part; further",
        ),
        ({"tsv": "a", "source_column": "1,2", "share_vocab": True}, "share_vocab true needs a source of one part"),
        (
            {"tokenizer": "word", "split_digits": True},
            "split_digits true does nothing with tokenizer word",
        ),
    ],
)
def test_parts_that_do_not_fit(data, said):
    with pytest.raises(ConfigError, match=f"^options: {re.escape(said)}"):
        parse({"data": data})


def test_numbers_and_lists_in_files_of_options():
    data = parse({"data": {"source_column": 3, "target_column": 1, "source_key": ["a", "b"]}}).data
    assert (data.source_columns, data.target_column, data.source_keys) == (("3",), "1", ("a", "b"))
    assert parse({"data": {"source_column": [1, "x"]}}).data.source_columns == ("1", "x")


def test_segments_are_those_of_the_parts_or_none():
    texts = [f"{verb}\t{tags}" for verb, tags, _ in ROWS]
    corpora = (Corpus(texts, [form for _, _, form in ROWS], list(range(len(ROWS))), [], "verbs"),) * 2
    data = {"tsv": "a", "source_column": "1,2", "target_column": "3"}
    for given, expected in ((None, 2), (0, 0), (5, 5)):
        config = prepare.resolve(parse({"data": data, "model": {"segments": given}}), corpora)
        source, target = prepare.learn_tokenizers(config, corpora[0])
        model = build_model(config.model, source_vocab=len(source), target_vocab=len(target))
        found = dict(model.named_parameters()).get("encoder.embedding.segments")
        assert config.model.segments == expected
        assert (0 if found is None else len(found)) == expected
    with pytest.raises(ConfigError, match=r"^segments 2 does nothing with a source of one part$"):
        prepare.resolve(parse({"data": {"tsv": "a"}, "model": {"segments": 2}}), corpora)


def test_an_option_of_subwords_where_the_data_chooses_none():
    corpora = (Corpus(["a b", "b a"] * 30, ["a", "b"] * 30, list(range(60)), [], "symbols"),) * 2
    for name, value in (("split_digits", True), ("bpe_dropout", 0.1)):
        with pytest.raises(ConfigError, match=rf"^{name} .* does nothing with tokenizer char and word"):
            prepare.resolve(parse({"data": {name: value}}), corpora)


# From the command line


@pytest.mark.parametrize("decoder", ["luong", "transformer"])
def test_a_word_and_its_features_need_no_options_but_the_columns(decoder, tmp_path):
    """Trained, translated, scored, evaluated, aligned and explained from the same columns."""
    rows = [f"{verb}\t{form}\t{tags}" for verb, tags, form in ROWS]
    path, folder = write(tmp_path / "a.tsv", rows), tmp_path / "m"
    columns = ["--tsv", path, "--source-column", "1,3", "--target-column", 2]
    small = ["--embedding-dim", 8, "--max-updates", 2, "--device", "cpu", "--decoder", decoder]
    ran = works("train", *columns, *small, "--model-dir", folder)
    assert "source part 1 tokens: char (" in ran.errors
    assert "source part 2 tokens: features (" in ran.errors
    assert "target tokens: char (" in ran.errors
    translator = load(folder, device="cpu")
    assert translator.config.data.source_tokenizer == "char,features"
    assert translator.config.model.segments == 2
    given = "hablar\tV;IND;1\n\nllamar\tV.PTCP\n"
    assert len(works("translate", folder, "--device", "cpu", given=given).lines) == 3
    assert len(works("score", folder, "--tsv", path, "--device", "cpu").lines) == len(rows)
    assert "exact" in works("evaluate", folder, "--tsv", path, "--device", "cpu", "--beam-size", 1).output
    assert len(works("align", folder, "--tsv", path, "--device", "cpu").lines) == len(rows)
    text = works("explain", folder, "pasar\tV;IND;1", "--device", "cpu").output
    assert "source part 1 1:p 2:a 3:s 4:a 5:r 6:<sep>\nsource part 2 7:V 8:;IND 9:;1 10:</s>\n" in text
    shown = works("explain", folder, "hablar\tV;IND;1", "--device", "cpu", "--format", "json").output
    (tmp_path / "t.json").write_text(shown, encoding="utf-8")
    assert "<sep>" in shown
    works("explain", folder, "--verify", tmp_path / "t.json", "--device", "cpu")


def test_keys_and_turns_of_a_dialogue(tmp_path):
    """A list is one part with several segments; in use an object a line, or the parts with tabs, give the same."""
    answers = {"yes": "good", "no": "bad", "maybe": "hm"}
    turns = [(word, ["hi", word] * times) for times in (1, 2, 3, 1) for word in answers]
    records = [{"q": "well?", "turns": said, "a": answers[word]} for word, said in turns]
    lines = [json.dumps(record) for record in records]
    path, folder = write(tmp_path / "a.jsonl", lines), tmp_path / "m"
    given = ["--jsonl", path, "--source-key", "q,turns", "--target-key", "a", "--tokenizer", "word"]
    works("train", *given, "--embedding-dim", 8, "--max-updates", 1, "--device", "cpu", "--model-dir", folder)
    config = load(folder, device="cpu").config
    assert (config.data.source_tokenizer, config.model.segments) == ("word,word", 7)
    tabs = ["well?\t" + "\x1e".join(record["turns"]) for record in records]
    by_key, by_tab = (works("translate", folder, "--scores", given="\n".join(side)).lines for side in (lines, tabs))
    assert by_key == by_tab
    said = refusal("translate", folder, "--device", "cpu", given='{"q": "well?", "turn": []}\n')
    assert said == "line 1: no key 'turns' (keys of the line: 'q', 'turn'); did you mean 'turn'?"
    assert len(works("score", folder, "--jsonl", path, "--device", "cpu").lines) == len(records)


def test_sources_are_cut_in_use_as_they_were_in_training(tmp_path):
    rows = [f"{'a b c d e f g h'[: 2 * n + 1]}\tx" for n in range(8)] * 3
    path, folder = write(tmp_path / "a.tsv", rows), tmp_path / "m"
    small = ["--tokenizer", "word", "--embedding-dim", 8, "--max-updates", 1, "--device", "cpu"]
    cut = ["--truncate-source", "last", "--max-length", 4]
    ran = works("train", "--tsv", path, "--dev-tsv", path, *small, *cut, "--model-dir", folder)
    assert "12 training sources are cut to their last 4 tokens (truncate_source)" in ran.errors
    ran = works("translate", folder, "--device", "cpu", "--scores", given="a b c d e f\nc d e f\n")
    assert ran.lines[0] == ran.lines[1]
    assert "line 1: 6 tokens, cut to max_length 4" in ran.errors
    (found,) = load(folder, device="cpu").search(["a b c d e f"])
    assert found[0].source_tokens == (*"cdef", "</s>")


def test_a_column_that_is_not_there_is_named(tmp_path):
    path = write(tmp_path / "a.tsv", ["a\tb"])
    said = f"{path}:1: 2 columns, expected at least 3, separated by tabs"
    assert refusal("train", "--tsv", path, "--source-column", "1,3") == said
    ran = mirada("data", "check", "--tsv", path, "--source-column", "x", "--target-column", "b")
    assert ran.code == 1
    assert f"{path}:1: no column named 'x' (columns of the first line: 'a', 'b')" in ran.output
