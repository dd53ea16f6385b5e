"""The remaining error of the costs: the ratio measured / predicted over size for each path and operation."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from waywiser.simulator.measured import Key, Measured, Times, key_of

Curve = list[tuple[int, float]]  # size, ratio


def curves(measured: Measured, predicted: Times, half: int | None) -> dict[Key, Curve]:
    """Measured / predicted at the sizes of one half, smoothed."""
    found = {}
    for series in measured.series:
        key = key_of(series)
        times = predicted.get(key, {})
        ratios = [(s, t / times[s]) for s, t in sorted(measured.points(series, half).items()) if times.get(s)]
        if ratios:
            found[key] = _without_outliers(ratios)
    return found


def _without_outliers(ratios: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """A point above or below both neighbours by more than a half was disturbed: it gets the nearer one's ratio."""
    kept = list(ratios)
    for i in range(1, len(ratios) - 1):
        low, high = sorted((ratios[i - 1][1], ratios[i + 1][1]))
        if not low / 1.5 < ratios[i][1] < high * 1.5:
            kept[i] = (ratios[i][0], low if ratios[i][1] < low else high)
    return kept


def ratio_at(curve: Sequence[tuple[int, float]], size: int) -> float:
    """The ratio at a size; its logarithm is linear in log(size) between the points, constant beyond them."""
    sizes = [entry[0] for entry in curve]
    above = bisect_right(sizes, size)
    if above == 0:
        return curve[0][1]
    if above == len(curve):
        return curve[-1][1]
    (a, low), (b, high) = curve[above - 1], curve[above]
    along = math.log(max(size, 1) / max(a, 1)) / math.log(b / max(a, 1)) if b > max(a, 1) else 0.0
    return float(low * (high / low) ** along)
