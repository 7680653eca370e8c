"""What the two figures of a sweep show of it."""

from itertools import combinations

import pytest
from made_up_sweeps import EPISODES_A_STEP, make_points
from matplotlib.colors import to_hex
from test_plots import core, lines_of, said, texts

from logtriage.bench.analysis import TRAINING, gather, rows_of, scores_of
from logtriage.bench.crossed import crossed_mean
from logtriage.bench.figure import SMALL, WIDTH
from logtriage.bench.palette import FAINT, INK, POLICY_COLOURS
from logtriage.bench.sweep_plots import plot_learning, plot_seeds
from logtriage.world.tasks import TASKS

SKILLS = {"worse": 0.4, "recipe": 0.7, "better": 0.9}
TRAINED = POLICY_COLOURS["trained"]


@pytest.fixture(scope="module")
def frame(tmp_path_factory):
    folder, seeds = tmp_path_factory.mktemp("sweep"), {"worse": 2, "recipe": 3, "better": 3}
    return gather(make_points(folder, SKILLS, seeds, incidents=20))


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A sweep of twenty rows."""
    skills = {f"a_setting_{place}": 0.2 + 0.04 * place for place in range(20)}
    folder = tmp_path_factory.mktemp("wide")
    return gather(make_points(folder, skills, seeds=2, incidents=4, steps=10))


@pytest.fixture(scope="module")
def figures(frame, wide):
    """Both figures, of a small sweep and of one of twenty rows."""
    drawn = {
        ("learning", "small"): plot_learning(frame, "recipe"),
        ("learning", "wide"): plot_learning(wide, "a_setting_5"),
        ("seeds", "small"): plot_seeds(frame, "recipe"),
        ("seeds", "wide"): plot_seeds(wide, "a_setting_5"),
        ("seeds", "alone"): plot_seeds(wide),
    }
    for figure in drawn.values():
        figure.draw_without_rendering()
    return drawn


def test_figures_can_be_read_at_readme_width(figures):
    for name, figure in figures.items():
        assert figure.get_figwidth() <= WIDTH and len(figure.png()) < 150_000, name
        page, boxes = figure.bbox.padded(1.0), []
        for text in texts(figure):
            assert text.get_fontsize() >= min(8.0, SMALL), (name, text.get_text())
            box = core(text)
            assert page.x0 <= box.x0 and box.x1 <= page.x1, (name, text.get_text())
            if not text.get_rotation() % 90:
                boxes.append((text.get_text(), box))
        for (one, box), (other, second) in combinations(boxes, 2):
            assert not box.overlaps(second), (name, one, other)
        assert "(0 to 1" in said(figure)


def named_lines(ax):
    return {line.get_label(): line for line in ax.lines if not line.get_label().startswith("_")}


def test_learning_is_a_line_a_row(figures, frame):
    for ax, task in zip(figures["learning", "small"].axes, TASKS, strict=True):
        lines = named_lines(ax)
        assert list(lines) == list(SKILLS)
        assert to_hex(lines["recipe"].get_color()) == TRAINED.lower()
        assert {to_hex(lines[row].get_color()) for row in ("worse", "better")} == {INK}
        assert lines["worse"].get_linestyle() != lines["better"].get_linestyle()
        own = frame[(frame.row == "better") & (frame.task == task) & (frame.policy == "training")]
        # A mean over seeds of running means; far from the ends it is about the plain mean.
        last = own[own.step > 20]["score"].mean()
        assert lines["better"].get_ydata()[-5:].mean() == pytest.approx(last, abs=0.08)
        assert lines["better"].get_xdata()[-1] == 30 * EPISODES_A_STEP
        faint = [line for line in ax.lines if line.get_alpha()]
        assert len(faint) == 2 + 3 + 3  # a line a seed


def test_of_many_rows_the_best_the_worst_and_the_recipe_are_named(figures):
    figure = figures["learning", "wide"]
    told = said(figure)
    assert "a setting 5" in told and ", best" in told and ", worst" in told
    assert "grey: the other 17 rows" in told
    for ax in figure.axes:
        lines = named_lines(ax)
        colours = [to_hex(line.get_color()) for line in lines.values()]
        assert len(lines) == 20 and colours.count(FAINT.lower()) == 17
        assert colours.count(INK) == 2 and colours.count(TRAINED.lower()) == 1
        grey = [
            line.get_zorder()
            for line in lines.values()
            if to_hex(line.get_color()) == FAINT.lower()
        ]
        assert max(grey) < lines["a_setting_5"].get_zorder()


def test_a_row_that_never_trained_on_a_task_has_no_line_there(frame):
    # A sweep of a few steps of a few incidents may draw none of a task, for one seed or for all.
    lost = (frame["policy"] == TRAINING) & (frame["task"] == list(TASKS)[-1])
    of_row = {row: lost & (frame["row"] == row) for row in SKILLS}
    one = plot_learning(frame[~(of_row["worse"] & (frame["seed"] == 1)) & ~of_row["better"]])
    assert [list(named_lines(ax)) for ax in one.axes] == [
        *[list(SKILLS)] * (len(TASKS) - 1),
        ["worse", "recipe"],
    ]
    everybody = plot_learning(frame[~lost])
    assert [len(named_lines(ax)) for ax in everybody.axes] == [3] * (len(TASKS) - 1) + [0]
    for figure in (one, everybody):
        figure.draw_without_rendering()


def test_every_seed_is_a_dot_and_the_recipe_a_line(figures, frame):
    figure = figures["seeds", "small"]
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == list(SKILLS)  # as given, from the top
    low, high = figure.axes[0].get_ylim()
    assert low > high
    for at, ax in enumerate(figure.axes):
        for y, row in enumerate(SKILLS):
            scores = scores_of(frame, row)[at]
            mine = [line for line in lines_of(ax, TRAINED) if set(line.get_ydata()) == {y}]
            seeds, interval, dot = mine
            assert seeds.get_alpha() < 0.5
            assert list(seeds.get_xdata()) == pytest.approx(list(scores.mean(axis=1)))
            cell = crossed_mean([scores])
            assert list(interval.get_xdata()) == [cell.low, cell.high]
            assert list(dot.get_xdata()) == [cell.mean]
        (upright,) = (line for line in ax.lines if to_hex(line.get_color()) == INK)
        recipe = scores_of(frame, "recipe")[at].mean()
        assert list(upright.get_xdata()) == pytest.approx([recipe, recipe])


def test_without_a_row_to_compare_with_there_is_no_line(figures, wide):
    for ax in figures["seeds", "alone"].axes:
        assert not [line for line in ax.lines if to_hex(line.get_color()) == INK]
    labels = [text.get_text() for text in figures["seeds", "wide"].axes[0].get_yticklabels()]
    assert labels == [row.replace("_", " ") for row in rows_of(wide)]
    assert "dashed" in said(figures["seeds", "wide"])
    assert "dashed" not in said(figures["seeds", "alone"])


@pytest.mark.parametrize("plot", [plot_learning, plot_seeds])
def test_a_row_that_is_not_there_is_refused(plot, frame):
    with pytest.raises(ValueError, match="no row 'best'"):
        plot(frame, against="best")
