"""Read the 50 Sock Shop incidents of RCD as `triage --metrics` does, and write who names the root:
`python scripts/sock_shop.py rcd`, with a checkout of github.com/azamikram/rcd.

Five minutes from before and five with a stressed processor or memory, in seconds; they come from
different days, and are put together. Samples are as long as the shortest case allows, medians stand
for means and 90th percentiles for 95th. Rules that start from alerts, calls or log lines find none
of these in a file of metrics.
"""

import tempfile
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from tables import ROOT

from logtriage.production.metrics_file import COLUMNS, rank_evidence, read_metrics
from logtriage.real.rules import RULES
from logtriage.world.call_graph import CallGraph, Service

RESULTS = ROOT / "results" / "production"
CALLS = {
    "front-end": ("catalogue", "carts", "user", "orders"),
    "orders": ("carts", "user", "payment", "shipping", "orders-db"),
    "carts": ("carts-db",),
    "catalogue": ("catalogue-db",),
    "user": ("user-db",),
    "shipping": ("rabbitmq",),
    "queue-master": ("rabbitmq",),
    **dict.fromkeys(
        ("payment", "carts-db", "catalogue-db", "user-db", "orders-db", "rabbitmq"), ()
    ),
}
GRAPH = CallGraph(tuple(Service(name, "unknown", calls) for name, calls in CALLS.items()))
METRICS = {
    "cpu": ("cpu", 1.0),
    "mem": ("memory", 1.0),
    "lod": ("requests", 1.0),
    "lat_50": ("latency", 1000.0),
    "lat_90": ("p95", 1000.0),
}
SAMPLE, START = 15, 1_000_000_000  # seconds; the first sample is taken to be of that time


def write_metrics(case: Path, path: Path) -> str:
    """A case as a file of metrics; returns when its fault began."""
    normal, faulty = (pd.read_csv(case / f"{part}.csv") for part in ("normal", "anomalous"))
    began = len(normal) // SAMPLE * SAMPLE
    both = pd.concat([normal.tail(began), faulty]).drop(columns="time")
    means = both.groupby(np.arange(len(both)) // SAMPLE).mean()
    rows = [
        (START + sample * SAMPLE, service, METRICS[metric][0], value * METRICS[metric][1])
        for column in means
        for service, _, metric in [column.partition("_")]
        if metric in METRICS
        for sample, value in means[column].items()
    ]
    pd.DataFrame(rows, columns=COLUMNS).to_csv(path, index=False)
    return str(START + began)


def main(checkout: Annotated[Path, typer.Argument(help="A checkout of azamikram/rcd.")]) -> None:
    """Count who names the root of how many cases."""
    cases = sorted(checkout.glob("sock-shop-data/*/*/"))
    if not cases:
        raise typer.BadParameter(f"{checkout} has no sock-shop-data; name a checkout of rcd")
    named = dict.fromkeys(["ranker", *RULES], 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.csv"
        for case in cases:
            root = case.parent.name.rpartition("-")[0]
            began = write_metrics(case, path)
            evidence, read = read_metrics(path, GRAPH, began)
            named["ranker"] += rank_evidence(evidence, read).root == root
            for name, rule in RULES.items():
                named[name] += rule(evidence)[:1] == [root]
    table = pd.DataFrame(named.items(), columns=["policy", "named"]).assign(cases=len(cases))
    table.to_csv(RESULTS / "sock-shop.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
