"""The probability that a difference between two sets of times is chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


@cache
def _arrangements(ones: int, others: int, inversions: int) -> int:
    """The number of orders of two groups in which exactly so many pairs are inverted."""
    if inversions < 0:
        return 0
    if ones == 0 or others == 0:
        return int(inversions == 0)
    return _arrangements(ones - 1, others, inversions - others) + _arrangements(ones, others - 1, inversions)


def chance_faster(base: Sequence[float], other: Sequence[float]) -> float:
    """The probability that `other` looks this much faster if there is no real difference (Mann-Whitney)."""
    inversions = sum((b < o) + (b == o) for b in base for o in other)
    total = math.comb(len(base) + len(other), len(base))
    return sum(_arrangements(len(base), len(other), count) for count in range(inversions + 1)) / total
