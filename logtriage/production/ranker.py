"""A network that ranks the services of an incident: it has learned from `production` alone.

Services are nodes; each reads its own numbers (`features`), and messages pass along calls in both
directions. It has no order and no names, so any cluster of any size will do. One more output says
that nothing is wrong, and each service's says which kind of fault it would be.
"""

from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from .failures import FAILURES
from .features import Arrays, features

WIDTH = 64  # numbers of a service within the network
FARTHEST = 8.0  # standard deviations at which a feature is cut
WEIGHTS = Path(__file__).parent / "ranker.npz"


class Round(nn.Module):
    """One exchange of messages: sums and means over callers and callees, and the whole cluster."""

    def __init__(self) -> None:
        super().__init__()
        self.message = nn.Linear(WIDTH, 4 * WIDTH)
        self.update = nn.Sequential(
            nn.LayerNorm(6 * WIDTH),
            nn.Linear(6 * WIDTH, 2 * WIDTH),
            nn.GELU(),
            nn.Linear(2 * WIDTH, WIDTH),
        )

    def forward(self, nodes: Tensor, calls: Tensor) -> Tensor:
        called = calls.transpose(1, 2)
        callers = called.sum(2, keepdim=True).clamp(min=1.0)
        callees = calls.sum(2, keepdim=True).clamp(min=1.0)
        first, second, third, fourth = torch.relu(self.message(nodes)).chunk(4, -1)
        whole = nodes.mean(1, keepdim=True).expand_as(nodes)
        seen = [
            nodes,
            called @ first / callers,
            calls @ second / callees,
            torch.log1p(called @ third),
            torch.log1p(calls @ fourth),
            whole,
        ]
        return nodes + self.update(torch.cat(seen, -1))


class Ranker(nn.Module):
    """Scores of services, [B, N + 1], the last of "nothing is wrong"; and of kinds, [B, N, kind].

    Args:
        mean, deviation: of each feature, in training.
        rounds: of messages; 0 reads each service beside the whole cluster, without the graph.
    """

    def __init__(self, mean: np.ndarray, deviation: np.ndarray, rounds: int = 3) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("deviation", torch.as_tensor(deviation))
        self.read = nn.Sequential(
            nn.Linear(len(mean), 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )
        self.rounds = nn.ModuleList(Round() for _ in range(rounds))
        self.score = _head(1)
        self.kind = _head(len(FAILURES))
        self.nothing = _head(1)

    def forward(self, numbers: Tensor, calls: Tensor) -> tuple[Tensor, Tensor]:
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
    """Reads a service beside the whole cluster."""
    return nn.Sequential(
        nn.LayerNorm(2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, outputs)
    )


def save_ranker(ranker: Ranker, path: Path) -> None:
    """Write its weights, in 16 bit."""
    weights = {name: tensor.half().numpy() for name, tensor in ranker.state_dict().items()}
    np.savez_compressed(path, **weights)


@cache
def load_ranker(path: Path = WEIGHTS) -> Ranker:
    """A saved ranker; without a path the one that ships."""
    with np.load(path) as file:
        weights = {name: torch.from_numpy(file[name]).float() for name in file.files}
    rounds = len({name.split(".")[1] for name in weights if name.startswith("rounds.")})
    ranker = Ranker(weights["mean"].numpy(), weights["deviation"].numpy(), rounds=rounds)
    ranker.load_state_dict(weights)
    return ranker.eval()


def chances(ranker: Ranker, seen: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Probability of each service, and last of no fault, [B, N + 1]; of each kind, [B, N, kind]."""
    with torch.inference_mode():
        scores, kinds = ranker(torch.from_numpy(features(seen)), torch.from_numpy(seen.calls))
    return scores.softmax(-1).numpy(), kinds.softmax(-1).numpy()
