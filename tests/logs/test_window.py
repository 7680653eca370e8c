"""When it began: found where it is, and not where nothing is."""

from random import Random

import pytest

from logtriage.logs.levels import CALM, FATAL, WARN
from logtriage.logs.tally import Shape, Tally
from logtriage.logs.window import find_window, slots_of, span

START = 1_795_316_000
SLOT = 30  # seconds, of the noise below


def tally(kinds=20, rate=0.5, bursty=False, injected=None, seed=0):
    """An hour of a service's calm lines, and trouble of some kinds at random: `rate` a minute on
    average. `injected` is (first slot, last, kinds, lines a slot).
    """
    random = Random(f"window/{seed}")
    made = Tally(lambda text: "")
    made.services = [f"s{i}" for i in range(5)]
    made.shapes = [Shape(WARN, i + 1, "", "x", (0, 0)) for i in range(kinds)]
    made.shapes.append(Shape(CALM, 0, "", "x", (0, 0)))
    for second in range(3600):
        made.counts[START + second, 0, kinds] = 3
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
                key = (START + slot * SLOT + random.randrange(SLOT), kind % 5, kind)
                made.counts[key] = made.counts.get(key, 0) + lines
    return made


@pytest.mark.parametrize("bursty", [False, True])
@pytest.mark.parametrize(("kinds", "rate"), [(3, 0.05), (20, 0.5), (60, 0.1)])
def test_noise_has_no_window(kinds, rate, bursty):
    found = [tally(kinds, rate, bursty, seed=seed) for seed in range(4)]
    assert [find_window(one, slots_of(one)) for one in found] == [None] * 4


@pytest.mark.parametrize(("first", "last"), [(60, 120), (70, 90), (110, 120)])
def test_new_trouble_has_a_window_where_it_is(first, last):
    for seed in range(3):
        one = tally(injected=(first, last, 2, 3), seed=seed)
        window = find_window(one, slots_of(one))
        begins, ends = START + first * SLOT, START + last * SLOT
        assert abs(window.start - begins) <= 2 * SLOT and abs(window.end - ends) <= 4 * SLOT
        assert window.open == (last == 120) and not window.begins_log
        assert window.usual[1] == window.start


def test_a_log_that_begins_in_trouble_is_told_from_what_comes_after():
    one = tally(injected=(0, 30, 3, 4))
    window = find_window(one, slots_of(one))
    assert window.begins_log and window.usual[0] == window.end


def steady(level, seconds):
    """An hour of a service's calm lines, and a line of a level that is to be counted."""
    made = Tally(lambda text: "")
    made.services = ["web"]
    made.shapes = [Shape(CALM, 1, "", "x", (0, 0)), Shape(level, 2, "", "y", (0, 0))]
    made.counts = {(START + second, 0, 0): 1 for second in range(0, 3600, seconds)}
    return made


def test_a_busy_hour_is_no_bad_hour():
    # Errors that grow as everything does are no incident.
    made = steady(WARN, 60)
    for minute in range(60):
        lines = 400 if minute >= 40 else 100
        made.counts[START + minute * 60, 0, 0] = lines
        made.counts[START + minute * 60, 0, 1] = lines // 20
    assert find_window(made, slots_of(made)) is None
    made.counts |= {key: 100 for key in made.counts if key[2] == 0}
    assert find_window(made, slots_of(made)).start == START + 40 * 60


def test_few_lines_make_a_window_only_if_they_are_fatal():
    warned, died = steady(WARN, 10), steady(FATAL, 10)
    warned.counts[START + 3500, 0, 1] = died.counts[START + 3500, 0, 1] = 1
    assert find_window(warned, slots_of(warned)) is None
    assert find_window(died, slots_of(died)).start == START + 3500


def test_times_far_from_the_others_do_not_stretch_the_log():
    one = tally()
    one.counts[10, 0, 0] = one.counts[2_000_000_000, 0, 0] = 1
    first, last = span(one)
    assert START <= first <= last < START + 3600
