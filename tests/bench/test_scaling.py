"""Laws of scaling, on scores that were made by a law that is known."""

import numpy as np
import pandas as pd
import pytest
from made_up_sweeps import make_ladder
from matplotlib.colors import to_hex
from test_plots import lines_of, said, texts

from logtriage.bench import scaling
from logtriage.bench.palette import POLICY_COLOURS

SIZES = (3e5, 1e6, 3e6, 1e7)
CEILING = 0.95


def made(gap, seeds=4, noise=0.01, incidents=0, random=None, sizes=SIZES):
    """Points whose mean misses `gap(size)` to the ceiling: seeds stray by `noise` (of the gap's
    logarithm), and, with `incidents`, these are as hard for all sizes.
    """
    random = random or np.random.default_rng(0)
    hard = 1.0 + random.uniform(-1, 1, incidents) if incidents else np.ones(1)
    rows = []
    for size in sizes:
        for seed in range(seeds):
            missed = gap(size) * np.exp(random.normal(0, noise))
            for index, share in enumerate(hard):
                rows.append((size, seed, "test", index, CEILING - missed * share))
    frame = pd.DataFrame(rows, columns=["parameters", "seed", "split", "index", "score"])
    frame = frame.assign(ceiling=CEILING, episodes=1000, cpu_seconds=2e-4 * frame["parameters"])
    return frame if incidents else frame.drop(columns=["split", "index"])


def power(size):
    return 3.0 * size**-0.2


def test_a_known_exponent_is_found():
    law = scaling.fit_law(made(power, random=np.random.default_rng(2)))
    assert law.b.low < 0.2 < law.b.high and law.b.high - law.b.low < 0.05
    assert law.a.low < 3.0 < law.a.high
    assert law.resampled == "seeds" and law.ceiling == pytest.approx(CEILING)
    exact = scaling.fit_law(made(power, noise=0.0))
    assert exact.b == pytest.approx((0.2, 0.2, 0.2)) and exact.a == pytest.approx((3.0, 3.0, 3.0))


@pytest.mark.parametrize("exponent", [0.2, 0.0])
def test_the_interval_holds_the_exponent_about_as_often_as_it_says(exponent):
    random, laws = np.random.default_rng(1), []
    for _ in range(40):
        points = made(lambda size: 0.3 * (size / 1e6) ** -exponent, noise=0.1, random=random)
        laws.append(scaling.fit_law(points))
    held = [law.b.low <= exponent <= law.b.high for law in laws]
    assert 0.85 <= np.mean(held) < 1.0  # 0.95 of 40, give or take


def test_flat_scores_have_no_exponent():
    law = scaling.fit_law(made(lambda size: 0.2, noise=0.05, random=np.random.default_rng(1)))
    assert law.b.low < 0.0 < law.b.high
    low, high = scaling.predict(law, [1e6])[["low", "high"]].iloc[0]
    assert low < CEILING - 0.2 < high


def test_incidents_are_resampled_for_all_sizes_together():
    few, many = (scaling.fit_law(made(power, incidents=count)) for count in (10, 400))
    assert few.resampled == "seeds and incidents"
    assert scaling.fit_law(made(power, seeds=1, incidents=10)).resampled == "incidents"
    # What is hard is hard for all sizes: the level is in doubt, the exponent is not.
    assert np.ptp(np.log(few.a)) > 2.0 * np.ptp(np.log(many.a))
    assert few.b == pytest.approx((0.2, 0.2, 0.2), abs=0.02)


def test_seeds_are_drawn_for_each_size():
    # With what one seed does the same at every size, draws for all together would find no doubt.
    points = made(power, noise=0.0)
    points["score"] -= 0.05 * points["seed"]
    law = scaling.fit_law(points)
    assert law.b.high - law.b.low > 0.1


def test_the_law_that_made_the_scores_is_favoured():
    sizes = (1e5, 3e5, 1e6, 3e6, 1e7, 3e7)
    for name, gap in (
        ("constant", lambda size: 0.2),
        ("power", power),
        ("saturating", lambda size: 0.15 + 900.0 * size**-0.7),
    ):
        law = scaling.fit_law(made(gap, noise=0.001, sizes=sizes))
        assert law.favoured == name, law.errors
        assert set(law.errors) == set(scaling.LAWS) and law.errors[name] < 0.002
    three = scaling.fit_law(made(power, sizes=SIZES[:3]))
    assert np.isnan(three.errors["saturating"]) and three.favoured == "power"


def test_the_error_is_of_sizes_that_were_left_out():
    sizes, gaps = np.array([1.0, 10.0, 100.0, 1000.0]), np.array([0.4, 0.2, 0.1, 0.5])
    constant = [gaps[i] - np.exp(np.log(np.delete(gaps, i)).mean()) for i in range(4)]
    assert scaling._left_out_error("constant", sizes, gaps) == pytest.approx(
        np.sqrt(np.mean(np.square(constant)))
    )
    lines = [
        np.polyfit(np.log(np.delete(sizes, i)), np.log(np.delete(gaps, i)), 1) for i in range(4)
    ]
    errors = [np.exp(np.polyval(line, np.log(sizes[i]))) - gaps[i] for i, line in enumerate(lines)]
    assert scaling._left_out_error("power", sizes, gaps) == pytest.approx(
        np.sqrt(np.mean(np.square(errors)))
    )


def test_predictions_hold_a_new_size_and_widen_beyond_the_measured():
    random, held = np.random.default_rng(3), 0
    for _ in range(30):
        noisy = made(power, noise=0.1, random=random, sizes=(*SIZES, 1e8))
        law = scaling.fit_law(noisy[noisy.parameters < 1e8])
        new = noisy[noisy.parameters == 1e8]["score"].mean()
        low, high = scaling.predict(law, [1e8])[["low", "high"]].iloc[0]
        held += low <= new <= high
    assert held >= 26
    table = scaling.predict(law, [1e6, 1e8, 1e10])
    widths = np.log(CEILING - table["low"]) - np.log(CEILING - table["high"])
    assert list(widths) == sorted(widths) and widths[0] < widths[2]
    assert (table["low"] <= table["score"]).all() and (table["score"] <= table["high"]).all()
    assert (table["high"] < CEILING).all()  # a law of what is missing never passes the ceiling


def test_an_extrapolation_says_how_far_it_goes():
    table = scaling.extrapolation(scaling.fit_law(made(power)))
    assert list(table["parameters"]) == [7e9, 32e9]
    assert list(table["factor"]) == pytest.approx([700.0, 3200.0])
    assert list(scaling.extrapolation(scaling.fit_law(made(power)), [1e7])["factor"]) == [1.0]


def test_other_costs_can_be_what_the_law_is_of():
    points = made(power)
    points["cpu_seconds"] += points["seed"]  # sizes are told by their parameters, not by this
    law = scaling.fit_law(points, by="cpu_seconds")
    assert law.by == "cpu_seconds" and list(law.sizes) == pytest.approx(
        [61.5, 201.5, 601.5, 2001.5]
    )
    assert law.b.mean == pytest.approx(0.2, abs=0.02)
    assert "cpu seconds from 62 to 2,002" in str(law) and "(seeds resampled)" in str(law)


def test_what_is_no_ladder_is_refused():
    points = made(power)
    for wrong, message in (
        (points[points.parameters < 3e6], "3 different parameters"),
        (points.assign(score=CEILING), "ceiling is reached"),
        (points.drop(columns="ceiling"), r"need the columns \['ceiling'\]"),
        (points[points.seed == 0], "nothing to resample"),
    ):
        with pytest.raises(ValueError, match=message):
            scaling.fit_law(wrong)
    with pytest.raises(ValueError, match="3 different episodes"):
        scaling.fit_law(points, by="episodes")
    many = made(power, incidents=4)
    with pytest.raises(ValueError, match="have other incidents"):
        scaling.fit_law(many.drop(index=many.index[0]))
    with pytest.raises(ValueError, match=r"1,000,000 parameters have others than 300,000"):
        scaling.fit_law(many[(many.parameters > 3e5) | (many["index"] < 3)])
    largest = many.parameters == 1e7
    for others in (  # as many, but others
        many.assign(index=many["index"] + 10 * largest),
        many.assign(split=np.where(largest, "train", "test")),
        many.assign(task=np.where(largest, "single_crash", "silent_degradation")),
    ):
        with pytest.raises(ValueError, match=r"10,000,000 parameters have others than 300,000"):
            scaling.fit_law(others)


@pytest.fixture(scope="module")
def ladder(tmp_path_factory):
    folder = make_ladder(tmp_path_factory.mktemp("ladder"), seeds=2, incidents=30)
    return [pd.read_parquet(folder / f"{name}.parquet") for name in ("episodes", "points")]


def test_points_know_their_size_their_cost_and_the_ceiling(ladder):
    frame, sizes = ladder
    points = scaling.sized_scores(frame, sizes)
    assert len(points) == 4 * 2 * 3 * 30
    one = points[(points.row == "3M") & (points.seed == 1)]
    size = sizes[(sizes.row == "3M") & (sizes.seed == 1)].iloc[0]
    assert set(one["parameters"]) == {size["parameters"]}
    assert set(one["cpu_seconds"]) == {size["cpu_seconds"] + size["base_cpu_seconds"]}
    best = frame[(frame.policy == "belief") & (frame.task == "single_crash")]
    ceiling = one[one.task == "single_crash"].sort_values("index")["ceiling"]
    assert list(ceiling) == list(best.sort_values("index")["score"])
    law = scaling.fit_law(points)
    assert law.resampled == "seeds and incidents" and law.b.low < law.b.mean < law.b.high
    means = points.groupby("parameters")[["ceiling", "score"]].mean()
    assert list(law.gaps) == pytest.approx(list(means["ceiling"] - means["score"]))
    with pytest.raises(ValueError, match=r"10M seed 0, .* has not a size"):
        scaling.sized_scores(frame, sizes[sizes.row != "10M"])
    with pytest.raises(ValueError, match="has not the score of belief"):
        scaling.sized_scores(frame[frame.policy != "belief"], sizes)


def test_the_figure_shows_seeds_sizes_the_law_and_the_ceiling(ladder):
    points = scaling.sized_scores(*ladder)
    for by in ("parameters", "cpu_seconds"):
        law = scaling.fit_law(points, by=by)
        figure = scaling.plot_scaling(points, law)
        figure.draw_without_rendering()
        ax = figure.axes[0]
        assert ax.get_xscale() == "log"
        line, seeds, sizes = lines_of(ax, POLICY_COLOURS["trained"])
        assert len(seeds.get_xdata()) == 8 and seeds.get_alpha() < 0.5
        assert list(sizes.get_xdata()) == list(law.sizes)
        assert list(sizes.get_ydata()) == pytest.approx(list(law.ceiling - law.gaps))
        middle = scaling.predict(law, line.get_xdata())
        assert list(line.get_ydata()) == pytest.approx(list(middle["score"]))
        (band,) = ax.collections
        corners = band.get_paths()[0].vertices[:, 1]
        assert corners.min() == pytest.approx(middle["low"].min())
        (ceiling,) = (
            one for one in ax.lines if to_hex(one.get_color()) == POLICY_COLOURS["belief"]
        )
        assert set(ceiling.get_ydata()) == {law.ceiling}
        told = said(figure)
        assert "belief" in told and f"b = {law.b.mean:.2f}" in told and "0 to 1" in told
        ticks = [label.get_text() for label in ax.get_xticklabels()]
        if by == "parameters":
            assert ticks == ["289k", "970k", "2.9M", "9.9M"]
        assert all(text.get_fontsize() >= 8.0 for text in texts(figure))
