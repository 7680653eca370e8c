"""Sums and shuffles that are the same in every version of Python, to the last bit of 3.11's.

Python promises this only for `Random.random` and `getrandbits`; 3.12 changed `sum` for floats.
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
        bits = (i + 1).bit_length()
        while (j := random.getrandbits(bits)) > i:
            pass
        order[i], order[j] = order[j], order[i]
    return order
