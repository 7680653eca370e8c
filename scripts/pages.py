"""Write the tables and numbers of all pages from results/, and the gallery from the generator:
`python scripts/pages.py`. Tests check that they are up to date, and that every score in a sentence
stands between markers.

A table is written between `<!-- name -->` and `<!-- /name -->` (`TABLES`), a number in a sentence
between `<!-- =name -->` and `<!-- / -->` (`tables.facts`), in pages and in the text of notebooks.
"""

import re
from functools import partial

from leaderboard import entry_tables
from tables import (
    ROOT,
    benchmark_table,
    confidence_table,
    facts,
    front_table,
    own_logs_table,
    policies_table,
    real_incidents_table,
    recipe_table,
    seeds_table,
    splits_table,
    topology_table,
    track_table,
    transfer_table,
)

from logtriage.play.actions import Action
from logtriage.play.episode import Episode
from logtriage.play.observation import render
from logtriage.world.tasks import SPLITS, TASKS
from triagelab.bench.plots import words

# Maps a file to its tables, each of which is between `<!-- name -->` and `<!-- /name -->`.
TABLES = {
    "README.md": {"front": front_table},
    "docs/LEADERBOARD.md": {"entries": entry_tables},
    "results/README.md": {"novice": partial(track_table, "novice"), "splits": splits_table},
    "docs/benchmark.md": {"benchmark": benchmark_table},
    "docs/training.md": {
        "recipe": recipe_table,
        "expert": partial(track_table, "expert"),
        "topology": topology_table,
    },
    "docs/real.md": {"real": real_incidents_table},
    "docs/production.md": {
        "policies": policies_table,
        "transfer": transfer_table,
        "seeds": seeds_table,
    },
    "docs/logs.md": {"own_logs": own_logs_table, "confidence": confidence_table},
}
# Tables of finished studies, whose code is gone: they stay as they were written.
FINISHED = (
    *("beside", "cost", "dials", "estimators", "marks", "metrics_alone", "other_half", "readers"),
    *("realism", "sets", "sock_shop", "words"),
)
GALLERY = "docs/GALLERY.md"
# History, which stays as it was written, and the gallery, which is written whole.
NO_PAGES = ("LOG.md", "CHANGELOG.md", "GALLERY.md")
# Every other file whose sentences may hold facts.
PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "*/README.md", "triagelab/agent/README.md", "docs/*.md", "*/*.ipynb")
    for path in ROOT.glob(pattern)
    if path.name not in NO_PAGES
)
FACT = re.compile(r"<!-- =(\S+) -->(.*?)<!-- / -->", re.DOTALL)


def written(file: str, text: str) -> str:
    """The `text` of a file with its tables and facts written anew. `ValueError` if it does not hold
    each of its tables once, names an unknown fact, or begins a line with a fact.
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


def gallery_text() -> str:
    """The text of the gallery: two openings of each task with the logs of the root and the truth,
    and one task in the other splits.
    """
    parts = [
        "# Gallery",
        "Real samples of the generator, written by `make results`; a test holds them fresh. "
        "Each block is all that an agent sees.",
    ]
    for name, task in TASKS.items():
        parts.append(f"## {words(name)}")
        parts.append(
            f"{task.max_steps} steps; at least {task.noise:.0%} of the streamed lines are noise."
        )
        for index in (0, 1):
            episode = Episode.open(name, "train", index)
            incident = episode.incident
            seen = render(episode.opening, incident.topology)
            parts.append(f"`train/{index}`\n\n```text\n{seen}\n```")
            if incident.injection is None:
                parts.append("Truth: a false alarm; P3, and `ignore`.")
                continue
            detail = render(episode.act(Action("request_more_logs", (incident.root,))))
            parts.append(f"Asking `{incident.root}`:\n\n```text\n{detail}\n```")
            parts.append(
                f"Truth: {incident.severity}, {incident.injection.fault.name} at `{incident.root}`;"
                f" {incident.remedy}, page {incident.team}."
            )
    parts.append("## The other splits")
    for split in (split for split in SPLITS if split.startswith("unseen")):
        lines = "\n".join(Episode.open("cascading_failure", split, 0).opening.lines)
        parts.append(
            f"`{split}`: {SPLITS[split]}. Lines of `cascading_failure/{split}/0`:"
            f"\n\n```text\n{lines}\n```"
        )
    return "\n\n".join(parts) + "\n"


def write_pages(but: str = "") -> None:
    """Write the tables and facts of all pages except `but` from `results/`, and the gallery."""
    for file in [page for page in PAGES if page != but]:
        path = ROOT / file
        path.write_text(written(file, path.read_text()))
    (ROOT / GALLERY).write_text(gallery_text())


if __name__ == "__main__":
    write_pages(but="docs/LEADERBOARD.md")  # only `make results` replays its entries
