"""Hugging Face Transformers: MarianMTModel, the library's encoder-decoder for translation, with T3's sizes.

`python -m benchmarks.peers.hf train|decode|start T3 FOLDER`. The library's Trainer has no part in it: the loop below
is as plain as can be, with batches of like length. It normalises after each block and ties all three embeddings.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.peers import measure
from benchmarks.peers.workloads import FEEDFORWARD, HEADS, LAYERS, LONGEST, SPECIALS, Job, read_lines, run

if TYPE_CHECKING:
    import torch

PAD, BEGIN, END = (SPECIALS.index(name) for name in ("<pad>", "<s>", "</s>"))
MIXED = 100  # batches whose sentences are sorted by length together


def train(job: Job) -> None:
    """Train, with the clock told after each update."""
    row = measure.describe(job, "train", "HF Marian", "transformers")
    import torch

    torch.manual_seed(1)
    network, clock = (
        build(job).to(job.options.device),
        measure.Clock(job, row | {"note": "own loop, tied embeddings, post-norm"}),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for words, wanted in batches(job):
        source, target = words.to(job.options.device), wanted.to(job.options.device)
        before = torch.cat([target.new_full((len(target), 1), BEGIN), target[:, :-1]], dim=1)
        out = network(input_ids=source, attention_mask=mask(source), decoder_input_ids=before, use_cache=False)
        loss = torch.nn.functional.cross_entropy(out.logits.flatten(0, 1), target.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        clock.tick(int((wanted != PAD).sum()), wanted.numel())
    network.save_pretrained(job.folder / "models" / "hf-T3")


def build(job: Job) -> Any:
    """A model with random weights."""
    from transformers import MarianConfig, MarianMTModel

    workload, layers, heads, wide = job.workload, LAYERS, HEADS, FEEDFORWARD
    config = MarianConfig(
        vocab_size=len(vocabulary(job)),
        d_model=workload.hidden,
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=wide,
        decoder_ffn_dim=wide,
        dropout=workload.dropout,
        max_position_embeddings=256,
        pad_token_id=PAD,
        bos_token_id=BEGIN,
        eos_token_id=END,
        decoder_start_token_id=BEGIN,
        forced_eos_token_id=None,
        scale_embedding=True,
    )
    return MarianMTModel(config)


def batches(job: Job) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """As many batches as there are updates, in random order, each of sentences of like length."""
    numbers, files = vocabulary(job), job.files
    sides = [[encode(line, numbers) for line in read_lines(path)] for path in (files.train_source, files.train_target)]
    pairs, size, left = list(zip(*sides, strict=True)), job.workload.batch, job.updates
    while left > 0:
        random.shuffle(pairs)
        pools = [sorted(pairs[i : i + size * MIXED], key=lengths) for i in range(0, len(pairs), size * MIXED)]
        made = [pool[i : i + size] for pool in pools for i in range(0, len(pool), size)]
        random.shuffle(made)
        for batch in made[:left]:
            yield pad([source for source, _ in batch]), pad([target for _, target in batch])
        left -= len(made)


def lengths(pair: tuple[list[int], list[int]]) -> tuple[int, int]:
    """What pairs are sorted by."""
    return len(pair[1]), len(pair[0])


def vocabulary(job: Job) -> dict[str, int]:
    """Numbers of the pieces."""
    return {piece: i for i, piece in enumerate([*SPECIALS, *read_lines(job.files.source_vocabulary)])}


def encode(line: str, numbers: dict[str, int]) -> list[int]:
    """Numbers of a line, the end included."""
    return [numbers.get(piece, 0) for piece in line.split()] + [END]


def pad(lines: Sequence[list[int]]) -> torch.Tensor:
    """Lines as one tensor."""
    import torch

    width = max(map(len, lines))
    return torch.tensor([line + [PAD] * (width - len(line)) for line in lines])


def mask(source: torch.Tensor) -> torch.Tensor:
    """1 where a piece is."""
    return (source != PAD).long()


def decode(job: Job) -> None:
    """Decode the test lines with `generate`."""
    row = measure.describe(job, "decode", "HF Marian", "transformers")
    measure.decode(job, row, translator(job))


def translator(job: Job) -> measure.Translate:
    """The kept model, longest sentences first."""
    import torch
    from transformers import MarianMTModel

    network, numbers = MarianMTModel.from_pretrained(job.model("hf-T3")).eval().to(job.options.device), vocabulary(job)
    pieces, beam, size = list(numbers), job.options.beam, job.options.batch

    def translate(lines: list[str]) -> list[list[str]]:
        encoded = [encode(line, numbers) for line in lines]
        order = sorted(range(len(lines)), key=lambda i: -len(encoded[i]))
        output: list[list[str]] = [[] for _ in lines]
        for chunk in (order[i : i + size] for i in range(0, len(order), size)):
            source = pad([encoded[i] for i in chunk]).to(job.options.device)
            with torch.inference_mode():
                found = network.generate(
                    input_ids=source,
                    attention_mask=mask(source),
                    num_beams=beam,
                    max_length=LONGEST + 1,
                    do_sample=False,
                )
            for i, best in zip(chunk, found.tolist(), strict=True):
                output[i] = [pieces[number] for number in best if number >= len(SPECIALS)]
        return output

    return translate


def start(job: Job) -> None:
    """Time a process that loads the model and translates one sentence: it has no command for that."""
    row = measure.describe(job, "startup", "HF Marian", "transformers")
    measure.start(job, row, [sys.executable, "-m", __spec__.name, "once", *sys.argv[2:]])


def once(job: Job) -> None:
    """What `start` times."""
    print(*translator(job)(job.lines()[:1])[0])


if __name__ == "__main__":
    run("HF Marian", {"train": train, "decode": decode, "start": start, "once": once})
