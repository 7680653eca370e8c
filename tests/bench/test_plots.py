"""Figures, tested by what is in their axes: data, labels with units, colours, and names that lie on
nothing else.
"""

import json
from io import BytesIO
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_hex
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from PIL import Image

from logtriage.bench import benchmark_plots, incident_plots, learning_plots
from logtriage.bench.benchmark import confusion, read_table
from logtriage.bench.figure import SMALL, WIDTH, label_ends, label_points, new_figure, spread
from logtriage.bench.intervals import mean_interval
from logtriage.bench.palette import INK, POLICY_COLOURS, TASK_COLOURS, VERDICT_COLOURS, words
from logtriage.bench.rollouts import PARTS, user_errors
from logtriage.bench.strata import label as label_of
from logtriage.bench.strata import stratum_changes
from logtriage.world.incidents import sample_incident
from logtriage.world.tasks import TASKS
from logtriage.world.topology import DEFAULT_TOPOLOGY

RESULTS = Path(__file__).parents[2] / "results"
BENCHMARK, RUN = RESULTS / "benchmark", RESULTS / "novice" / "seed-0"


@pytest.fixture(scope="module")
def frame():
    return pd.read_parquet(BENCHMARK / "episodes.parquet")


@pytest.fixture(scope="module")
def run(frame):
    """Training episodes, checkpoints and evaluation of the published run, `belief` included."""
    evaluation = pd.read_parquet(RUN / "evaluation.parquet")
    played = evaluation[["task", "split", "index"]].drop_duplicates()
    ceiling = frame[frame.policy == "belief"].merge(played)
    return (
        pd.read_parquet(RUN / "episodes.parquet"),
        pd.read_parquet(RUN / "checkpoints.parquet"),
        pd.concat([evaluation, ceiling], ignore_index=True),
    )


def three_seeds(table, column="score"):
    """Three frames that differ, as those of three training seeds would."""
    random = np.random.default_rng(0)
    shifts = [0.0, -0.1, 0.05]
    return [
        table.assign(**{column: np.clip(table[column] + shift + random.normal(0, 0.05), 0, 1)})
        for shift in shifts
    ]


def answer_seeds(table):
    """Three evaluations of which two miss some roots that the first has found."""
    random = np.random.default_rng(0)
    missed = [(table.policy == "trained") & (random.random(len(table)) < p) for p in (0, 0.2, 0.4)]
    return [table.assign(root_cause=table["root_cause"].mask(rows, 0.0)) for rows in missed]


@pytest.fixture(scope="module")
def figures(frame, run):
    """Every figure of the project, from the committed results."""
    test = frame[frame.split == "test"]
    cascades = test[test.task == "cascading_failure"]
    tables = {
        name: confusion(cascades[cascades.policy == name], DEFAULT_TOPOLOGY.names)
        for name in ("loudest", "trace")
    }
    openings = pd.read_parquet(BENCHMARK / "openings.parquet")
    episodes, checkpoints, evaluation = run
    seeds = [three_seeds(table) for table in run]
    reported = {"somebody else's,\non another world": dict.fromkeys(TASKS, 0.5)}
    unchanged = evaluation[evaluation.policy == "base"]["score"].to_numpy()
    drawn = {
        "policies": benchmark_plots.plot_policies(test, reported),
        "profiles": benchmark_plots.plot_profiles(test),
        "price": benchmark_plots.plot_price(test),
        "splits": benchmark_plots.plot_splits(frame),
        "hops": benchmark_plots.plot_hops(read_table(BENCHMARK, "hops")),
        "confusion": benchmark_plots.plot_confusion(tables),
        "reliability": benchmark_plots.plot_reliability(test[test.policy == "belief"], openings),
        "audit": benchmark_plots.plot_audit(pd.read_parquet(BENCHMARK / "audit.parquet")),
        "dials": benchmark_plots.plot_dials(pd.read_parquet(BENCHMARK / "dials.parquet")),
        "learning": learning_plots.plot_learning([episodes]),
        "learning, three seeds": learning_plots.plot_learning(seeds[0]),
        "checkpoints": learning_plots.plot_checkpoints([episodes], [checkpoints], [evaluation]),
        "checkpoints, three seeds": learning_plots.plot_checkpoints(*seeds),
        "gain": learning_plots.plot_gain([episodes], [evaluation]),
        "gain, three seeds": learning_plots.plot_gain(seeds[0], seeds[2]),
        "parts": learning_plots.plot_parts([evaluation]),
        "strata": learning_plots.plot_strata([evaluation]),
        "strata, three seeds": learning_plots.plot_strata(answer_seeds(evaluation)),
        "small samples": learning_plots.plot_small_samples(unchanged),
    }
    for task, split, index in (
        ("cascading_failure", "train", 0),
        ("silent_degradation", "train", 4),
        ("silent_degradation", "test", 1),
        ("cascading_failure", "unseen_topology", 3),
    ):
        drawn[f"cluster of {task}/{split}/{index}"] = cluster(sample_incident(task, split, index))
        drawn[f"healing of {task}/{split}/{index}"] = healing(sample_incident(task, split, index))
    for figure in drawn.values():
        figure.draw_without_rendering()
    return drawn


def cluster(incident):
    moments = incident_plots.climb(incident)
    states = [incident.untreated[tick] for tick in moments]
    return incident_plots.draw_cluster(
        incident.topology, states, list(moments.values()), incident.root
    )


def healing(incident):
    symptom = incident.topology.names[0]
    curves = {
        "nothing done": user_errors(incident),
        f"restart {symptom}\n(a symptom)": user_errors(incident, "restart", symptom),
    }
    if incident.root:
        label = f"{incident.remedy} {incident.root}\n(the root)"
        curves[label] = user_errors(incident, incident.remedy, incident.root)
    return incident_plots.plot_healing(curves, incident.arrival)


def texts(figure):
    """All text that is drawn: tick labels beyond the ends of their axis are not."""
    beyond = set()
    for axis in (one for ax in figure.axes for one in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = (*axis.get_major_ticks(), *axis.get_minor_ticks())
        away = [tick for tick in ticks if not (axis.axes.axison and low <= tick.get_loc() <= high)]
        beyond |= {label for tick in away for label in (tick.label1, tick.label2)}
    found = (one for one in figure.findobj(Text) if one.get_visible() and one.get_text().strip())
    return [one for one in found if one not in beyond]


def core(text):
    """The box of a text, less the room for ascenders and descenders that most words lack."""
    box = text.get_window_extent()
    return Bbox.from_extents(*box.p0 + 2, *box.p1 - 2)


def said(figure):
    return "\n".join(text.get_text() for text in texts(figure))


def lines_of(ax, colour):
    return [line for line in ax.lines if to_hex(line.get_color()) == colour.lower()]


def test_figures_fit_a_readme_and_can_be_read_there(figures):
    for name, figure in figures.items():
        assert figure.get_figwidth() <= WIDTH, name
        for text in texts(figure):
            assert text.get_fontsize() >= min(8.0, SMALL), (name, text.get_text())


def test_no_text_lies_on_another_or_leaves_the_figure(figures):
    for name, figure in figures.items():
        page = figure.bbox.padded(1.0)
        boxes = []
        for text in texts(figure):
            if text.get_rotation() % 90:
                continue  # the box around a slanted text is not the text
            box = core(text)
            boxes.append((text.get_text(), box))
            inside = page.x0 <= box.x0 and box.x1 <= page.x1
            assert inside and page.y0 <= box.y0 and box.y1 <= page.y1, (name, text.get_text())
        for (one, box), (other, second) in combinations(boxes, 2):
            assert not box.overlaps(second), (name, one, other)


def test_axes_say_what_they_show(figures):
    for name, figure in figures.items():
        first, last = figure.axes[0], [one for one in figure.axes if one.axison][-1:]
        rows = [label.get_text() for label in first.get_yticklabels()]
        assert first.get_ylabel() or any(rows) or first.texts, name
        assert figure.get_supxlabel() or all(ax.get_xlabel() for ax in last), name
        for ax in figure.axes:
            assert ax.get_legend() is None and not figure.legends, name  # names stand at the data
            for label in (ax.get_xlabel(), ax.get_ylabel()):
                told = "score" not in label or "0 to 1" in label or "95 % of pairs" in label
                assert told, (name, label)


def test_a_figure_is_saved_small_and_sharp(figures, tmp_path):
    figures["gain"].save(tmp_path / "gain.png")
    shown, size = figures["gain"]._repr_png_()
    for data in ((tmp_path / "gain.png").read_bytes(), shown):
        assert len(data) <= 150_000
        with Image.open(BytesIO(data)) as image:
            assert size["width"] <= 830 and image.width >= 1.9 * size["width"]
            assert len(image.convert("L").getcolors()) > 20  # something was drawn


def test_committed_figures_are_small():
    for path in RESULTS.rglob("*.png"):
        assert path.stat().st_size <= 150_000, path


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=9), st.floats(0.01, 2.0))
def test_spread_keeps_the_order_and_the_distance(values, gap):
    moved = spread(values, gap)
    order = np.argsort(values, kind="stable")
    assert (np.diff(moved[order]) >= gap - 1e-9).all()
    if len(values) > 1 and np.diff(np.sort(values)).min() >= gap:
        assert np.allclose(moved, values)  # nothing moves that has room
    assert np.mean(moved) == pytest.approx(np.mean(values), abs=1e-6)


def test_labels_find_room_where_lines_and_points_meet():
    figure, axes = new_figure(3.0, 2)
    ends = {name: (0.5 + place / 1000, "black") for place, name in enumerate("abcdef")}
    points = {f"point {place}": (0.5 + place / 1000, 0.5, "black") for place in range(5)}
    placed = [*label_ends(axes[0, 0], ends), *label_points(axes[0, 1], points)]
    figure.draw_without_rendering()
    for one, other in combinations(placed, 2):
        assert not core(one).overlaps(core(other))


def test_the_climb_starts_with_the_root_alone():
    incident = sample_incident("cascading_failure", "train", 0)
    moments = incident_plots.climb(incident)
    ill = [
        incident_plots.ill_services(incident.topology, incident.untreated[tick]) for tick in moments
    ]
    assert ill[:2] == [set(), {incident.root}] and len(ill[2]) > 1
    assert list(moments)[-1] == incident.arrival
    assert "the root alone is ill" in list(moments.values())[1]
    figure = cluster(incident)
    rings = [
        max(dot.get_linewidths()[0] for dot in ax.collections if len(dot.get_offsets()) == 1)
        for ax in figure.axes
    ]
    assert len(figure.axes) == len(moments) and set(rings) == {3.5}
    shares = [one.get_text() for one in figure.axes[1].texts if one.get_text().strip()]
    at = incident.topology.position[incident.root]
    errors = incident.untreated[list(moments)[1]].errors[at]
    assert shares == [f"{100 * errors:.0f} %"]  # one service says something: the root
    assert set(incident.topology.names) <= {
        text.get_text().replace("\n", "") for text in figure.axes[0].texts
    }
    assert "thick ring: the root" in said(figure)


def test_a_false_alarm_has_no_climb_and_no_ring():
    incident = sample_incident("silent_degradation", "test", 1)
    assert incident.root is None
    assert list(incident_plots.climb(incident)) == [0, incident.arrival]
    assert "ring" not in said(cluster(incident))


def test_doing_nothing_shows_under_the_other_lines():
    incident = sample_incident("cascading_failure", "train", 0)
    ax = healing(incident).axes[0]
    nothing, symptom, root = (line for line in ax.lines if len(line.get_xdata()) > 2)
    assert nothing.get_linewidth() > 2 * max(symptom.get_linewidth(), root.get_linewidth())
    assert nothing.get_zorder() <= symptom.get_zorder()  # drawn first, so below
    assert np.allclose(nothing.get_ydata(), 100 * np.array(user_errors(incident)))
    assert root.get_ydata()[-1] < 1.0 < nothing.get_ydata()[-1]
    assert (root.get_xdata()[incident.arrival], root.get_xdata()[-1]) == (0.0, 5.0)  # minutes


def test_a_row_a_policy_and_its_interval(figures, frame):
    test = frame[frame.split == "test"]
    for ax, task in zip(figures["policies"].axes, TASKS, strict=True):
        for policy in ("loudest", "belief"):
            cell = mean_interval(test[(test.task == task) & (test.policy == policy)]["score"])
            interval, dot = lines_of(ax, POLICY_COLOURS[policy])
            assert list(interval.get_xdata()) == [cell.low, cell.high]
            assert list(dot.get_xdata()) == [cell.mean]
    rows = [label.get_text() for label in figures["policies"].axes[0].get_yticklabels()]
    assert rows == [*test["policy"].unique(), "somebody else's,\non another world"]


def test_profiles_are_the_shares_of_each_part(figures, frame):
    rows = frame[(frame.split == "test") & (frame.task == "cascading_failure")]
    image = figures["profiles"].axes[1].images[0].get_array()
    trace = rows[rows.policy == "trace"][list(PARTS)].mean()
    assert np.allclose(image[list(dict.fromkeys(rows["policy"])).index("trace")], trace)


def test_bars_of_the_audit_are_the_shares_of_the_verdicts(figures):
    frame = pd.read_parquet(BENCHMARK / "audit.parquet")
    policies = list(dict.fromkeys(frame["policy"]))
    labels = figures["audit"].axes[0].get_yticklabels()
    assert [label.get_text() for label in labels] == policies
    for ax, task in zip(figures["audit"].axes, TASKS, strict=True):
        for row, policy in enumerate(policies):
            part = frame[(frame.task == task) & (frame.policy == policy)]["verdict"]
            end = 0.0
            for verdict, colour in VERDICT_COLOURS.items():
                (bar,) = (
                    one
                    for one in ax.patches
                    if to_hex(one.get_facecolor()) == colour.lower()
                    and round(one.get_y() + one.get_height() / 2) == row
                )
                assert bar.get_width() == pytest.approx((part == verdict).mean())
                assert bar.get_x() == pytest.approx(end)
                end += bar.get_width()
            assert end == pytest.approx(1.0)  # every episode has a verdict
    key = [text for text in figures["audit"].texts if text.get_text() == "\N{BLACK SQUARE}"]
    assert [to_hex(text.get_color()).upper() for text in key] == list(VERDICT_COLOURS.values())


def test_splits_are_not_joined(figures, frame):
    ax = figures["splits"].axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()][2] == "unseen faults"
    dots = [line for line in lines_of(ax, POLICY_COLOURS["trace"]) if line.get_marker() == "o"]
    rows = frame[(frame.task == "single_crash") & (frame.policy == "trace")]
    means = rows.groupby("split", sort=False)["score"].mean()
    assert [float(dot.get_xdata()[0]) for dot in dots] == pytest.approx(list(means))
    assert {len(dot.get_xdata()) for dot in dots} == {1}


def test_price_is_score_against_steps(figures, frame):
    rows = frame[(frame.split == "test") & (frame.task == "silent_degradation")]
    dots = lines_of(figures["price"].axes[2], POLICY_COLOURS["trace"])
    rows = rows[rows.policy == "trace"]
    assert (dots[-1].get_xdata()[0], dots[-1].get_ydata()[0]) == pytest.approx(
        (rows["steps"].mean(), rows["score"].mean())
    )


def test_hops_are_those_of_the_table_and_few_episodes_are_left_out(figures):
    table, ax = read_table(BENCHMARK, "hops"), figures["hops"].axes[0]
    (line,) = lines_of(ax, POLICY_COLOURS["trace"])
    part = table[(table.policy == "trace") & (table["size"] >= 20)]
    assert list(line.get_xdata()) == list(part["hops"])
    assert list(line.get_ydata()) == list(part["mean"])
    assert {"trace", "belief", "loudest"} <= set(said(figures["hops"]).split("\n"))


def test_only_roots_that_occur_have_a_row(figures):
    rows = [label.get_text() for label in figures["confusion"].axes[0].get_yticklabels()]
    assert "user-db" in rows and "nothing wrong" not in rows


def test_reliability_shows_the_task_in_doubt(figures):
    left, right = figures["reliability"].axes
    assert "silent degradation" in right.get_title()
    openings = pd.read_parquet(BENCHMARK / "openings.parquet")
    part = openings[openings.task == "silent_degradation"]
    counts = [int(one.get_text()) for one in right.texts if one.get_text().isdigit()]
    assert sum(counts) == len(part)
    heights = sum(bar.get_height() for bar in left.patches)
    assert heights == pytest.approx(3 * 0.75)  # every opening of every task is in a bar


def test_one_seed_is_said_to_be_one(figures):
    for name in ("learning", "checkpoints", "gain", "strata"):
        assert "one training seed" in said(figures[name])
        assert "3 training seeds" in said(figures[f"{name}, three seeds"])


def test_every_seed_is_a_faint_line_and_their_mean_a_strong_one(figures, run):
    seeds = three_seeds(run[0])
    for task, colour in TASK_COLOURS.items():
        lines = lines_of(figures["learning, three seeds"].axes[0], colour)
        if task not in TASKS:
            assert not lines
            continue
        *faint, strong = lines
        assert len(faint) == 3 and strong.get_linewidth() > 2 * faint[0].get_linewidth()
        assert strong.get_label() == words(task)
        own = [table[table.task == task].groupby("step")["score"].mean() for table in seeds]
        window = learning_plots.WINDOW
        means = pd.concat(own, axis=1).mean(axis=1)
        means = means.rolling(window, min_periods=1, center=True).mean()
        assert strong.get_ydata() == pytest.approx(means.to_numpy())
        assert strong.get_xdata()[-1] == len(run[0])


def test_gain_is_the_published_summary(figures):
    right = figures["gain"].axes[1]
    for row, cell in enumerate(json.loads((RUN / "summary.json").read_text())):
        for policy in ("base", "trained"):
            interval = lines_of(right, POLICY_COLOURS[policy])[2 * row]
            assert list(interval.get_xdata()) == pytest.approx(cell[policy][1:])
            assert f"{policy} {cell[policy][0]:.2f}" in said(figures["gain"])
        (bar,) = lines_of(right, POLICY_COLOURS["trace"])[row : row + 1]
        assert bar.get_xdata()[0] == pytest.approx(cell["trace"])
    assert said(figures["gain"]).count("belief") == 3
    names = {text.get_text() for text in right.texts}
    assert {words(task) for task in TASKS} <= names


def test_checkpoints_start_at_the_base(figures, run):
    _, checkpoints, evaluation = run
    ax = figures["checkpoints"].axes[1]
    same = evaluation[evaluation["index"].isin(set(checkpoints["index"]))]
    base = same[(same.policy == "base") & (same.task == "cascading_failure")]["score"].mean()
    line = max(lines_of(ax, POLICY_COLOURS["trained"]), key=lambda one: one.get_linewidth())
    assert (line.get_xdata()[0], line.get_ydata()[0]) == (0.0, pytest.approx(base))
    assert len(line.get_xdata()) == 1 + checkpoints["step"].nunique()


def test_parts_are_the_share_earned_before_and_after(figures, run):
    rows = run[2][run[2].task == "cascading_failure"]
    ax = figures["parts"].axes[1]
    for policy in ("base", "trained"):
        dots = [one for one in lines_of(ax, POLICY_COLOURS[policy]) if one.get_marker() == "o"]
        means = rows[rows.policy == policy][list(PARTS)].mean()
        assert [float(dot.get_xdata()[0]) for dot in dots] == pytest.approx(list(means))
    labels = [label.get_text() for label in figures["parts"].axes[0].get_yticklabels()]
    assert labels[:2] == ["severity (0.20)", "root cause (0.35)"]


def test_strata_are_joined_dots_and_what_got_worse_is_marked(figures, run):
    frame = run[2]
    changes = stratum_changes(*(frame[frame.policy == name] for name in ("base", "trained")))
    for ax, task in zip(figures["strata"].axes, TASKS, strict=True):
        texts = figures["strata"].axes[0].get_yticklabels()
        rows = {y: one.get_text() for y, one in zip(ax.get_yticks(), texts, strict=True)}
        own = changes[(changes.task == task) & (changes.stratum != "steps")]
        own = {label_of(row.stratum, row.group): row for row in own.itertuples()}
        drawn = {}
        for line in ax.lines:
            if line.get_marker() == "None":
                drawn[rows[line.get_ydata()[0]]] = line
        for name, line in drawn.items():
            row = own[name]
            assert tuple(line.get_xdata()) == pytest.approx((row.base, row.trained))
            assert (to_hex(line.get_color()) == INK) == row.fell, (task, name)
        shown = {name for name in own if name in rows.values()}
        assert drawn.keys() == shown and "real faults detected" in shown
        marked = [text for text in ax.texts if text.get_text() == "worse"]
        assert len(marked) == sum(own[name].fell for name in shown)
    assert {"base", "trained"} <= set(said(figures["strata"]).split("\n"))


def test_strata_show_every_seed(figures):
    for name, seeds in (("strata", 0), ("strata, three seeds", 3)):
        ax = figures[name].axes[0]
        faint = [line for line in lines_of(ax, POLICY_COLOURS["trained"]) if line.get_alpha()]
        assert {len(line.get_xdata()) for line in faint} == ({seeds} if seeds else set())


def test_small_samples_stray_less_the_larger_they_are(figures):
    bars = [line.get_ydata() for line in figures["small samples"].axes[0].lines[:5]]
    widths = [high - low for low, high in bars]
    assert widths == sorted(widths, reverse=True) and all(low < 0 < high for low, high in bars)
