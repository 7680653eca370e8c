"""Train the ranker on `production`'s split `train`, and nothing else.

train_ranker(seed=0, steps=1000)
"""

from collections.abc import Callable

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from .dials import USUAL, Dials
from .features import arrays_of_block, features
from .generator import Block, draw_block
from .mesh import BLOCK
from .ranker import Ranker

BLOCKS = 6  # in a step: as many sizes of clusters
RATE = 2e-3
KIND_WEIGHT = 0.2  # of the loss of the kind of fault
SEEDS_APART = 1_000_000  # blocks; no two seeds see the same

Log = Callable[[int, float], None]


def train_ranker(
    seed: int, steps: int, dials: Dials = USUAL, rounds: int = 3, log: Log | None = None
) -> Ranker:
    """A ranker that has seen `steps` x `BLOCKS` x `BLOCK` incidents, each once.

    Its weights are rounded to the 16 bit in which they are saved.

    Args:
        seed: decides the weights it begins with, and which incidents of `train` it sees.
        rounds: of messages along calls; 0 for a network without the graph.
        log: called with each step and its loss.
    """
    torch.manual_seed(seed)
    first = seed * SEEDS_APART
    read = [_tensors(draw_block("train", first + at, dials)) for at in range(20)]
    known = torch.cat([numbers.flatten(0, 1) for numbers, *_ in read])
    ranker = Ranker(known.mean(0).numpy(), known.std(0).numpy() + 0.05, rounds=rounds)
    optimiser = torch.optim.AdamW(ranker.parameters(), RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, RATE, total_steps=steps, pct_start=0.05
    )
    for step in range(steps):
        total = 0.0
        for at in range(BLOCKS):
            block = draw_block("train", first + step * BLOCKS + at, dials)
            loss = _loss(ranker, *_tensors(block)) / BLOCKS
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(ranker.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        schedule.step()
        if log is not None:
            log(step, total)
    return ranker.half().float().eval()  # as it is saved


def _tensors(block: Block) -> tuple[torch.Tensor, ...]:
    """Numbers, calls, root (after the last service: none), kind."""
    seen = arrays_of_block(block)
    size = block.mesh.own.shape[1]
    root = np.where(block.root < 0, size, block.root)
    arrays = (features(seen), seen.calls, root.astype(np.int64), block.kind.astype(np.int64))
    return tuple(map(torch.from_numpy, arrays))


def _loss(
    ranker: Ranker,
    numbers: torch.Tensor,
    calls: torch.Tensor,
    root: torch.Tensor,
    kind: torch.Tensor,
) -> torch.Tensor:
    scores, kinds = ranker(numbers, calls)
    some = root < numbers.shape[1]
    told = kinds[torch.arange(BLOCK)[some], root[some]]
    return cross_entropy(scores, root) + KIND_WEIGHT * cross_entropy(told, kind[some])
