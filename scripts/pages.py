"""Write the tables and numbers of all pages from results/: `python scripts/pages.py`. Tests check
that they are up to date, and that no score stands in a sentence without one of these markers.

A table is written between `<!-- name -->` and `<!-- /name -->` (`TABLES`), a number in a sentence
between `<!-- =name -->` and `<!-- / -->` (`facts`), in pages and in the text of notebooks.
"""

import re
from functools import cache, partial

import pandas as pd
from production_tables import (
    conformal_table,
    metrics_alone_table,
    production_facts,
    production_policies_table,
    seeds_table,
    transfer_table,
)
from tables import (
    NEW,
    ROOT,
    TRACKS,
    benchmark_table,
    confidence_table,
    cost_table,
    front_table,
    own_logs,
    own_logs_table,
    played_in,
    played_on_test,
    real_incidents_table,
    recipe_table,
    seeds_of,
    split_shares,
    splits_table,
    topology_table,
    track_table,
)

from logtriage.bench.real_results import OURS
from logtriage.bench.score_tables import summarise
from logtriage.real.cases import SOURCES

# File to the tables it holds, each between `<!-- name -->` and `<!-- /name -->`.
TABLES = {
    "README.md": {"front": front_table},
    "results/README.md": {"novice": partial(track_table, "novice"), "splits": splits_table},
    "docs/benchmark.md": {"benchmark": benchmark_table},
    "docs/training.md": {
        "recipe": recipe_table,
        "expert": partial(track_table, "expert"),
        "topology": topology_table,
    },
    "docs/real.md": {"real": real_incidents_table},
    "docs/production.md": {
        "policies": production_policies_table,
        "transfer": transfer_table,
        "seeds": seeds_table,
        "sets": conformal_table,
        "metrics_alone": metrics_alone_table,
    },
    "docs/t4.md": {"cost": cost_table},
    "docs/logs.md": {"own_logs": own_logs_table, "confidence": confidence_table},
}
# Tables of finished studies, whose code has left the tree: they stay as they were written.
FINISHED = ("beside", "dials", "estimators", "realism", "sock_shop", "words")
# History, which stays as it was written, and what other scripts write whole.
NO_PAGES = ("LOG.md", "CHANGELOG.md", "GALLERY.md", "LEADERBOARD.md")
# Every other file whose sentences may hold facts.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "*/README.md", "logtriage/agent/README.md", "docs/*.md", "*/*.ipynb")
    for path in ROOT.glob(pattern)
    if path.name not in NO_PAGES
)
FACT = re.compile(r"<!-- =(\S+) -->(.*?)<!-- / -->", re.DOTALL)


# -- facts: the numbers of sentences --------------------------------------------------------------


@cache
def facts() -> dict[str, str]:
    """Every number that a sentence may hold, by its name, as it is written."""
    found = track_facts() | dismissal_facts() | gate_facts() | real_facts() | own_logs_facts()
    return found | production_facts()


def track_facts() -> dict[str, str]:
    """`novice.test`: the share of `belief`'s score of a track, of the `base`, or of a script."""
    return {
        f"{name}.{split}": f"{share[split]:.2f}"
        for name, share in split_shares().items()
        for split in NEW
    }


def dismissal_facts() -> dict[str, str]:
    """`base.dismissed`, `trained.dismissed`: the share of real faults that the novice's track
    dismisses on silent degradation, before and after GRPO.
    """
    rows = {row["task"]: row for row in summarise(played_on_test(seeds_of("novice")))}
    shares = rows["silent_degradation"]["faults_dismissed"]
    return {f"{when}.dismissed": f"{shares[when]:.2f}" for when in ("base", "trained")}


def gate_facts() -> dict[str, str]:
    """How often the novice's track, in training, healed a fault whose root it blamed on another
    service (`beside`, of `episodes`), and how often it then paged the right team (`beside.paged`).
    """
    played = pd.concat(played_in(seeds_of("novice"), "episodes"))
    beside = played[(played["root_cause"] == 0) & (played["remediation"] > 0)]
    paged = (beside["escalation"] > 0).mean()
    numbers = {"episodes": f"{len(played):,}", "beside": f"{len(beside)}"}
    return numbers | {"beside.paged": f"{paged:.2f}"}


def real_facts() -> dict[str, str]:
    """`real.petshop`: the share of cases whose root our rule names first; `real.found.novice`: the
    cases in which a track's agent does; `real.lots`: in which drawing lots would, in the mean.
    """
    cases = pd.read_parquet(ROOT / "results/real/cases.parquet")
    services = pd.read_parquet(ROOT / "results/real/realism.parquet").set_index("where")["services"]
    found = cases.groupby("policy")["top1"].sum()
    ours = cases[cases["policy"] == OURS].groupby("source")["top1"].mean()
    numbers = {f"real.{source}": f"{ours[source]:.2f}" for source in SOURCES}
    numbers["real.lots"] = f"{(1.0 / services.loc[[*SOURCES]]).sum():.0f}"
    return numbers | {
        f"real.found.{name}": f"{found[f'embedded: {called}']:.0f}"
        for name, called in TRACKS.items()
    }


def own_logs_facts() -> dict[str, str]:
    """`own_logs.error`: the expected calibration error of `triage`, `own_logs.error.test` on one
    split; `own_logs.named`: the answers that it is of; `own_logs.likely`: how many were sure, and
    `own_logs.likely.right` how many of them right.
    """
    found = own_logs()
    confidence = found["confidence"]
    numbers = {f"own_logs.error.{name}": f"{x:.2f}" for name, x in found["error_by_split"].items()}
    return numbers | {
        "own_logs.error": f"{confidence['error']:.3f}",
        "own_logs.named": str(sum(row["answers"] for row in confidence["bins"])),
        "own_logs.likely": str(confidence["likely"]),
        "own_logs.likely.right": str(confidence["likely_right"]),
    }


# -- writing -------------------------------------------------------------------------------------


def written(file: str, text: str) -> str:
    """`text` of that file with its tables and facts written anew; `ValueError` when it does not
    hold each of its tables once, names a fact that is none, or begins a line with one.
    """
    for name, table in TABLES.get(file, {}).items():
        block = f"<!-- {name} -->\n{table()}\n<!-- /{name} -->"
        text, count = re.subn(
            rf"<!-- {name} -->.*?<!-- /{name} -->",
            lambda _, block=block: block,
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"{file} must hold the block <!-- {name} --> once, found {count}")

    first = re.search(r'^[\s">*-]*<!-- =\S+', text, re.M)
    if first:
        raise ValueError(
            f"{file}: {first[0].strip()} begins a line, where Markdown ends the paragraph; put a"
            " word before it"
        )

    def with_value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in facts():
            raise ValueError(f"{file}: unknown fact {name!r}; choose one of {', '.join(facts())}")
        return f"<!-- ={name} -->{facts()[name]}<!-- / -->"

    return FACT.sub(with_value, text)


def write_pages() -> None:
    """Write the tables and facts of all pages from `results/`."""
    for file in PAGES:
        path = ROOT / file
        path.write_text(written(file, path.read_text()))


if __name__ == "__main__":
    write_pages()
