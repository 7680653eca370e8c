"""Does the root of a real incident show in what the ranker reads?

    python study/marks.py OTHER     # results/production/marks.csv

Of each of the 117 numbers, the service that is farthest from the cluster's median is the one that
stands out. In how many numbers is that the root, and in how many an innocent service, on average?
OTHER is a folder with the other half of the public cases, as `study/other_half.py` of commit
`7b5faa1` converts them; both halves are counted together.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from logtriage.bench.recorded_results import play_cases
from logtriage.play.episode import VisibleIncident
from logtriage.production.features import arrays_of_evidence, features
from logtriage.production.production_policies import ChancePolicy
from logtriage.real import cases
from logtriage.real.observed import Evidence

RESULTS = Path(__file__).resolve().parents[1] / "results" / "production"


def stands_out(numbers: np.ndarray) -> np.ndarray:
    """In how many numbers each service stands out alone, for [service, number]."""
    distance = np.abs(numbers - np.median(numbers, 0))
    farthest = distance == distance.max(0)
    return (farthest & (farthest.sum(0) == 1)).sum(1)


def of_source(source: str) -> list[dict[str, object]]:
    """A row for each case of a source."""
    gathered: list[Evidence] = []

    def keep(incident: VisibleIncident, evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
        gathered.append(evidence)
        size = len(evidence.graph.names)
        return np.full(size + 1, 1.0 / (size + 1)), np.ones((size, 13))

    play_cases(ChancePolicy("keep", keep), source)
    rows = []
    for evidence, case in zip(gathered, cases.load_source(source).cases, strict=True):
        counts = stands_out(features(arrays_of_evidence(evidence))[0])
        root = evidence.graph.position[case.truth.root]
        rows.append(
            {
                "source": source,
                "fault": case.truth.fault,
                "root": counts[root],
                "innocent": np.delete(counts, root).mean(),
            }
        )
    return rows


def main(other: Path) -> None:
    rows = []
    for folder in (cases.FOLDER, other):
        cases.FOLDER = folder
        cases._read.cache_clear()
        for source in cases.SOURCES:
            rows += of_source(source)
    frame = pd.DataFrame(rows)
    # The other half of PetShop does not say which fault it was.
    frame.loc[frame["source"] == "petshop", "fault"] = "all"
    by_fault = frame.groupby(["source", "fault"])
    table = by_fault[["root", "innocent"]].mean().round(1)
    table.insert(0, "cases", by_fault.size())
    table.reset_index().to_csv(RESULTS / "marks.csv", index=False)
    print(table.to_string())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
