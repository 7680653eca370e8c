"""Can a classifier tell the services of a real cluster from simulated ones?

It learns from two of the real sources and from simulated incidents, by the numbers that the ranker
reads, and is asked about the third source and about other simulated incidents: clusters are few,
and one that was seen is known by its constants.
"""

import numpy as np
import pandas as pd
import torch
from torch import nn

from logtriage.play.actions import ALL_SERVICES, Action
from logtriage.production.features import arrays_of_block, arrays_of_evidence, features
from logtriage.production.generator import draw_block
from logtriage.real.cases import SOURCES, load_source
from logtriage.real.observed import gather
from logtriage.real.real_episode import RealEpisode

BLOCKS = 40  # half to learn from
ROWS = 8000
STEPS, BATCH = 300, 512


def told_apart(seeds: int = 5) -> pd.DataFrame:
    """One row per (source held out, seed): the area under its curve."""
    real = {source: _rows(source) for source in SOURCES}
    simulated = [features(arrays_of_block(draw_block("test", at))) for at in range(BLOCKS)]
    flat = [one.reshape(-1, one.shape[-1]) for one in simulated]
    known, other = np.concatenate(flat[: BLOCKS // 2]), np.concatenate(flat[BLOCKS // 2 :])
    rows = []
    for seed in range(seeds):
        some = known[np.random.default_rng(seed).permutation(len(known))[:ROWS]]
        for held_out in SOURCES:
            others = np.concatenate([real[one] for one in SOURCES if one != held_out])
            says = _classifier(others, some, seed)
            auc = _area(says(real[held_out]), says(other))
            seen = _area(says(others), says(other))
            rows.append({"held_out": held_out, "seed": seed, "auc": auc, "auc_of_seen": seen})
    return pd.DataFrame(rows)


def _rows(source: str) -> np.ndarray:
    found = []
    for index in range(len(load_source(source).cases)):
        episode = RealEpisode.open(source, index)
        shown = episode.act(Action("request_more_logs", (ALL_SERVICES,)))
        seen = gather(episode.incident.topology, [episode.opening, shown])
        found.append(features(arrays_of_evidence(seen))[0])
    return np.concatenate(found)


def _classifier(real: np.ndarray, simulated: np.ndarray, seed: int):
    torch.manual_seed(seed)
    rows = np.concatenate([real, simulated])
    mean, deviation = rows.mean(0), rows.std(0) + 0.05

    def scaled(some: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(((some - mean) / deviation).clip(-8.0, 8.0))

    is_real = torch.cat([torch.ones(len(real)), torch.zeros(len(simulated))])
    weight = torch.where(is_real > 0.0, len(rows) / len(real) / 2, len(rows) / len(simulated) / 2)
    numbers = scaled(rows)
    network = nn.Sequential(nn.Linear(numbers.shape[1], 32), nn.GELU(), nn.Linear(32, 1))
    optimiser = torch.optim.AdamW(network.parameters(), 3e-3, weight_decay=0.05)
    for _ in range(STEPS):
        at = torch.randint(len(numbers), (BATCH,))
        told = network(numbers[at])[:, 0]
        loss = nn.functional.binary_cross_entropy_with_logits(told, is_real[at], weight[at])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return lambda some: network(scaled(some))[:, 0].detach().numpy()


def _area(above: np.ndarray, below: np.ndarray) -> float:
    rank = np.concatenate([above, below]).argsort().argsort() + 1
    pairs = len(above) * len(below)
    return float((rank[: len(above)].sum() - len(above) * (len(above) + 1) / 2) / pairs)
