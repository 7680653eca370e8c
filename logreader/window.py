"""When it began: find the stretch of the log in which trouble was unlike the rest of it.

Trouble of each kind (a service and a template) is counted in up to `SLOTS` slots. In a stretch of
slots, each kind has a gain: the log-likelihood ratio of two Poisson rates, in it and outside, to
one rate, divided by how much more than Poisson counts vary by themselves. The stretch with the
highest sum of gains is the window, if the sum is higher than chance would make it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import log
from typing import NamedTuple

from .causes import cause_of
from .levels import FATAL, WARN
from .tally import Tally

SLOTS = 60
MOST_KINDS = 150  # kinds of trouble, those with most lines
LEAST_LINES = 3  # lines of trouble that a window needs
FATAL_LINES = 4  # how many lines a FATAL one counts for
LEAST_CALM = 10.0  # calm lines a slot, needed to tell how much was going on
LEAST_EXPOSURE = 0.25  # of a slot, relative to the mean: in an outage little else is printed
# Set by judgement on logs without any incident: see `tests/reader/test_window.py`.
KIND_COST = 3.0  # cost of each kind that joins in, plus the logarithm of the number of kinds
LEAST_GAIN = 10.0
LEAST_TIMES = 1.5  # times the usual rate: a few per cent more may be no chance, yet no incident
TAIL = 0.005  # share of lines at either end whose times may be wrong


class Slots(NamedTuple):
    """Time divided into slots; start and width are in seconds."""

    start: int
    width: int
    number: int

    def of(self, second: int) -> int:
        """Return the slot of a time; -1 if it is outside."""
        slot = (second - self.start) // self.width
        return slot if 0 <= slot < self.number else -1


class Window(NamedTuple):
    """The stretch in which trouble was unlike the rest; times are in seconds since 1970."""

    start: int
    end: int  # the first second after it
    usual: tuple[int, int]  # what is usual: all before it, or after it if the log begins in it
    open: bool  # whether it lasts to the end of the log
    gain: float  # the sum by which it was found


Kind = tuple[int, int]  # of trouble: its service (a number in `Tally.services`) and its template


def slots_of(tally: Tally) -> Slots | None:
    """Divide a log into slots, leaving out times far off the others; None if no two differ."""
    lines: Counter[int] = Counter()
    for second, _, count in tally.rows():
        if second >= 0:
            lines[second] += count
    seconds = sorted(lines)
    passed = list(accumulate(lines[second] for second in seconds))
    if not seconds:
        return None
    low = seconds[bisect_right(passed, TAIL * passed[-1])]
    high = seconds[bisect_left(passed, (1 - TAIL) * passed[-1])]
    near = max(tally.width, high - low)
    kept = [second for second in seconds if low - near <= second <= high + near]
    first, last = kept[0], kept[-1]
    if first == last:
        return None
    length = last + tally.width - first
    width = -(-length // (SLOTS * tally.width)) * tally.width
    return Slots(first, width, -(-length // width))


def weight(level: int) -> int:
    """Return how many lines a line of this level counts for."""
    return FATAL_LINES if level == FATAL else 1


def _slotted(tally: Tally, slots: Slots) -> tuple[dict[Kind, list[int]], list[int]]:
    """Count the lines in each slot: by kind of trouble (the `MOST_KINDS` largest), and calm."""
    series: dict[Kind, list[int]] = defaultdict(lambda: [0] * slots.number)
    calm = [0] * slots.number
    for second, shape, lines in tally.lines():
        slot = slots.of(second)
        if slot >= 0 and shape.level >= WARN:
            series[shape.service, shape.template][slot] += lines * weight(shape.level)
        elif slot >= 0:
            calm[slot] += lines
    most = sorted(series, key=lambda kind: -sum(series[kind]))[:MOST_KINDS]
    return {kind: series[kind] for kind in most}, calm


def gain(inside: float, length: float, outside: float, rest: float) -> float:
    """Return the log-likelihood ratio of two rates to one, for `inside` lines in `length` slots and
    `outside` lines in `rest` slots; 0 unless the first rate is `LEAST_TIMES` the second.
    """
    if inside * rest <= LEAST_TIMES * outside * length or not rest:
        return 0.0
    rate = (inside + outside) / (length + rest)
    value = inside * log(inside / length / rate)
    return value + outside * log(outside / rest / rate) if outside else value


def overdispersion(counts: Sequence[int]) -> float:
    """Return how much more than Poisson counts vary, by the differences of neighbours."""
    total = sum(counts)
    kept = sorted((count - next_count) ** 2 for count, next_count in pairwise(counts))[:-3]
    if not kept or not total:
        return 1.0
    return max(1.0, sum(kept) / (2 * len(kept)) / (total / len(counts)))


def exposures(calm: Sequence[int]) -> list[float]:
    """Return how much was going on in each slot by its calm lines, 1 on average."""
    mean = sum(calm) / len(calm)
    if mean < LEAST_CALM:
        return [1.0] * len(calm)
    raised = [max(LEAST_EXPOSURE, lines / mean) for lines in calm]
    return [exposure * len(calm) / sum(raised) for exposure in raised]


def find_window(tally: Tally) -> Window | None:
    """Return the window of a log; None if no stretch of it is unlike the rest."""
    slots = slots_of(tally)
    if not slots or slots.number < 4:
        return None
    count = slots.number
    series, calm = _slotted(tally, slots)
    sums = [
        (list(accumulate(counts, initial=0)), overdispersion(counts)) for counts in series.values()
    ]
    exposed = list(accumulate(exposures(calm), initial=0.0))
    cost, least = KIND_COST + log(max(1, len(series))), max(2, count // 10)
    best, begin, finish = LEAST_GAIN, -1, -1
    for start in range(count):
        if 0 < start < least:
            continue  # too little before it to tell what is usual
        for end in range(start + 1, count + 1):
            if count - (end - start) < least:
                break
            length = exposed[end] - exposed[start]
            rest, total, lines = exposed[-1] - length, 0.0, 0
            for before, varies in sums:
                inside = before[end] - before[start]
                if inside:
                    lines += inside
                    excess = gain(inside, length, before[-1] - inside, rest) / varies - cost
                    total += max(0.0, excess)
            if total > best and lines >= LEAST_LINES:
                best, begin, finish = total, start, end
    if begin < 0:
        return None
    last, over = slots.start + finish * slots.width, slots.start + count * slots.width
    if not begin:
        return Window(slots.start, last, (last, over), False, best)
    first = _first_new(tally, slots, series, begin, finish)
    if first < 0:
        first, last = _sharpened(tally, slots, series, begin, finish)
    return Window(first, last, (slots.start, first), finish == count, best)


def _first_new(
    tally: Tally, slots: Slots, series: Mapping[Kind, list[int]], start: int, end: int
) -> int:
    """Return when new trouble first came in the window's first slot; -1 if none is new there."""
    begins, seconds = slots.start + start * slots.width, []
    for second, shape, _ in tally.lines():
        near = begins - slots.width <= second < begins + slots.width
        if not near or shape.level < WARN:
            continue
        explained = shape.level > WARN and cause_of(shape.example).own
        early = explained or shape.level == FATAL  # it may have come before any complaint
        if second >= begins or early:
            counts = series.get((shape.service, shape.template), [])
            enough = explained or sum(counts[start - early : end]) >= LEAST_LINES
            if not any(counts[: start - early]) and enough:
                seconds.append(second)
    return min(seconds, default=-1)


def _sharpened(
    tally: Tally, slots: Slots, series: Mapping[Kind, list[int]], start: int, end: int
) -> tuple[int, int]:
    """Return where the window's trouble, which is not new, begins and ends: the first and last of
    its times that are no further from the next than is usual in the window.
    """
    begins, ends = slots.start + start * slots.width, slots.start + end * slots.width
    more = {
        kind
        for kind, counts in series.items()
        if gain(sum(counts[start:end]), end - start, sum(counts[:start]), start) > KIND_COST
    }
    seconds = set[int]()
    for second, shape, _ in tally.lines():
        if begins <= second < ends and (shape.service, shape.template) in more:
            seconds.add(second)
    usual = (ends - begins) / max(1, len(seconds))
    close = [pair for pair in pairwise(sorted(seconds)) if pair[1] - pair[0] <= usual]
    if not close:
        return begins, ends
    return close[0][0], ends if end == slots.number else close[-1][1] + tally.width
