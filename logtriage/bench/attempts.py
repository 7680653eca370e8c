"""Several attempts at each incident: how often one of `k` solves it, and how often all of them do.

pass@k, the chance that at least one of k attempts solves an incident, is the estimator of Chen et
al. 2021, "Evaluating large language models trained on code", section 2.1; pass^k, the chance that
all k do, that of Yao et al. 2024, "tau-bench", section 3. Both are unbiased for any number of
attempts from k on. What is solved, `rollouts.solved` says.
"""

from __future__ import annotations

from math import comb

import pandas as pd

from .intervals import KEYS, mean_interval


def pass_at(k: int, attempts: int, successes: int) -> float:
    """pass@k of one incident, from `successes` of `attempts`, of which there are at least `k`."""
    return 1.0 - comb(attempts - successes, k) / comb(attempts, k)


def pass_all(k: int, attempts: int, successes: int) -> float:
    """pass^k of one incident, from `successes` of `attempts`, of which there are at least `k`."""
    return comb(successes, k) / comb(attempts, k)


def attempts_table(frame: pd.DataFrame, attempts: int) -> pd.DataFrame:
    """A row a policy, task and k: pass@k and pass^k as text, each the mean over incidents with its
    95 % interval.

    Args:
        frame: rows with the columns of `rollouts.EXTRAS`. Attempts that ended in an error are none;
            an incident with fewer than k others is left out, and `incidents` counts the rest.
        attempts: that were made at each incident; k is 1, 2, 4 and so on, and this number.
    """
    rows = []
    ks = sorted({*(2**n for n in range(attempts.bit_length()) if 2**n <= attempts), attempts})
    for (policy, task), group in frame.groupby(["policy", "task"], sort=False):
        scored = group[group["solved"].notna()]
        counts = scored.assign(solved=scored["solved"].astype(bool)).groupby(KEYS, sort=False)
        counted = counts["solved"].agg(["size", "sum"])
        for k in ks:
            enough = [(int(n), int(c)) for n, c in counted.to_numpy() if n >= k]
            row: dict[str, object] = {
                "policy": policy,
                "task": task,
                "k": k,
                "incidents": len(enough),
            }
            for name, estimate in (("pass@k", pass_at), ("pass^k", pass_all)):
                values = pd.Series([estimate(k, n, c) for n, c in enough], dtype=float)
                row[name] = str(mean_interval(values)) if len(values) > 1 else "-"
            rows.append(row)
    return pd.DataFrame(rows)
