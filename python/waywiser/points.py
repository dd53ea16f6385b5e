"""Quantiles of times; the time between two points of a profile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between neighbouring order statistics."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def seconds_at(points: Sequence[tuple[int, float]], nbytes: int) -> float | None:
    """Of (bytes, seconds) in ascending order: linear between them, None beyond them."""
    for (low, before), (high, after) in pairwise(points):
        if low <= nbytes <= high:
            return before + (after - before) * (nbytes - low) / (high - low)
    return next((seconds for at, seconds in points if at == nbytes), None)
