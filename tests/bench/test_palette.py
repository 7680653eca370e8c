"""Colours that can be told apart, by whoever looks: measured with the standard models of sight."""

from itertools import combinations, product

import numpy as np
import pytest

from logtriage.bench.audit import VERDICTS
from logtriage.bench.palette import OTHER_MODEL, POLICY_COLOURS, TASK_COLOURS, VERDICT_COLOURS
from logtriage.world.tasks import ALL_TASKS

# Machado, Oliveira and Fernandes 2009, severity 1.0: linear RGB as a dichromat sees it.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# Linear sRGB to XYZ, and the white of D65 (IEC 61966-2-1).
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = XYZ @ np.ones(3)
PALETTES = ({**POLICY_COLOURS, "model": OTHER_MODEL}, TASK_COLOURS, VERDICT_COLOURS)
APART = 18.0  # CIE 1976 distance; 2.3 is just noticeable, 18 is plain in a dot of five points


def linear(colour):
    encoded = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE L*a*b* of linear sRGB."""
    share = XYZ @ np.clip(rgb, 0.0, 1.0) / WHITE
    dark = (24389 / 27 * share + 16.0) / 116.0
    x, y, z = np.where(share > 216 / 24389, np.cbrt(share), dark)
    return np.array([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)])


def distance(one, other, sight="normal"):
    matrix = np.array(SIGHT[sight])
    return float(np.linalg.norm(lab(matrix @ linear(one)) - lab(matrix @ linear(other))))


def test_the_measure_knows_what_dichromats_confuse():
    assert distance("#000000", "#FFFFFF") == pytest.approx(100.0, abs=0.5)
    red, green = "#CC4444", "#609040"  # plainly two colours, but not to deuteranopes
    assert distance(red, green) > 40.0 and distance(red, green, "deuteranopia") < APART


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("palette", PALETTES)
def test_any_two_colours_of_a_palette_can_be_told_apart(palette, sight):
    for one, other in combinations(palette, 2):
        assert distance(palette[one], palette[other], sight) > APART, (one, other)


def test_no_colour_has_two_meanings():
    assert set(TASK_COLOURS) == set(ALL_TASKS) and tuple(VERDICT_COLOURS) == VERDICTS
    for one, other in combinations(PALETTES, 2):
        for name, second in product(one, other):
            assert distance(one[name], other[second]) > APART, (name, second)


@pytest.mark.parametrize("colour", [*POLICY_COLOURS.values(), OTHER_MODEL, *TASK_COLOURS.values()])
def test_every_colour_is_seen_on_white(colour):
    # WCAG 2.2, 1.4.11: graphics and large text need a contrast of 3
    assert 1.05 / (XYZ[1] @ linear(colour) + 0.05) >= 3.0
