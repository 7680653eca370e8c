"""The noise of one metric over the samples of a window: how it is drawn, and how likely it is.

The logarithm of value over usual is what a fault does, plus noise: samples that follow one another,
counts of few requests, a day unlike the usual, and, now and then, another level (before the window
or from some sample on) or a single sample far off. Given which of these `PATTERNS` it is, the noise
is normal, so its likelihood is a sum of a few normal densities.
"""

from dataclasses import dataclass

import numpy as np

from .mesh import Draw

SAMPLES = 6
# How far a metric is off, by sample: nowhere; everywhere, or from sample 1 .. 5 on; in one sample.
PATTERNS = np.concatenate(
    [np.zeros((1, SAMPLES)), np.triu(np.ones((SAMPLES, SAMPLES))), np.eye(SAMPLES)]
).astype(np.float32)
BEFORE = 0.75  # of the metrics at another level: since before the window


def pattern_chances(shift: np.ndarray, spike: np.ndarray) -> np.ndarray:
    """[B, pattern], from the chances of another level and of a spike in each cluster, [B, 1]."""
    later = np.full(SAMPLES, (1.0 - BEFORE) / (SAMPLES - 1))
    later[0] = BEFORE
    each = np.full(SAMPLES, 1.0 / SAMPLES)
    return np.concatenate([1.0 - shift - spike, shift * later, spike * each], axis=1)


Sigma = np.ndarray | float


@dataclass(frozen=True)
class Noise:
    """Of one metric: sigmas of logarithms, [B, N] or what broadcasts to it; `follows` is [B, 1]."""

    wander: Sigma  # of samples that follow one another
    counted: Sigma  # of each sample alone
    day: Sigma  # of all samples together
    level: float  # of another level, and of a spike
    follows: np.ndarray  # correlation of a sample with the one before

    def draw(self, draw: Draw, chances: np.ndarray, count: int, size: int) -> np.ndarray:
        """[B, N, sample]."""
        shape = (count, size, SAMPLES)
        steps = draw.normal(*shape)
        new = np.sqrt(1.0 - self.follows**2)
        for at in range(1, SAMPLES):
            steps[..., at] = self.follows * steps[..., at - 1] + new * steps[..., at]
        pattern = (draw.uniform((0.0, 1.0), count, size, 1) > np.cumsum(chances, 1)[:, None]).sum(2)
        far = PATTERNS[np.minimum(pattern, len(PATTERNS) - 1)] * draw.normal(count, size, 1)
        return (
            _column(self.wander) * steps
            + _column(self.counted) * draw.normal(*shape)
            + _column(self.day) * draw.normal(count, size, 1)
            + np.float32(self.level) * far
        )

    def covariance(self, cluster: int, size: int) -> np.ndarray:
        """[N, pattern, sample, sample] of one cluster of the block."""
        wander, counted, day = (
            np.broadcast_to(one, (len(self.follows), size))[cluster][:, None, None, None]
            for one in (self.wander, self.counted, self.day)
        )
        steps = np.arange(SAMPLES)
        together = self.follows[cluster] ** np.abs(steps[:, None] - steps)
        far = self.level**2 * PATTERNS[:, :, None] * PATTERNS[:, None, :]
        return wander**2 * together + counted**2 * np.eye(SAMPLES) + day**2 + far


def _column(sigma: Sigma) -> np.ndarray:
    return np.asarray(sigma, np.float32)[..., None]
