"""Samples of time as a point of a profile; the time between two points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between neighbouring order statistics."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def point_of(nbytes: int, seconds: Sequence[float]) -> dict[str, Any]:
    """The point of a profile for verified calls of `nbytes` bytes that took these `seconds`: their median with its 95 %
    interval, by order statistics."""
    samples, count = sorted(seconds), len(seconds)
    aside = 0.98 * math.sqrt(count)
    low = samples[max(0, math.floor(count / 2 - aside))]
    high = samples[min(count - 1, math.ceil(count / 2 + aside))]
    median = quantile(samples, 0.5)
    return {
        "bytes": nbytes, "seconds": median, "low": low, "high": high, "p50": median, "p99": quantile(samples, 0.99),
        "samples": count, "cpu_seconds": 0.0, "verified": True,
    }  # fmt: skip


def seconds_at(points: Sequence[tuple[int, float]], nbytes: int) -> float | None:
    """Of (bytes, seconds) in ascending order: linear between them, None beyond them."""
    for (low, before), (high, after) in pairwise(points):
        if low <= nbytes <= high:
            return before + (after - before) * (nbytes - low) / (high - low)
    return next((seconds for at, seconds in points if at == nbytes), None)
