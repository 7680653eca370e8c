"""What all figures share: colours, size, how they are saved, and labels beside the data.

A colour has one meaning in the whole repository: a policy or a task. Figures are `WIDTH`
inches wide, the width of a README column (about 830 pixels), so that a font of 8 points is 8 points
there; they are saved with twice the pixels, for sharp screens.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from scipy.optimize import isotonic_regression

from .intervals import Interval

WIDTH = 8.6
DPI = 190
SMALL = 8.5  # points, of every text that is not a title or an axis label; none is smaller

POLICY_COLOURS = {
    "random": "#949494",
    "constant": "#B05CD6",
    "loudest": "#C76C00",
    "novice": "#663300",
    "trace": "#2E9E5B",
    "belief": "#580063",
    "oracle": "#000000",
    "unexplained": "#C8102E",  # this project's rule for real incidents
    "ranker": "#1F5BFF",  # learned from simulated incidents alone, as the trained agent is
    "ceiling": "#580063",  # the posterior of `production`, as `belief` is of the other tasks
    "base": "#5F5A63",  # the embedded model before training ...
    "trained": "#1F5BFF",  # ... and after
    "agent": "#1F5BFF",  # the trained one that is in the package
}
OTHER_MODEL = "#331199"  # a model that a reader has brought; its row says which
TASK_COLOURS = {
    "single_crash": "#0698CA",
    "cascading_failure": "#D6219C",
    "silent_degradation": "#9B8804",
}
UNIT = np.linspace(0.0, 1.0, 6)  # ticks of a score or share
INK, FAINT = "#222222", "#B8B8B8"  # what is neither policy nor task


def policy_colour(name: str) -> str:
    """The colour of a policy, by its name in rollout frames; one for all models not listed."""
    return POLICY_COLOURS.get(name, OTHER_MODEL)


def words(name: str) -> str:
    """An identifier as a label: `silent_degradation` is "silent degradation"."""
    return name.replace("_", " ")


class Picture(Figure):
    """A figure that a notebook shows by itself, without pyplot and its global state."""

    def png(self) -> bytes:
        """The figure as PNG of at most 128 colours: a third of the bytes, and no eye can tell."""
        pixels, small = BytesIO(), BytesIO()
        self.savefig(pixels, format="png")
        image = Image.open(pixels).convert("RGB")
        image.quantize(128, dither=Image.Dither.NONE).save(small, format="png", optimize=True)
        return small.getvalue()

    def save(self, path: str | Path) -> None:
        """Write `png` to a file."""
        Path(path).write_bytes(self.png())

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.png(), {"width": round(96 * self.get_figwidth())}


def new_figure(height: float, columns: int = 1, **options: Any) -> tuple[Picture, np.ndarray]:
    """An empty figure of `WIDTH` by `height` inches, and its axes (1, columns); `options` are those
    of `Figure.subplots`.
    """
    figure = Picture(figsize=(WIDTH, height), layout="constrained", dpi=DPI)
    axes = figure.subplots(1, columns, squeeze=False, **options)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize=9)
    return figure, axes


def spread(values: Sequence[float], gap: float) -> np.ndarray:
    """`values` moved as little as possible (least squares) so that neighbours are `gap` apart."""
    wanted = np.asarray(values, dtype=float)
    order, shifts = np.argsort(wanted, kind="stable"), gap * np.arange(len(wanted))
    moved = np.empty_like(wanted)
    moved[order] = isotonic_regression(wanted[order] - shifts).x + shifts
    return moved


def label_ends(
    ax: Axes, ends: Mapping[str, tuple[float, str]], weight: str = "normal"
) -> list[Text]:
    """Names to the right of an axes, each at the height where its line ends, none on another.

    Args:
        ax: finished axes; its limits must not change afterwards.
        ends: label to the height in data units, and the colour.
    """
    figure = ax.get_figure(root=True)
    assert figure is not None  # every axes here was made by a figure
    figure.draw_without_rendering()  # only now does the axes have its height
    lines = max((label.count("\n") for label in ends), default=0) + 1
    points = ax.get_window_extent().height * 72.0 / figure.dpi
    low, high = ax.get_ylim()
    heights = spread([y for y, _ in ends.values()], 1.3 * lines * 9 / points * (high - low))
    style: dict[str, Any] = {"va": "center", "fontsize": 9, "weight": weight}
    style |= {"xycoords": ax.get_yaxis_transform(), "annotation_clip": False}
    style |= {"xytext": (6, 0), "textcoords": "offset points"}
    return [
        ax.annotate(label, (1.0, y), color=colour, **style)
        for (label, (_, colour)), y in zip(ends.items(), heights, strict=True)
    ]


def draw_interval(ax: Axes, x: Interval, y: float, colour: str, **style: Any) -> None:
    """A dot at the mean and a line over the 95 % interval, at height `y`."""
    ax.plot([x.low, x.high], [y, y], color=colour, lw=1.6, zorder=3, solid_capstyle="butt")
    ax.plot([x.mean], [y], color=colour, zorder=4, **{"marker": "o", "ms": 6.0, **style})
