"""A network that ranks the services of an incident. It has learned only from `production`'s split
`train`.

    train_ranker(seed=0, steps=1000)

Services are nodes. Each reads its own numbers (`features`), and messages pass along calls in both
directions. The network knows no order and no names, so any cluster of any size will do. One more
output says that nothing is wrong, and outputs of each service say which kind of fault it would be.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from .features import features
from .generator import Arrays, Block
from .mesh import BLOCK
from .randomisation import FAILURES

WIDTH = 64  # numbers per service inside the network
FARTHEST = 8.0  # standard deviations at which a feature is cut
ROUNDS = 3  # of messages
WEIGHTS = Path(__file__).parent / "ranker.npz"

BLOCKS = 6  # blocks in a training step, each with clusters of its own size
RATE = 2e-3
KIND_WEIGHT = 0.2  # weight of the loss of the kind of fault
SEEDS_APART = 1_000_000  # blocks between seeds, so that no two see the same


class Round(nn.Module):
    """One exchange of messages: sums and means over callers and callees, and the whole cluster."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(WIDTH, 4 * WIDTH)
        wide = nn.Linear(6 * WIDTH, 2 * WIDTH)
        self.update = nn.Sequential(
            nn.LayerNorm(6 * WIDTH), wide, nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, nodes: Tensor, calls: Tensor) -> Tensor:
        """Services [B, N, WIDTH] that have heard from callers and callees (calls [B, N, N])."""
        called = calls.transpose(1, 2)
        callers = called.sum(2, keepdim=True).clamp(min=1.0)
        callees = calls.sum(2, keepdim=True).clamp(min=1.0)
        first, second, third, fourth = torch.relu(self.message(nodes)).chunk(4, -1)
        whole = nodes.mean(1, keepdim=True).expand_as(nodes)
        means = [called @ first / callers, calls @ second / callees]
        sums = [torch.log1p(called @ third), torch.log1p(calls @ fourth)]
        return nodes + self.update(torch.cat([nodes, *means, *sums, whole], -1))


class Ranker(nn.Module):
    """Scores services, [B, N + 1], the last for "nothing is wrong", and kinds, [B, N, kind].

    Args:
        mean, deviation: those of each feature in training.
    """

    def __init__(self, mean: np.ndarray, deviation: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("deviation", torch.as_tensor(deviation))
        self.read = nn.Sequential(
            nn.Linear(len(mean), 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.rounds = nn.ModuleList(Round() for _ in range(ROUNDS))
        self.score = _head(1)
        self.kind = _head(len(FAILURES))
        self.nothing = _head(1)

    def forward(self, numbers: Tensor, calls: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and kinds from numbers [B, N, features] and calls [B, N, N]."""
        scaled = ((numbers - self.mean) / self.deviation).clamp(-FARTHEST, FARTHEST)
        nodes = self.read(scaled)
        for exchange in self.rounds:
            nodes = exchange(nodes, calls)
        whole = nodes.mean(1, keepdim=True)
        beside = torch.cat([nodes, whole.expand_as(nodes)], -1)
        nothing = self.nothing(torch.cat([whole[:, 0], nodes.amax(1)], -1))
        scores = torch.cat([self.score(beside)[..., 0], nothing], 1)
        return scores, self.kind(beside)


def _head(outputs: int) -> nn.Module:
    """Return a network that reads a service together with the whole cluster."""
    return nn.Sequential(
        nn.LayerNorm(2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, outputs)
    )


def save_ranker(ranker: Ranker, path: Path) -> None:
    """Save the weights of a ranker, in 16 bit."""
    weights = {name: tensor.half().numpy() for name, tensor in ranker.state_dict().items()}
    np.savez_compressed(path, **weights)


@cache
def load_ranker(path: Path = WEIGHTS) -> Ranker:
    """Load a saved ranker; without a path, the one that ships."""
    with np.load(path) as file:
        weights = {name: torch.from_numpy(file[name]).float() for name in file.files}
    ranker = Ranker(weights["mean"].numpy(), weights["deviation"].numpy())
    ranker.load_state_dict(weights)
    return ranker.eval()


def chances(ranker: Ranker, seen: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return chances of services and, last, no fault, [B, N + 1], and of kinds, [B, N, kind]."""
    with torch.inference_mode():
        scores, kinds = ranker(torch.from_numpy(features(seen)), torch.from_numpy(seen.calls))
    return scores.softmax(-1).numpy(), kinds.softmax(-1).numpy()


def train_ranker(seed: int, steps: int, log: Callable[[int, float], None] | None = None) -> Ranker:
    """Train a ranker on `steps` x `BLOCKS` x `BLOCK` incidents, each seen once.

    Its weights are rounded to 16 bit, as they are saved.

    Args:
        seed: decides its first weights, and which incidents of `train` it sees.
        log: called with each step and its loss.
    """
    torch.manual_seed(seed)
    first = seed * SEEDS_APART
    read = [_tensors(Block("train", first + at)) for at in range(20)]
    known = torch.cat([numbers.flatten(0, 1) for numbers, *_ in read])
    ranker = Ranker(known.mean(0).numpy(), known.std(0).numpy() + 0.05)
    optimiser = torch.optim.AdamW(ranker.parameters(), RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, RATE, total_steps=steps, pct_start=0.05
    )
    for step in range(steps):
        total = 0.0
        for at in range(BLOCKS):
            block = Block("train", first + step * BLOCKS + at)
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


def _tensors(block: Block) -> tuple[Tensor, ...]:
    """Return features, calls, root (the number of services if there is none) and kind."""
    calls = block.seen.calls
    root = np.where(block.root < 0, calls.shape[1], block.root).astype(np.int64)
    arrays = (features(block.seen), calls, root, block.kind.astype(np.int64))
    return tuple(map(torch.from_numpy, arrays))


def _loss(ranker: Ranker, numbers: Tensor, calls: Tensor, root: Tensor, kind: Tensor) -> Tensor:
    scores, kinds = ranker(numbers, calls)
    some = root < numbers.shape[1]
    of_roots = kinds[torch.arange(BLOCK)[some], root[some]]
    return cross_entropy(scores, root) + KIND_WEIGHT * cross_entropy(of_roots, kind[some])
