"""No number of a page can contradict results/: what is no marked fact or table holds no score."""

import re
from pathlib import Path

import leaderboard
import nbformat
import pandas as pd
import pytest
import tables
from pages import FACT, FINISHED, PAGES, TABLES, written
from tables import facts

from logtriage.play.scoring import FALSE_PAGE_COST, FRUITLESS_COST, REPEAT_COST, WEIGHTS
from triagelab.bench.intervals import KEYS, LEVEL
from triagelab.bench.plots import words

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text()
# What reads as a score: 0.82, .82, 1.00, 82 %. Versions and counts do not.
SCORE = re.compile(r"(?<![\w.])[01]?\.\d\d+(?!\.?\d)|(?<![\w.])\d+(?:\.\d+)? ?%")
# Numbers that are no results: constants of the design, each with the words around it.
DESIGN = [
    *(f"{words(part)} {weight:.2f}" for part, weight in WEIGHTS.items()),
    f"answer to the same question {REPEAT_COST:.2f}",
    f"remediation that does not help {FRUITLESS_COST:.2f}",
    f"page at a false alarm {FALSE_PAGE_COST:.2f}",
    f"{LEVEL:.0%}".replace("%", " %"),  # of intervals
    f"p is below {1.0 - LEVEL:.2f}",
    f"*suggestive*: below {1.0 - LEVEL:.2f}",
    "gain of 0.05",
    "over 5 % of user requests",  # what P1 means
    "(+0.015, -0.115, -0.070)",  # quoted from the card that the project starts from
]


def text_of(file):
    """The text of a page, or of a notebook's cells that are text."""
    if not file.endswith(".ipynb"):
        return (ROOT / file).read_text()
    cells = nbformat.read(ROOT / file, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def loose_scores(text, tables=()):
    """What reads as a score outside facts, the named tables, code, addresses and `DESIGN`."""
    for name in tables:
        text = re.sub(rf"<!-- {name} -->.*?<!-- /{name} -->", " ", text, flags=re.S)
    text = FACT.sub(" ", text)
    text = re.sub(r"^ *```.*?^ *```|`[^`\n]*`|\]\([^)]*\)", " ", text, flags=re.S | re.M)
    text = " ".join(text.split())
    for phrase in DESIGN:
        text = text.replace(phrase, " ")
    return SCORE.findall(text)


@pytest.mark.parametrize("file", PAGES)
def test_no_score_stands_in_a_sentence(file):
    found = loose_scores(text_of(file), [*TABLES.get(file, ()), *FINISHED])
    assert found == [], "mark it as a fact, see scripts/pages.py"


def test_what_reads_as_a_score_is_found():
    text = (
        "It has 0.82, .79 [.7, .85] and 96 %, 12%; in version 2.0.15, at 0.1, of Qwen2.5 on 3.11."
    )
    assert loose_scores(text) == ["0.82", ".79", ".85", "96 %", "12%"]
    assert loose_scores("severity 0.20, with 95 % intervals, `x=0.05`") == []
    assert loose_scores("severity 0.21 <!-- real -->0.50<!-- /real -->") == ["0.21", "0.50"]
    assert loose_scores("<!-- real -->0.50<!-- /real --> <!-- =x -->0.60<!-- / -->", ["real"]) == []


def test_a_fact_is_written_from_results_or_refused():
    name, value = next(iter(facts().items()))
    text = "It has <!-- ={} -->{}<!-- / -->!"
    assert written("x.md", text.format(name, "0.123")) == text.format(name, value)
    with pytest.raises(ValueError, match=r"x\.md: unknown fact 'tset'; choose one of base\.test"):
        written("x.md", text.format("tset", "0.5"))
    for start in ("It has\n", "- It has\n  ", '"It has\\n",\n "'):
        with pytest.raises(ValueError, match=r"begins a line.*put a word before it"):
            written("x.md", start + text.format(name, value).removeprefix("It has "))


def published(name):
    """The episodes of `test` that results/ holds of an entry of the leaderboard."""
    track = {f"embedded agent: {called}": track for track, called in tables.TRACKS.items()}.get(
        name
    )
    if track is None:
        played = tables.read("benchmark/episodes.parquet")
        return played[played["policy"] == name]
    played = pd.read_parquet(tables.seeds_of(track)[0] / "evaluation.parquet")
    return played[played["policy"] == "trained"]


def test_the_leaderboard_is_of_the_published_episodes():
    # Scripts that draw lots, `random` and `novice`, played others.
    names = ["constant", "loudest", "trace", "belief", "oracle"]
    names += [f"embedded agent: {called}" for called in tables.TRACKS.values()]
    entries = {entry.name: entry.frame for entry in leaderboard.entries()}
    for name in names:
        both = entries[name].merge(published(name), on=KEYS, suffixes=("", "_published"))
        assert len(both) == len(entries[name])
        assert both["score"].sub(both["score_published"]).abs().max() < 1e-6, f"replay {name} again"


@pytest.mark.parametrize("file", PAGES)
def test_times_are_those_of_make_help(file):
    for target, minutes in re.findall(r"make ([a-z-]+)\b[^\n]*?(\d+) min", text_of(file)):
        told = re.search(rf"^{target}:.*##.*", MAKEFILE, re.M)[0]
        assert f"{minutes} min" in told, f"make {target} takes what `make help` says: {told}"


def test_times_in_the_readme_are_those_of_the_notebooks():
    rows = re.findall(r"\(notebooks/(\S+)\) \|[^|]*\| ([^|]*) \|", text_of("README.md"))
    assert len(rows) == 9
    for notebook, told in rows:
        said = re.search(r"\*\*Run time:\*\*.*|$", text_of(f"notebooks/{notebook}"))[0]
        assert told in said, f"README says {told} of {notebook}, which says {said}"


def test_there_are_ten_pages_at_most():
    pages = [page for page in PAGES if page.startswith("docs/")]
    assert len(pages) <= 11  # ten and the leaderboard
