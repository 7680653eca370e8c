"""What `triage` answers on RootCauseBench: 24 made-up incidents, made by others.

    git clone https://github.com/edgedelta/root-cause-bench
    python scripts/root_cause_bench.py root-cause-bench

Prints the table of docs/logs.md, and writes one row per incident to results/own-logs. `triage`
reads the log of an incident and nothing else. A root also counts as right without the number of its
replica. Nothing is fitted to these incidents.
"""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from logreader.answer import LIKELY, POSSIBLE, UNSURE, answer_of
from logreader.log import read_log
from logreader.names import REPLICA
from triagelab.bench.score_tables import markdown

RESULTS = Path(__file__).resolve().parents[1] / "results" / "own-logs" / "root-cause-bench.json"
TROUBLE = ("WARN", "ERROR", "FATAL")


def measure(folder: Path) -> dict[str, Any]:
    """The answer to one incident, beside the true root and what two naive rules blame."""
    data = folder / "environment" / "data"
    truth = json.loads((folder / "tests" / "ground_truth.json").read_text())
    label = truth["first_failing_service"]
    lines = [json.loads(line) for line in (data / "logs.ndjson").read_text().splitlines()]
    noisy = Counter(line["service"] for line in lines if line["severity_text"] in TROUBLE)
    answer = answer_of(read_log([data / "logs.ndjson"]))
    suspects = [one.service for one in answer.suspects]
    bare, root = [REPLICA.sub("", name) for name in suspects], REPLICA.sub("", label)
    return {
        "incident": folder.name,
        "root": label,
        "sure": answer.sure,
        "suspects": suspects,
        "confidence": answer.confidence,
        "found": bare.index(root) + 1 if root in bare else 0,
        "most_trouble": noisy.most_common(1)[0][0],
        "alert": json.loads((data / "alert.json").read_text())["service"],
    }


def summary(incidents: list[dict[str, Any]]) -> str:
    """How many roots were found, as a Markdown table."""
    frame = pd.DataFrame(incidents)
    found = frame["found"] == 1
    rows = {f"`{sure}`": found[frame["sure"] == sure] for sure in (LIKELY, POSSIBLE, UNSURE)}
    rows["all"] = found
    rows["all, letter for letter"] = frame["suspects"].str[0] == frame["root"]
    rows["all, one of three suspects"] = frame["found"] > 0
    rows["rule: most warnings and errors"] = frame["most_trouble"] == frame["root"]
    rows["rule: the service of the alert"] = frame["alert"] == frame["root"]
    return markdown(
        [
            {"first suspect": name, "right": str(right.sum()), "wrong": str((~right).sum())}
            for name, right in rows.items()
        ]
    )


def main(checkout: Path) -> None:
    """Measure every incident of a checkout, write the results and print the table."""
    folders = sorted((checkout / "datasets" / "rootcausebench").glob("*/"))
    incidents = [measure(folder) for folder in folders]
    head = ["git", "-C", checkout, "rev-parse", "HEAD"]
    commit = subprocess.check_output(head, text=True).strip()
    RESULTS.write_text(json.dumps({"commit": commit, "incidents": incidents}, indent=1) + "\n")
    print(summary(incidents))


if __name__ == "__main__":
    typer.run(main)
