"""When it began: found where it is, and not where nothing is."""

from random import Random

import pytest
from shop_log import ONSET, START, calm, log_of, trouble

from logreader.levels import CALM, ERROR, WARN
from logreader.tally import Shape, Tally
from logreader.window import SLOTS, find_window, slots_of

SLOT = 30  # seconds, of the noise below


def noise(kinds=20, rate=0.5, bursty=False, injected=None, seed=0):
    """An hour of a service's calm lines, and trouble of some kinds at random: `rate` a minute on
    average. `injected` is (first slot, last, kinds, lines a slot).
    """
    random = Random(f"window/{seed}")
    made = Tally(services=[*"abcde"])
    made.shapes = [Shape(kind % 5, WARN, kind, "x", (0, 0)) for kind in range(kinds)]
    made.shapes.append(Shape(0, CALM, kinds, "x", (0, 0)))
    made.counts = {(START + second, kinds): 3 for second in range(3600)}
    for kind in range(kinds):
        usual = rate * random.expovariate(1.0)
        for slot in range(3600 // SLOT):
            level = random.choice((0.2, 0.2, 1.0, 1.0, 3.0)) if bursty else 1.0
            lines, waited = 0, random.expovariate(1.0)
            while waited < usual * level * SLOT / 60:
                lines, waited = lines + 1, waited + random.expovariate(1.0)
            if injected and injected[0] <= slot < injected[1] and kind < injected[2]:
                lines += injected[3]
            if lines:
                made.counts[START + slot * SLOT + random.randrange(SLOT), kind] = lines
    return made


@pytest.mark.parametrize("bursty", [False, True])
@pytest.mark.parametrize(("kinds", "rate"), [(3, 0.05), (20, 0.5), (60, 0.1)])
def test_noise_has_no_window(kinds, rate, bursty):
    assert [find_window(noise(kinds, rate, bursty, seed=seed)) for seed in range(4)] == [None] * 4


@pytest.mark.parametrize(("first", "last"), [(60, 120), (70, 90), (110, 120)])
def test_new_trouble_has_a_window_where_it_is(first, last):
    for seed in range(3):
        window = find_window(noise(injected=(first, last, 2, 3), seed=seed))
        begins, ends = START + first * SLOT, START + last * SLOT
        assert abs(window.start - begins) <= 2 * SLOT and abs(window.end - ends) <= 4 * SLOT
        assert window.open == (last == 120)
        assert window.usual[1] == window.start


def test_a_log_that_begins_in_trouble_is_told_from_what_comes_after():
    window = find_window(noise(injected=(0, 30, 3, 4)))
    assert window.usual[0] == window.end and not window.open


def test_it_begins_at_the_first_line_that_is_new():
    rows = calm() + trouble("web", "it failed", start=ONSET + 17)
    assert find_window(log_of(rows).tally).start == START + ONSET + 17


@pytest.mark.parametrize(("busier", "begins"), [(4, None), (1, START + 2400)])
def test_a_busy_hour_is_no_bad_hour(busier, begins):
    # Errors that grow as everything does are no incident.
    made = Tally(services=["web"])
    made.shapes = [Shape(0, level, level, "x", (0, 0)) for level in (CALM, ERROR)]
    for minute in range(60):
        late = minute >= 40
        made.counts[START + minute * 60, 0] = 100 * (busier if late else 1)
        made.counts[START + minute * 60, 1] = 20 if late else 5
    window = find_window(made)
    assert (window.start if window else None) == begins


@pytest.mark.parametrize(("level", "expected"), [("WARN", False), ("FATAL", True)])
def test_one_line_makes_a_window_only_if_it_is_fatal(level, expected):
    rows = [*calm(), (3500, level, "web", "gone")]
    assert (find_window(log_of(rows).tally) is not None) == expected


@pytest.mark.parametrize("stray", [10, 2_000_000_000, START - 86_400, START + 86_400])
def test_times_far_from_the_others_do_not_stretch_the_log(stray):
    tally = noise()
    tally.counts[stray, 0] = 1
    slots = slots_of(tally)
    assert slots.start >= START and slots.number <= SLOTS
    assert slots.start + slots.number * slots.width <= START + 3660
