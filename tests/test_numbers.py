"""No number of a page can contradict results/: what is no marked fact or table holds no score."""

import gzip
import json
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from logtriage.play.scoring import FALSE_PAGE_COST, FRUITLESS_COST, REPEAT_COST, WEIGHTS
from logtriage.play.tools import MALFORMED_COST
from logtriage.world.tasks import BENCHMARK_VERSION, TASKS
from triagelab.bench import published, results_tables
from triagelab.bench.intervals import LEVEL
from triagelab.bench.plots import words
from triagelab.bench.results_pages import FACT, PAGES, TABLES, facts, written

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
    f"takes {MALFORMED_COST:.2f} off for each malformed call",
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


# Tables and paragraphs of finished studies, whose code is gone: they stay as they were written.
FINISHED = (
    *("apart", "beside", "calibration", "confidence", "cost", "dials", "estimators", "grounded"),
    *("lite", "marks", "metrics_alone", "other_half", "own_logs", "policies", "readers"),
    *("realism", "recipe", "sets", "sock_shop", "topology", "transfer", "words"),
)


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
    loose = loose_scores(text_of(file), [*TABLES.get(file, ()), *FINISHED])
    assert loose == [], "mark it as a fact, see triagelab/bench/results_pages.py"


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


def test_no_number_of_a_finished_study_is_written_anew_or_stands_in_the_readme(monkeypatch):
    # Nothing in the tree could make it again; results/README.md says which commit could.
    text = (ROOT / "results" / "README.md").read_text()
    study = text[text.index("## Finished studies") : text.index("## Advantage")]
    rows = [line for line in study.splitlines() if line.startswith("| [")]
    assert all(re.search(r"\| `[0-9a-f]{7}` \|$", row) for row in rows)
    finished = {name for row in rows for name in re.findall(r"\]\(([^).#]\S*?)\)", row)}
    files = {name for name in finished if not name.startswith("..")}
    assert {"own-logs/root-cause-bench.json", "production/apart.csv", "gpu/memory.csv"} <= files
    code = "".join(path.read_text() for path in (ROOT / "triagelab" / "bench").glob("*.py"))
    assert not {name for name in files if f'"{name}"' in code}
    blocks = re.findall(r"<!-- (\w+) -->", text_of("README.md"))
    assert {*blocks} == {*TABLES.get("README.md", ())}


@pytest.mark.parametrize("file", PAGES)
def test_nothing_is_called_a_ceiling_but_the_policy_of_that_name(file):
    # `belief` looks one question ahead: it is near-optimal, and how near is a fact.
    if file not in ("docs/production.md", "notebooks/09_from_simulation_to_real.ipynb"):
        assert not re.search(r"(?<!`)\bceiling\b(?!`)", text_of(file))


def test_how_near_the_reference_is_stands_where_it_is_explained():
    assert 0.0 < float(facts()["reference.gap"]) < 0.05
    for file in ("docs/benchmark.md", "docs/glossary.md", "notebooks/05_benchmark.ipynb"):
        assert "<!-- =reference.gap -->" in text_of(file)


def test_a_row_of_the_leaderboard_is_of_all_its_incidents(tmp_path):
    where = [(task, index) for task in TASKS for index in range(results_tables.LISTED)]
    frame = pd.DataFrame(where, columns=["task", "index"]).assign(
        split="test", policy="mine", benchmark=BENCHMARK_VERSION, score=1.0
    )
    path = tmp_path / "mine.json"
    (tmp_path / "results").mkdir()
    failed = frame.assign(score=frame["score"].where(frame["index"] > 0))
    twice = pd.concat([frame, failed])  # the second attempt at some ended in an error
    twice.to_json(path, orient="records")
    row = results_tables.added_row(path)
    assert len(row) == len(where) and row["score"].min() == 0.5
    assert 0.9 < results_tables.shares_of(row)["test"] < 1.1  # as the table has it
    for wrong in (
        frame[1:],
        frame.assign(benchmark="1.0"),
        frame.assign(split="train"),
        pd.concat([frame, frame.assign(policy="another")]),
    ):
        wrong.to_json(path, orient="records")
        with pytest.raises(ValueError, match="is no row of the leaderboard"):
            results_tables.added_row(path)


@pytest.mark.parametrize(
    "name", ["belief", "embedded agent after GRPO", "embedded agent before GRPO"]
)
def test_what_the_page_shows_of_others_is_what_they_do(name):
    kept = json.loads(gzip.decompress(published.RECORDED.read_bytes()))
    again = published.recorded(published.recorded_players()[name], 2)
    assert {task: done[:2] for task, done in kept[name].items()} == again, "run `make results`"


@pytest.mark.parametrize("file", PAGES)
def test_times_are_those_of_make_help(file):
    for target, minutes in re.findall(r"make ([a-z-]+)\b[^\n]*?(\d+) min", text_of(file)):
        line = re.search(rf"^{target}:.*##.*", MAKEFILE, re.M)[0]
        assert f"{minutes} min" in line, f"make {target} takes what `make help` says: {line}"


def test_times_in_the_readme_are_those_of_the_notebooks():
    rows = re.findall(r"\(notebooks/(\S+)\) \|[^|]*\| ([^|]*) \|", text_of("README.md"))
    assert len(rows) == 9
    for notebook, time in rows:
        said = re.search(r"\*\*Run time:\*\*.*|$", text_of(f"notebooks/{notebook}"))[0]
        assert time in said, f"README says {time} of {notebook}, which says {said}"
