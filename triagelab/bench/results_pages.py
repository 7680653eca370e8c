"""Write the tables and numbers of all pages from results/.

Tests check that they are up to date, and that every score in a sentence stands between markers.

A table is written between `<!-- name -->` and `<!-- /name -->` (`TABLES`), a number in a sentence
between `<!-- =name -->` and `<!-- / -->` (`facts`), in pages and in the text of notebooks.
"""

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pandas as pd

from logtriage.world.tasks import TASKS

from ..realistic.production_policies import RANKER
from .intervals import Interval
from .published import ROOT, read
from .recorded_results import OURS
from .results_tables import (
    NEW,
    by_source,
    gain,
    leaderboard_table,
    on_test,
    real_incidents_table,
    split_shares,
    splits_table,
    track_table,
)
from .score_tables import CAREFUL, REFERENCE, cell_text
from .smollm2_results import gains_table, listed_stages, new_splits_table, stage_facts, stages_table
from .strata import with_truth

# Maps a file to its tables, each of which is between `<!-- name -->` and `<!-- /name -->`. Other
# tables and paragraphs between such markers are of finished studies, whose code is gone: they stay
# as they were written, and say which commit has the code.
TABLES: dict[str, dict[str, Callable[[], str]]] = {
    "docs/LEADERBOARD.md": {"leaderboard": lambda: leaderboard_table(listed_stages())},
    "results/README.md": {"novice": partial(track_table, "novice"), "splits": splits_table},
    "docs/smollm2.md": {"stages": partial(stages_table, "constrained"), "splits": new_splits_table},
    "results/training.md": {
        "expert": partial(track_table, "expert"),
        "gains": gains_table,
        "ways": partial(stages_table, "free", "sampled"),
    },
    "docs/real.md": {"real": real_incidents_table},
}
# History, which stays as it was written, and samples.
NO_PAGES = ("LOG.md", "CHANGELOG.md", "GALLERY.md")
# Every other file whose sentences may hold facts.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "[!.]*/*.md", "triagelab/agent/README.md", "*/*.ipynb")
    for path in ROOT.glob(pattern)
    if path.name not in NO_PAGES
)
FACT = re.compile(r"<!-- =(\S+) -->(.*?)<!-- / -->", re.DOTALL)

# -- numbers of sentences --------------------------------------------------------------------------


@cache
def facts() -> dict[str, str]:
    """Every number that a sentence may hold, as text, by its name."""
    numbers = track_facts() | recorded_facts() | stage_facts()
    return {name: cell_text(value) for name, value in numbers.items()}


def track_facts() -> dict[str, Any]:
    """`novice.test` and the like: the share of `belief`'s score of a track, the `base` or a script,
    on a split. `reference.gap`: how much more than `belief` the script that is told the truth
    scores on the task where that is most, so how far it can be from the best policy. `mean.base`
    and the like: mean scores on `test`, the novice's track and `belief`; `mean.gain` is the track's
    gain, `mean.gain.faults` that on real faults alone, `mean.first` the first seed's score, and
    `trace.ahead` how much more than the track `trace` scores on single crashes.
    `base.dismissed` and `trained.dismissed` are the shares of real faults that the novice's track
    dismissed on silent degradation.
    """
    numbers: dict[str, Any] = {
        f"{name}.{split}": share[split] for name, share in split_shares().items() for split in NEW
    }
    scripts = read("benchmark/episodes.parquet")
    means = scripts[scripts["split"] == "test"].groupby(["policy", "task"])["score"].mean()
    numbers["reference.gap"] = (means["oracle"] - means[REFERENCE]).max()
    frames = on_test("novice")
    together = pd.concat(frames).groupby("policy")["score"].mean()
    numbers |= {f"mean.{name}": together[name] for name in ("base", "trained")}
    numbers["mean.first"] = frames[0].groupby("policy")["score"].mean()["trained"]
    same = scripts[(scripts["split"] == "test") & scripts["index"].isin(frames[0]["index"])]
    numbers["mean.reference"] = same[same["policy"] == REFERENCE]["score"].mean()
    numbers["mean.gain"] = gain(frames, TASKS, "base")
    faults = [frame[frame["real"]] for frame in map(with_truth, frames)]
    numbers["mean.gain.faults"] = gain(faults, TASKS, "base")
    behind = gain(frames, ["single_crash"], CAREFUL)
    numbers[f"{CAREFUL}.ahead"] = Interval(-behind.mean, -behind.high, -behind.low)
    silent = pd.concat(faults).query("task == 'silent_degradation'")
    dismissed = (silent["closed_by"] == "ignore").groupby(silent["policy"]).mean()
    return numbers | {f"{name}.dismissed": dismissed[name] for name in ("base", "trained")}


def recorded_facts() -> dict[str, Any]:
    """Shares of real cases whose root is named first, by source: `transfer.petshop` and the like
    of the ranker, `real.petshop` of our rule.
    """
    return {
        f"{name}.{source}": share.mean
        for name, policy in {"transfer": RANKER, "real": OURS}.items()
        for source, share in by_source(policy).items()
    }


# -- pages -----------------------------------------------------------------------------------------


def written(file: str, text: str) -> str:
    """The `text` of a file with its tables and facts written anew. `ValueError` if it does not hold
    each of its tables once, names an unknown fact, or begins a line with a fact.
    """
    for name, table in TABLES.get(file, {}).items():
        block = f"<!-- {name} -->\n{table()}\n<!-- /{name} -->"
        text, count = re.subn(
            rf"<!-- {name} -->.*?<!-- /{name} -->",
            block.replace("\\", r"\\"),
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

    def with_value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in facts():
            raise ValueError(f"{file}: unknown fact {name!r}; choose one of {', '.join(facts())}")
        return f"<!-- ={name} -->{facts()[name]}<!-- / -->"

    return FACT.sub(with_value, text)


def write_pages() -> None:
    """Write the tables and facts of all pages from `results/`."""
    for file in PAGES:
        path = ROOT / file
        path.write_text(written(file, path.read_text()))
