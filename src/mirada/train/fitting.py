"""How large a batch is where `batch_size auto` leaves it to mirada: as many tokens as suit the pairs and the memory.

An epoch keeps 100 updates, on a CPU a batch has 4,096 padded tokens at most, on a GPU 32,768, for larger batches learn
less from a token. How much memory a token takes there is measured: two batches of the longest pairs, forward and
backward, tell what a batch needs and what each further token adds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mirada.config.configfile import changed
from mirada.config.options import Config
from mirada.data.batches import BatchSize, Encoded, collate, cut, pair_lengths
from mirada.devices import out_of_memory
from mirada.models import AnyModel
from mirada.store import checkpoint
from mirada.train.batch_loss import gradients
from mirada.train.precision import products

LEAST, ON_CPU, ON_GPU = 512, 4096, 32_768  # padded tokens of a batch
UPDATES = 100  # of an epoch, at least
SHARE = 0.4  # of the free memory: a graph of kernels has memory of its own, beside that of the first, plain update
TRIED = (1024, 2048)  # padded tokens whose memory is measured

Measure = Callable[[int], int]  # bytes that a batch of so many padded tokens takes beyond what is held already


def kept(config: Config, folder: Path) -> Config:
    """`auto` counts tokens; a training that goes on has the size that it had."""
    if config.training.batch_size is not None:
        return config
    values: dict[str, Any] = {"batch_type": "token"}
    if (folder / checkpoint.CONFIG).exists():
        before = checkpoint.read_config(folder).training
        values = {"batch_type": before.batch_type, "batch_size": before.batch_size}
    return config.model_copy(update={"training": config.training.model_copy(update=values)})


def fitted(config: Config, model: AnyModel, train: Encoded) -> tuple[Config, list[str]]:
    """The options with the size that suits these pairs and this device; and why, in words."""
    if config.training.batch_size is not None:
        return config, []
    device, lengths = model.output.weight.device, pair_lengths(train)
    if device.type == "cuda":
        size, why = most_tokens(lengths, ON_GPU, lambda tokens: _bytes(config, model, train, tokens), _free(model))
    else:
        size, why = most_tokens(lengths, ON_CPU)
    training = changed(config.training, {"batch_size": size})
    return config.model_copy(update={"training": training}), [f"batch_size {size:,} tokens: {why} (--batch-size)"]


def most_tokens(lengths: np.ndarray, most: int, measure: Measure | None = None, free: int = 0) -> tuple[int, str]:
    """How many padded tokens a batch has, given the lengths `[N, 2]` of the pairs; and why no more."""
    size, why = most, "the most that is chosen unasked"
    if (epoch := int(lengths.max(1).sum()) // UPDATES) < size:
        size, why = epoch, f"an epoch of {UPDATES} updates"
    if measure is not None and (room := _room(measure, SHARE * free)) < size:
        size, why = room, f"what {SHARE:.0%} of the free memory ({free / 2**30:.1f} GiB) holds of the longest pairs"
    return (size, why) if size > LEAST else (LEAST, "the least that is chosen unasked")


def _room(measure: Measure, free: float) -> int:
    """How many tokens fit, by what two sizes take: memory grows by the same for each token."""
    try:
        first, second = map(measure, TRIED)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        return 0
    each = max(1, second - first) / (TRIED[1] - TRIED[0])
    return int(TRIED[0] + (free - first) / each)


def _free(model: AnyModel) -> int:
    """Bytes that are free on a GPU, without those of the gradients and Adam's two moments, which are still to come."""
    free, _ = torch.cuda.mem_get_info(model.output.weight.device)
    return free - 3 * sum(part.numel() * part.element_size() for part in model.parameters())


def _bytes(config: Config, model: AnyModel, train: Encoded, tokens: int) -> int:
    """What a batch of the longest pairs takes on a GPU, forward and backward; nothing of it stays."""
    device, lengths = model.output.weight.device, pair_lengths(train)
    order = np.argsort(-lengths.max(1), kind="stable")
    batch = collate(train, cut(lengths[order], order, BatchSize(tokens, by_tokens=True))[0], device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    with torch.random.fork_rng([device]), products(config.training.precision, device):
        gradients(model.train(), config, batch, batch.tokens)
    model.zero_grad(set_to_none=True)
    return torch.cuda.max_memory_allocated(device) - before
