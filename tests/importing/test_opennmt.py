"""OpenNMT-py 3: its habits, and every way in which a checkpoint can be wrong."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from cli_tools import works
from import_tools import Change, Hostile, refused, spoil
from mirada.translator import load

HERE = Path(__file__).parent
MODELS = sorted(path.name for path in HERE.glob("onmt_*"))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of a recurrent model that may be spoilt."""
    return Path(shutil.copy(HERE / "onmt_general" / "model.pt", tmp_path / "model.pt"))


SAID = {
    "onmt_general": "Luong's system with the score general as Luong et al. 2015 have it",
    "onmt_dot": "Luong's system with the score dot as Luong et al. 2015 have it",
    "onmt_mlp": "mlp attention is not Bahdanau's system: the additive score looks with the new state (Luong's flow)",
    "onmt_classic": "the classic encoder-decoder of Sutskever et al. 2014, its source read in its own order, and",
    "onmt_transformer": "a Transformer as Vaswani et al. 2017 have it, but for pre-norm, ε 1e-06 of its norms",
    "onmt_transformer_concat": "a Transformer as Vaswani et al. 2017 have it, but for pre-norm, ε 1e-06 of its norms",
}


@pytest.mark.parametrize("name", MODELS)
def test_it_says_what_differs_from_the_papers_system(name: str, tmp_path: Path) -> None:
    said = works("import", HERE / name / "model.pt", "--out", tmp_path / "out").errors
    assert "imported from OpenNMT-py" in said
    assert SAID[name] in said
    assert "its encoder does not read the </s> of sources" in said
    assert "texts are cut at blanks only" in said


def test_the_systems_are_the_papers_where_they_can_be(tmp_path: Path) -> None:
    """Attention by score and flow, the start copied or by ReLU, as options name it."""
    found = {}
    for name in ("onmt_general", "onmt_mlp", "onmt_classic", "onmt_transformer"):
        works("import", HERE / name / "model.pt", "--out", tmp_path / name)
        found[name] = load(tmp_path / name, device="cpu").config.model
    assert (found["onmt_general"].decoder, found["onmt_general"].score, found["onmt_general"].bridge) == (
        "luong",
        "general",
        "copy",
    )
    assert (found["onmt_mlp"].score, found["onmt_mlp"].attentional, found["onmt_mlp"].bridge) == (
        "additive",
        "linear",
        "relu",
    )
    assert (found["onmt_classic"].decoder, found["onmt_classic"].input_feeding) == ("classic", True)
    assert (found["onmt_transformer"].norm_eps, found["onmt_transformer"].tied_softmax) == (1e-6, True)
    assert not any(options.add_source_eos for options in found.values())


def test_words_that_are_spelled_like_special_tokens_are_text(copied: Path, tmp_path: Path) -> None:
    """<pad> is an ordinary word of OpenNMT-py, whose own is <blank>."""

    def rename(content: dict[str, Any]) -> None:
        content["vocab"]["src"][7] = "<pad>"

    spoil(copied, rename)
    works("import", copied, "--out", tmp_path / "out")
    tokenizer = load(tmp_path / "out", device="cpu").source_tokenizer
    [[index]] = tokenizer.encode(["<pad>"])
    assert index == 7
    assert tokenizer.decode([index]) == "<pad>"


def test_pieces_of_words_are_told(copied: Path, tmp_path: Path) -> None:
    def mark(content: dict[str, Any]) -> None:
        content["vocab"]["src"] = [word if word[0] == "<" else f"▁{word}" for word in content["vocab"]["src"]]

    spoil(copied, mark)
    said = works("import", copied, "--out", tmp_path / "out").errors
    assert "its vocabulary holds pieces with ▁, as of SentencePiece: cut sources into them" in said


def option(**values: Any) -> Change:
    return lambda content: vars(content["opt"]).update(values)


def weight(name: str, change: Any) -> Change:
    def changed(content: dict[str, Any]) -> None:
        found = change(content["model"][name])
        content["model"].pop(name)
        content["model"].update({} if found is None else {name: found})

    return changed


ATTENTION = "decoder.attn.linear_out.weight"
BAD: list[tuple[Change, str]] = [
    (option(encoder_type="cnn"), "opt.encoder_type is 'cnn', expected rnn or brnn"),
    (option(decoder_type="transformer"), "opt.decoder_type is 'transformer', expected rnn or ifrnn"),
    (option(rnn_type="SRU"), "opt.rnn_type is 'SRU', expected LSTM or GRU"),
    (option(copy_attn=True), "opt.copy_attn True; only False can be imported"),
    (option(coverage_attn=True), "opt.coverage_attn True; only False can be imported"),
    (option(context_gate="both"), "opt.context_gate 'both'; only None can be imported"),
    (option(global_attention_function="sparsemax"), "'sparsemax'; only softmax can be imported"),
    (option(model_task="lm"), "opt.model_task 'lm'; only seq2seq can be imported"),
    (option(layers=-1, dec_layers=3), "opt.enc_layers 2 and opt.dec_layers 3 must be equal"),
    (option(layers=3), "the tensor encoder.rnn.weight_ih_l2 is missing"),
    (option(layers=1), "unknown tensors decoder.rnn.layers.1.bias_hh"),
    (option(hidden_size=10), "generator.weight is"),
    (option(hidden_size=-1, dec_hid_size="12"), "opt.dec_hid_size is '12', expected a whole number from 1 to 1048576"),
    (option(bridge=True), "the tensor encoder.bridge.0.weight is missing"),
    (lambda content: content.pop("opt"), "no model that can be imported is there"),
    (lambda content: content.update(opt=3), "opt is 3, expected settings"),
    (lambda content: content.pop("model"), "holds no weights; save the model with save_format pytorch"),
    (lambda content: content.update(vocab={"src": ["a"]}), "holds no vocabularies as OpenNMT-py 3 writes them"),
    (lambda content: content["vocab"]["src"].append("a"), "emb_luts.0.weight is"),
    (lambda content: content["vocab"]["tgt"].append("la"), "its vocabulary holds a word twice, or what is no word"),
    (lambda content: content["vocab"]["tgt"].remove("</s>"), "the entry for </s> is None, but there are"),
    (lambda content: content["vocab"]["src"].__setitem__(9, "a\nb"), "one of its entries holds a line end"),
    (weight(ATTENTION, lambda old: None), f"the tensor {ATTENTION} is missing"),
    (weight(ATTENTION, lambda old: old[:, :3].clone()), f"{ATTENTION} is [12, 3], expected [12, 24]"),
    (weight(ATTENTION, lambda old: old * torch.nan), f"{ATTENTION} holds values that are no numbers"),
    (weight(ATTENTION, lambda old: old.int()), f"{ATTENTION} is torch.int32, torch.strided; expected plain floats"),
    (lambda content: content["model"].update(more=torch.ones(1)), "unknown tensors more"),
    (lambda content: content["model"].update(more=1), "expected tensors by name, got something else"),
]


@pytest.mark.parametrize(("change", "line"), BAD, ids=[line for _, line in BAD])
def test_bad_content_is_one_line(copied: Path, tmp_path: Path, change: Change, line: str) -> None:
    spoil(copied, change)
    assert line in refused(copied, tmp_path / "out")


TRANSFORMER: list[tuple[Change, str]] = [
    (option(max_relative_positions=-1), "opt.max_relative_positions -1; only 0 can be imported"),
    (option(position_encoding=False), "opt.position_encoding False; only True can be imported"),
    (option(layer_norm="rms"), "opt.layer_norm 'rms'; only standard can be imported"),
    (option(pos_ffn_activation_fn="silu"), "opt.pos_ffn_activation_fn is 'silu', expected relu or gelu"),
    (option(self_attn_type="average"), "opt.self_attn_type is 'average', expected scaled-dot or scaled-dot-flash"),
    (option(heads=3), "embedding_dim 16 is not a multiple of num_heads 3"),
    (option(norm_eps=0), "opt.norm_eps is 0, expected a number above 0"),
    (option(norm_eps=3.0), "cannot be a model of mirada (options: model.norm_eps"),
    (option(add_qkvbias=True), "the tensor encoder.transformer.0.self_attn.linear_query.bias is missing"),
    (
        lambda content: content["model"]["encoder.embeddings.make_embedding.pe.pe"].add_(1),
        "encoder.embeddings.make_embedding.pe.pe are not sinusoids; learned positions are not known",
    ),
]


@pytest.mark.parametrize(("change", "line"), TRANSFORMER, ids=[line for _, line in TRANSFORMER])
def test_a_transformer_that_mirada_has_not_is_one_line(tmp_path: Path, change: Change, line: str) -> None:
    path = Path(shutil.copy(HERE / "onmt_transformer" / "model.pt", tmp_path / "model.pt"))
    spoil(path, change)
    assert line in refused(path, tmp_path / "out")


def test_a_bridge_between_layers_is_one_line(tmp_path: Path) -> None:
    path = Path(shutil.copy(HERE / "onmt_classic" / "model.pt", tmp_path / "model.pt"))
    spoil(path, option(bridge=True))
    assert "opt.bridge with 2 layers and one direction mixes the states of different layers" in refused(
        path, tmp_path / "out"
    )


def test_what_is_no_checkpoint_is_one_line(copied: Path, tmp_path: Path) -> None:
    whole = copied.read_bytes()
    for content, line in ((b"", "damaged or not a file of torch.save"), (whole[:-4000], "damaged or not a file of")):
        copied.write_bytes(content)
        assert line in refused(copied, tmp_path / "out")
    torch.save([1], copied)
    assert "no model that can be imported is there" in refused(copied, tmp_path / "out")


def test_a_pickle_that_runs_a_program_is_not_run(copied: Path, tmp_path: Path) -> None:
    torch.save({"opt": Hostile(), "vocab": {}, "model": {}}, copied)
    line = refused(copied, tmp_path / "out")
    assert "holds the Python object" in line
    assert "eval" in line
    assert not Path("/tmp/never").exists()
