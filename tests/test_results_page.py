"""The page of the published sweeps is what their files say."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
import sweep_pages
from sweep_pages import OTHERS, page, sweep_folders, write_page

from logtriage.world.tasks import TASKS

ROOT = Path(__file__).parents[1]


def assert_fresh():
    text = (sweep_pages.RESULTS / "README.md").read_text()
    assert text == page(), "run `python scripts/sweep_pages.py`"


def anchors(text):
    """What GitHub names the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


def dead_links(text, at):
    """Links and pictures of a page in folder `at` that lead nowhere."""
    dead = []
    for target in re.findall(r"\]\(([^)]+)\)", text):
        file, _, anchor = target.partition("#")
        there = (at / file).read_text() if file.endswith(".md") else text
        if not (at / file).exists() or (anchor and anchor not in anchors(there)):
            dead.append(target)
    return dead


def publish(results, name, rows, difference=False, **changes):
    """A published sweep of toy figures: row `i` scores 0.5 + 0.1 * i."""
    folder = results / name
    folder.mkdir(parents=True)
    sweep = {
        "name": name,
        "about": f"What does {name} decide?",
        "command": f"python -m logtriage sweep sweeps/{name}.yaml",
        "notebook": "../notebooks/03_grpo_training.ipynb",
        "parameters": {"preset": "novice", "changes": {"learning_rate": 4e-4}},
        "rows": rows,
        "seeds": [0, 1],
        "points": 2 * len(rows),
        "finished": "2026-11-20",
        "commits": ["0123456789abcdef", "0123456789abcdef", "fedcba9876543210"],
        "machine": {"cores": 2},
        "left_out": "",
        **changes,
    }
    (folder / "sweep.json").write_text(json.dumps(sweep))
    table = []
    for i, row in enumerate(rows):
        for task in ("all", *TASKS):
            line = {"row": row, "task": task, "seeds": 2, "incidents": 40, "smallest_gain": 0.07}
            for column, value in {"base": 0.4, "trained": 0.5, "iqm": 0.52, "gain": 0.1}.items():
                here = value + 0.1 * i
                line |= {column: here, f"{column}_low": here - 0.03, f"{column}_high": here + 0.03}
            if difference:
                worth = float("nan") if i == 0 else 0.1 * i
                line |= {"difference": worth}
                line |= {"difference_low": worth - 0.04, "difference_high": worth + 0.04}
            table.append(line)
    pd.DataFrame(table).to_parquet(folder / "summary.parquet")
    for picture in ("learning", "seeds"):
        (folder / f"{picture}.png").write_bytes(b"png")
    return folder


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Results with two published sweeps and the benchmark."""
    results = tmp_path / "results"
    monkeypatch.setattr(sweep_pages, "RESULTS", results)
    publish(
        results,
        "credit",
        {
            "part": {},
            "episode": {"changes": {"credit": "episode"}, "shares": {"single_crash": 1.0}},
        },
        difference=True,
        left_out="A third kind of credit, which takes a day.",
    )
    folder = publish(results, "Group-size", {"8x8": {"group": 8}}, commits=[], machine={})
    (folder / "cost_per_step.png").write_bytes(b"png")
    (results / "benchmark").mkdir()
    return results


def test_the_page_is_fresh():
    assert_fresh()


def test_everything_published_is_on_the_page():
    folders = {path.name for path in sweep_pages.RESULTS.iterdir() if path.is_dir()}
    assert folders == {*(path.name for path in sweep_folders())} | folders & set(OTHERS)
    text = page()
    assert all(f"[{name}]" in text for name in folders)
    assert not dead_links(text, sweep_pages.RESULTS)


def test_a_dead_link_is_found():
    text = "# A b\n[1](#a-b) [2](#c) [3](../README.md#results) [4](../README.md#gone) [5](gone.png)"
    assert dead_links(text, ROOT / "results") == ["#c", "../README.md#gone", "gone.png"]


def test_a_sweep_is_told_whole(two):
    text = page()
    assert text.index("- [Group-size](#group-size)") < text.index("- [credit](#credit)")
    section = text.split("\n## credit\n")[1].split("\n## ")[0]
    assert "What does credit decide?" in section
    assert "- **part**: nothing is changed" in section
    assert '- **episode**: `shares={"single_crash": 1.0}`, `credit=episode`' in section
    assert "- in all of them: `preset=novice`, `learning_rate=0.0004`" in section
    assert (
        "| row | seeds | trained | IQM | gain | least gain of a seed | difference |\n"
        "|---|---|---|---|---|---|---|\n"
        "| part | 2 | 0.50 [0.47, 0.53] | 0.52 [0.49, 0.55] | 0.10 [0.07, 0.13] | 0.07 |  |\n"
        "| episode | 2 | 0.60 [0.57, 0.63] | 0.62 [0.59, 0.65] | 0.20 [0.17, 0.23] | 0.07 |"
        " 0.10 [0.06, 0.14] |\n"
    ) in section
    for task in TASKS:
        assert section.count(f"| {task.replace('_', ' ')} | ") == 2
    assert re.search(r"!\[credit: \w.+\]\(credit/learning.png\)", section)
    assert re.search(r"!\[credit: \w.+\]\(credit/seeds.png\)", section)
    assert "4 points (seeds 0, 1); 40 held-out incidents a task" in section
    assert "finished on 2026-11-20; from commit `0123456`, `fedcba9`; on cores 2." in section
    assert "`python -m logtriage sweep sweeps/credit.yaml`" in section
    assert "03_grpo_training.ipynb" in section
    assert "Left out: A third kind of credit, which takes a day." in section


def test_a_sweep_says_nothing_of_what_it_has_not(two):
    section = page().split("\n## Group-size\n")[1].split("\n## ")[0]
    assert "difference" not in section and "commit" not in section and "Left out" not in section
    assert "![Group-size: cost per step](Group-size/cost_per_step.png)" in section
    assert "- [benchmark]" in page() and "- [demo]" not in page()


def test_a_row_without_results_is_named_and_has_no_line(two):
    path = two / "credit" / "summary.parquet"
    table = pd.read_parquet(path)
    table[table["row"] != "episode"].to_parquet(path)
    section = page().split("\n## credit\n")[1]
    assert "- **episode**" in section and "| episode |" not in section


def test_a_page_that_is_not_what_the_files_say_is_found(two):
    write_page()
    assert_fresh()
    path = two / "credit" / "summary.parquet"
    table = pd.read_parquet(path)
    table.loc[table["row"] == "episode", "trained"] += 0.01
    table.to_parquet(path)
    with pytest.raises(AssertionError, match=r"run `python scripts/sweep_pages\.py`"):
        assert_fresh()


def test_a_sweep_that_is_not_whole_is_refused(two):
    (two / "credit" / "seeds.png").unlink()
    with pytest.raises(ValueError, match=r"credit lacks seeds\.png; publish the sweep again"):
        page()


def test_results_of_another_sweep_are_refused(two):
    path = two / "credit" / "summary.parquet"
    pd.read_parquet(path).replace({"row": {"part": "answer"}}).to_parquet(path)
    with pytest.raises(ValueError, match="credit has results of answer"):
        page()
