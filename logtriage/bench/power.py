"""How many episodes show a gain: the power of comparing two averages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import norm

from .intervals import LEVEL


def _check_deviation(deviation: float) -> None:
    if not deviation > 0.0:
        raise ValueError(
            f"deviation must be above 0, got {deviation}; scores that never differ need no test"
        )


def episodes_needed(deviation: float, gain: float, power: float = 0.8, paired: bool = False) -> int:
    """Episodes in *each* of two averages (or pairs) for a two-sided z-test at 5 % to see `gain`
    with that power.

    Args:
        deviation: standard deviation of the scores, or, when `paired`, of the differences.
        gain: true difference of the means, above 0.
        power: chance to see it.
        paired: whether both averages are over the same incidents.

    Raises:
        ValueError: unless deviation and gain are above 0, and power in [0.5, 1).
    """
    _check_deviation(deviation)
    if not gain > 0.0:
        raise ValueError(f"gain must be above 0, got {gain}")
    if not 0.5 <= power < 1.0:
        raise ValueError(f"power must lie in [0.5, 1), got {power}")
    quantiles = norm.ppf(0.5 + LEVEL / 2.0) + norm.ppf(power)
    return max(2, int(np.ceil((1 if paired else 2) * (deviation * quantiles / gain) ** 2)))


def power_of(deviation: float, gain: float, episodes: int) -> float:
    """Chance that a two-sided z-test at 5 % on two averages of `episodes` sees `gain`; at gain 0,
    that it cries wolf.
    """
    _check_deviation(deviation)
    shift, limit = gain / (deviation * np.sqrt(2.0 / episodes)), norm.ppf(0.5 + LEVEL / 2.0)
    return float(norm.sf(limit - shift) + norm.cdf(-limit - shift))


def power_table(
    scores: np.ndarray, differences: np.ndarray, gains: Sequence[float] = (0.015, 0.05, 0.1, 0.3)
) -> pd.DataFrame:
    """How many episodes show a gain, from measured scores (n,) and paired differences (m,).

    Returns:
        A row a gain: episodes in each average (`unpaired`), pairs on the same incidents (`paired`),
        both for a power of 0.8 in a two-sided test at 5 %, and the power of comparing two averages
        of ten (`power_of_ten`).
    """
    deviation, of_differences = float(np.std(scores, ddof=1)), float(np.std(differences, ddof=1))
    return pd.DataFrame(
        {
            "gain": gain,
            "unpaired": episodes_needed(deviation, gain),
            "paired": episodes_needed(of_differences, gain, paired=True),
            "power_of_ten": power_of(deviation, gain, 10),
        }
        for gain in gains
    )
