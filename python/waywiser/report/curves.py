"""The data of the curves, as plain values for the page and for the pictures."""

from __future__ import annotations

from typing import Any

from waywiser.plan import Plan
from waywiser.profile import OPERATIONS, Pair, PairClass, Profile, Series
from waywiser.report import palette


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _series(one: Series, variant: int) -> dict[str, Any]:
    return {
        "label": one.path.label,
        "mechanism": one.path.mechanism,
        "dash": variant % len(palette.DASHES),
        "shade": variant // len(palette.DASHES),
        "bytes": [point.bytes for point in one.points],
        "seconds": [_short(point.seconds) for point in one.points],
        "low": [_short(point.low) for point in one.points],
        "high": [_short(point.high) for point in one.points],
    }


def _chosen(plan: Plan | None, pair: Pair, processes: int, operation: str) -> list[dict[str, Any]]:
    rows = plan.rows_of(pair, processes, operation) if plan else []
    return [
        {
            "label": row.path.label,
            "mechanism": row.path.mechanism,
            "from": row.from_bytes,
            "to": row.to_bytes,
            "bytes": [size for size, _ in row.expected],
            "seconds": [_short(seconds) for _, seconds in row.expected],
        }
        for row in rows
    ]


def curves(profile: Profile, plan: Plan | None, group: PairClass, operation: str) -> dict[str, Any] | None:
    """Every path's curve, the chosen pieces and the limit of one class and operation; None without a figure."""
    pair = profile.measured_pair(group)
    found = [one for one in profile.series_of(pair, group.processes, operation) if one.points]
    if not found:
        return None
    found.sort(key=lambda one: (palette.order(one.path.mechanism), one.path.label))
    seen: dict[str, int] = {}
    lines = []
    for one in found:
        variant = seen.get(one.path.mechanism, 0)
        seen[one.path.mechanism] = variant + 1
        lines.append(_series(one, variant))
    limited = max(found, key=lambda one: one.limit)
    return {
        "series": lines,
        "chosen": _chosen(plan, pair, group.processes, operation),
        "limit": limited.limit,
        "limit_source": limited.limit_source,
        "at_once": profile.pairs_at_once(group, operation),
    }


def all_curves(profile: Profile, plan: Plan | None) -> list[dict[str, Any]]:
    """`curves` of every class, in the order of the profile: {title, pair, pairs, verb, operations}."""
    found = []
    for group in profile.classes:
        drawn = {operation: curves(profile, plan, group, operation) for operation in OPERATIONS}
        kept = {operation: value for operation, value in drawn.items() if value}
        if kept:
            pair = profile.measured_pair(group)
            found.append(
                {
                    "title": group.title,
                    "pair": f"{pair[0]} to {pair[1]}",
                    "pairs": len(group.members),
                    "verb": profile.verb,
                    "operations": kept,
                }
            )
    return found
