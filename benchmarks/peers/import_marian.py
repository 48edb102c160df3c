"""Make tests/importing/marian: a tiny MarianMTModel of random weights, and what Hugging Face says about 50 sentences.

`python -m benchmarks.peers.import_marian FOLDER`, in an environment with transformers and sentencepiece (as `hf` of
install.sh). Sentences are those of the embedded corpus's kind and lines that try the normaliser; the tokenisers are
compared on more of them than are kept.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

NAMES = ["Ana", "Tom", "Lucía", "Zoë", "Ægir", "Ömer"]
THINGS = [
    "house",
    "tree",
    "red fox",
    "cat",
    "book",
    "old man",
    "river",
    "naïve café",
    "ﬁne ofﬁce",
    "½ litre",
    "Ⅳ act",
    "㎏ of rice",
]
VERBS = ["sees", "reads", "likes", "does not find", "can't open", "sold"]
COSAS = [
    "casa",
    "árbol",
    "zorro rojo",
    "gato",
    "libro",
    "señor viejo",
    "río",
    "café",
    "oficina",
    "medio litro",
    "cuarto acto",
    "kilo de arroz",
]
VERBOS = ["ve", "lee", "quiere", "no encuentra", "no puede abrir", "vendió"]
STRANGE = [
    "  two  blanks\u3000and a\u00a0wide one ",
    "tab\there, ＦＵＬＬ ｗｉｄｔｈ ～ and ﬀ",
    "日本語 is not known; ñandú neither",
    "zero\u200bwidth, soft\u00adhyphen, e\u0301 and A\u030a",
    "</s> <unk> <pad> are words",
    "emoji 😀 and \u2581 block",
    ">>spa<< Tom sees the cat",
    "1,234.56 — “quotes” … ™ ①",
]
PIECES = {"model_type": "unigram", "bos_id": -1, "pad_id": -1, "eos_id": 0, "unk_id": 1, "hard_vocab_limit": False}


def sentences(seed: int, count: int) -> list[tuple[str, str]]:
    """Pairs such as a child's book has them, all different."""
    draw, found = random.Random(seed), dict[str, str]()
    while len(found) < count:
        name, verb, thing, other = draw.choice(NAMES), *(draw.randrange(len(part)) for part in (VERBS, THINGS, THINGS))
        number = draw.randrange(1000)
        found[f"{name} {VERBS[verb]} the {THINGS[thing]} and {number} {THINGS[other]}s."] = (
            f"{name} {VERBOS[verb]} la {COSAS[thing]} y {number} {COSAS[other]}s."
        )
    return list(found.items())


def make_tokenizers(folder: Path, pairs: list[tuple[str, str]]) -> int:
    """Two SentencePiece models and one vocabulary; some pieces are in neither, some of another alphabet. Its size."""
    entries = ["</s>", "<unk>"]
    for name, side, rule in (("source", 0, "nmt_nfkc"), ("target", 1, "identity")):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([pair[side] for pair in pairs]),
            model_prefix=str(folder / name),
            vocab_size=150,
            minloglevel=2,
            normalization_rule_name=rule,
            **PIECES,
        )
        (folder / f"{name}.model").rename(folder / f"{name}.spm")
        (folder / f"{name}.vocab").unlink()
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{name}.spm"))
        entries += [model.id_to_piece(i) for i in range(2, len(model))]
    entries = [*dict.fromkeys([*entries, "日", ">>spa<<", ">>fra<<"]), "<pad>"]
    text = json.dumps({entry: number for number, entry in enumerate(entries)}, ensure_ascii=False)
    (folder / "vocab.json").write_text(text, encoding="utf-8")
    return len(entries)


def make_model(folder: Path, size: int) -> MarianMTModel:
    """A model whose choices are clear: large random weights in all parts."""
    torch.manual_seed(4)
    config = MarianConfig(
        vocab_size=size,
        d_model=16,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        activation_function="swish",
        scale_embedding=True,
        max_position_embeddings=64,
        pad_token_id=size - 1,
        decoder_start_token_id=size - 1,
        eos_token_id=0,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            reach = 0.3 if "shared" in name else 0.9
            if "embed_positions" not in name:
                parameter.uniform_(-reach, reach)
            if name.endswith("norm.bias"):  # so that an output says more of the source than of the model
                parameter.mul_(0.1)
            if name.endswith("norm.weight"):
                parameter.abs_().add_(1)
        model.final_logits_bias.uniform_(-0.5, 0.5)
        model.final_logits_bias[0, 0] = 2.5
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    return model


def expected(model: MarianMTModel, tokenizer: Any, source: str, target: str) -> dict[str, Any]:
    """What Hugging Face makes of a pair: log-probabilities without <pad>, which is never written, and greedy choice."""
    read = tokenizer([source], return_tensors="pt")
    given = tokenizer(text_target=[target], return_tensors="pt")["input_ids"]
    start = torch.full((1, 1), model.config.pad_token_id)
    with torch.no_grad():
        logits = model(**read, decoder_input_ids=torch.cat((start, given[:, :-1]), 1)).logits[0]
        written = [int(start)]
        for _ in range(20):
            step = model(**read, decoder_input_ids=torch.tensor([written])).logits[0, -1]
            step[model.config.pad_token_id] = -torch.inf
            written.append(int(step.argmax()))
            if written[-1] == 0:
                break
    logits[:, model.config.pad_token_id] = -torch.inf
    log_p = logits.log_softmax(-1).gather(1, given[0][:, None])[:, 0]
    return {
        "source": source,
        "target": target,
        "source_tokens": tokenizer.convert_ids_to_tokens(read["input_ids"][0]),
        "target_tokens": tokenizer.convert_ids_to_tokens(given[0]),
        "log_probabilities": [round(value, 6) for value in log_p.tolist()],
        "greedy": tokenizer.convert_ids_to_tokens(written[1:]),
    }


def main(folder: Path) -> None:
    """Write the model and expected.json."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = sentences(1, 400)
    model = make_model(folder, make_tokenizers(folder, pairs))
    tokenizer = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))
    rows = [expected(model, tokenizer, *pair) for pair in sentences(2, 50)]
    cut = {line: tokenizer.convert_ids_to_tokens(tokenizer([line])["input_ids"][0]) for line in STRANGE}
    text = json.dumps({"pairs": rows, "strange": cut}, ensure_ascii=False, indent=0)
    (folder / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
