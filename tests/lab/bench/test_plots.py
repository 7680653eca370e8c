"""Figures, tested by what is in their axes: data, labels, and names that do not overlap."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS
from triagelab.bench import incident_plots, plots
from triagelab.bench.intervals import mean_interval
from triagelab.bench.plots import POLICY_COLOURS, WIDTH
from triagelab.bench.published import RESULTS
from triagelab.bench.sweep_tables import read_sweep

BENCHMARK, RUN = RESULTS / "benchmark", RESULTS / "novice" / "seed-1"


@pytest.fixture(scope="module")
def frame():
    frame = pd.read_parquet(BENCHMARK / "episodes.parquet")
    return frame[(frame["split"] == "test") & (frame["index"] < 100)]


@pytest.fixture(scope="module")
def runs():
    """Training episodes, checkpoints and evaluations of three published seeds."""
    return [
        [pd.read_parquet(RUN.with_name(f"seed-{seed}") / f"{name}.parquet") for seed in (1, 2, 3)]
        for name in ("episodes", "checkpoints", "evaluation")
    ]


@pytest.fixture(scope="module")
def figures(frame, runs):
    """Every figure, most from the committed results."""
    training, _, evaluations = runs
    plan, sweep = read_sweep(RESULTS / "ablations")
    random, worse = np.random.default_rng(0), []
    for table in evaluations:
        missed = (table["policy"] == "trained") & (random.random(len(table)) < 0.2)
        worse.append(table.assign(root_cause=table["root_cause"].mask(missed, 0.0)))
    drawn = {
        "policies": plots.plot_policies(frame),
        "learning": plots.plot_learning(training[0]),
        "checkpoints, three seeds": plots.plot_checkpoints(*runs),
        "gain": plots.plot_gain(training[:1], evaluations[:1]),
        "strata, three seeds": plots.plot_strata(worse),
        "sweep seeds": plots.plot_sweep_seeds(sweep, plan["against"]),
    }
    for figure in drawn.values():
        figure.draw_without_rendering()
    return drawn


def texts(figure):
    """All text that is drawn: tick labels beyond the ends of their axis are not."""
    beyond = set()
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = (*axis.get_major_ticks(), *axis.get_minor_ticks())
        away = [tick for tick in ticks if not (axis.axes.axison and low <= tick.get_loc() <= high)]
        beyond |= {label for tick in away for label in (tick.label1, tick.label2)}
    drawn = (
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    )
    return [text for text in drawn if text not in beyond]


def shown_text(figure):
    return "\n".join(text.get_text() for text in texts(figure))


def lines_of(ax, colour):
    return [line for line in ax.lines if to_hex(line.get_color()) == colour.lower()]


def test_no_text_lies_on_another_or_leaves_the_figure(figures):
    for name, figure in figures.items():
        assert figure.get_figwidth() <= WIDTH, name
        page, boxes = figure.bbox.padded(1.0), []
        for text in texts(figure):
            assert text.get_fontsize() >= 8.0, (name, text.get_text())
            if text.get_rotation() % 90:
                continue  # the box around a slanted text is not the text
            box = text.get_window_extent()
            # less the room for ascenders and descenders that most words lack
            box = Bbox.from_extents(*box.p0 + 2, *box.p1 - 2)
            boxes.append((text.get_text(), box))
            inside = page.x0 <= box.x0 and box.x1 <= page.x1
            assert inside and page.y0 <= box.y0 and box.y1 <= page.y1, (name, text.get_text())
        for (text, box), (other, second) in combinations(boxes, 2):
            assert not box.overlaps(second), (name, text, other)


def test_an_incident_climbs_from_its_root_and_only_the_right_remedy_heals_it():
    incident = sample_incident("cascading_failure", "train", 0)
    ax = incident_plots.plot_climb(incident).axes[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    (cells,) = ax.collections
    red = np.asarray(cells.get_array()).reshape(len(names), -1)
    assert red.shape[1] == incident.arrival + 1 and not red[:, 0].any()
    first = red[:, red.any(axis=0)][:, 0]
    assert [name for name, shade in zip(names, first, strict=True) if shade] == [incident.root]
    healing = incident_plots.plot_healing(incident)
    nothing, symptom, root = (line.get_ydata()[-1] for line in healing.axes[0].get_lines()[:3])
    assert "a symptom" in shown_text(healing)
    assert root < 1.0 < symptom and nothing == pytest.approx(symptom, rel=0.2)


def test_a_row_is_a_policy_with_its_interval(figures, frame):
    for ax, task in zip(figures["policies"].axes, TASKS, strict=True):
        for policy in ("loudest", "belief"):
            own = frame[(frame["task"] == task) & (frame["policy"] == policy)]
            cell = mean_interval(own["score"])
            interval, dot = lines_of(ax, POLICY_COLOURS[policy])
            assert list(interval.get_xdata()) == [cell.low, cell.high]
            assert list(dot.get_xdata()) == [cell.mean]
            assert f"{own['steps'].mean():.1f}" in {text.get_text() for text in ax.texts}


def test_gain_is_the_published_summary_and_says_how_it_was_played(figures, runs):
    (right,) = figures["gain"].axes
    assert "greedy" in right.get_xlabel() and "one training seed" in right.get_title()
    assert f"{len(runs[0][0]):,} episodes" in right.get_title()
    for row, cell in enumerate(json.loads((RUN / "summary.json").read_text())):
        for policy in ("base", "trained"):
            interval = lines_of(right, POLICY_COLOURS[policy])[2 * row]
            assert list(interval.get_xdata()) == pytest.approx(cell[policy][1:])
            assert f"{policy} {cell[policy][0]:.2f}" in shown_text(figures["gain"])
        (bar,) = lines_of(right, POLICY_COLOURS["trace"])[row : row + 1]
        assert bar.get_xdata()[0] == pytest.approx(cell["trace"])
