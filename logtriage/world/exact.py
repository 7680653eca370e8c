"""Sums and shuffles that are the same, to the last bit, in every version of Python.

Python promises this only for `Random.random` and `getrandbits`. Python 3.12 changed `sum` for
floats, and `shuffle` and `choice` have changed before. These functions behave as in 3.11, with
which everything published was made.
"""

from collections.abc import Iterable
from functools import reduce
from operator import add
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def total(values: Iterable[float]) -> float:
    """Sum the values from left to right."""
    return reduce(add, values, 0.0)


def shuffled(random: Random, items: Iterable[Item]) -> list[Item]:
    """Return the items in random order."""
    order = list(items)
    for i in range(len(order) - 1, 0, -1):
        j = _below(random, i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def _below(random: Random, limit: int) -> int:
    """Draw a whole number from 0 to `limit` - 1, uniformly."""
    bits = limit.bit_length()
    drawn = random.getrandbits(bits)
    while drawn >= limit:
        drawn = random.getrandbits(bits)
    return drawn
