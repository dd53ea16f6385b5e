"""Errors of predictions against measurements: over all points, by kind of path, and without any model."""

from __future__ import annotations

from collections.abc import Iterable

from waywiser.profile import Series
from waywiser.simulator.measured import Key, Measured, Times, key_of
from waywiser.simulator.ratio_curves import Curve, curves, ratio_at


def errors(
    measured: Measured,
    predicted: Times,
    half: int | None,
    corrected: dict[Key, Curve] | None = None,
    steady: bool = False,
) -> dict[str, float]:
    """Relative errors over the points of one half: median, p90 and their number. `steady`: only points whose own
    confidence interval is within 10 %."""
    found = [error for series in measured.series for error in _of(measured, series, predicted, half, corrected, steady)]
    return _summary(found)


def _of(
    measured: Measured,
    series: Series,
    predicted: Times,
    half: int | None,
    corrected: dict[Key, Curve] | None,
    steady: bool = False,
) -> Iterable[float]:
    key = key_of(series)
    times = predicted.get(key, {})
    curve = corrected.get(key) if corrected is not None else None
    calm = {p.bytes for p in series.points if p.high - p.low <= 0.1 * p.seconds}
    for size, seconds in measured.points(series, half).items():
        if size in times and (size in calm or not steady):
            yield abs(times[size] * (ratio_at(curve, size) if curve else 1) / seconds - 1)


def _summary(found: list[float]) -> dict[str, float]:
    count = len(found)
    if not count:
        return {"median": 0.0, "p90": 0.0, "points": 0}
    found.sort()
    return {"median": found[count // 2], "p90": found[min(count - 1, count * 9 // 10)], "points": count}


def by_kind(
    measured: Measured, predicted: Times, half: int | None, corrected: dict[Key, Curve]
) -> dict[str, dict[str, float]]:
    """The errors by mechanism and pair of places, with the number of points that are off by over a quarter."""
    found: dict[str, list[float]] = {}
    for series in measured.series:
        kind = f"{series.path.mechanism} {series.path.pair_text}"
        found.setdefault(kind, []).extend(_of(measured, series, predicted, half, corrected))
    far = {kind: sum(error > 0.25 for error in off) for kind, off in found.items()}
    return {kind: {**_summary(found[kind]), "far": far[kind]} for kind in sorted(far, key=lambda kind: -far[kind])}


def straight_lines(measured: Measured, half: int) -> dict[str, float]:
    """The errors without any model: lines between the points of the other half, in logarithms of size and time."""
    found = []
    for series in measured.series:
        line = sorted(measured.points(series, 1 - half).items())
        if line:
            wanted = measured.points(series, half).items()
            found += [abs(ratio_at(line, size) / seconds - 1) for size, seconds in wanted]
    return _summary(found)


def leave_one_out(measured: Measured, predicted: Times) -> dict[str, float]:
    """Predicts each point from the costs and the curve through all other points of its path and operation."""
    found = []
    everything = curves(measured, predicted, None)
    for series in measured.series:
        key = key_of(series)
        points, times = measured.points(series, None), predicted.get(key, {})
        for index, (size, _) in enumerate(everything.get(key, [])):
            others = everything[key][:index] + everything[key][index + 1 :]
            if others:
                found.append(abs(times[size] * ratio_at(others, size) / points[size] - 1))
    return _summary(found)
