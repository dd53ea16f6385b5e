"""The rows of a plan for NCCL: chosen from what was timed, against what runs where a row says nothing: NCCL's default
with a tuner loaded, which is not the one that it has without."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from waywiser.apply.nccl_tuner_switch import DEFAULT_WAY
from waywiser.partner_rows import chosen_plan, keep_rows
from waywiser.plan import Plan

Series = dict[str, Any]
UNTUNED = "no plug-in"
# The default is what has to be beaten: no way is taken that costs more, and few bytes more of noise do not decide.
_HYSTERESIS = {"tolerance": 0.01, "equal": 0.03, "switching": 0.01}
_NOT_MEASURED = "no other way was measured as faster at the sizes on both sides"
_ALWAYS_LOST = "as at the largest size: a tuner alone makes NCCL slower at all sizes"


_Times = dict[str, dict[int, float]]  # of each way, by size


def _times(series: Sequence[Series]) -> dict[str, _Times]:
    """By operation; of a way that was timed well at a size and at a glance, what was timed well."""
    found: dict[str, _Times] = {}
    for one in sorted(series, key=lambda one: not one.get("glance")):
        of_way = found.setdefault(one["operation"], {}).setdefault(one["way"], {})
        of_way |= {point["bytes"]: point["seconds"] for point in one["points"]}
    return found


def keep(file: Path, series: Sequence[Series], partner: str, ranks: int) -> Plan:
    """Chooses, and writes the rows in place of those of this library for as many ranks."""
    able = [{**one, "partner": partner} for one in series if one["way"] != UNTUNED and not one.get("glance")]
    chosen = chosen_plan(able, "cuda", _HYSTERESIS)
    rows = [row for name, of_one in _times(series).items() for row in _where_measured(chosen["rows"], name, of_one)]
    return keep_rows(file, partner, {**chosen, "rows": rows}, ranks)


def _presence(times: Mapping[str, Mapping[int, float]]) -> Iterator[float]:
    """What a tuner that says nothing makes of NCCL's time, at each size."""
    return (seconds / times[UNTUNED][size] for size, seconds in times[DEFAULT_WAY].items() if size in times[UNTUNED])


def under_a_tuner(series: Sequence[Series]) -> dict[str, float]:
    """The same for each operation, the geometric mean over sizes."""
    logs = {name: [math.log(ratio) for ratio in _presence(of_one)] for name, of_one in _times(series).items()}
    return {name: math.exp(sum(found) / len(found)) for name, found in logs.items()}


def _where_measured(chosen: Sequence[dict[str, Any]], operation: str, times: _Times) -> list[dict[str, Any]]:
    """At the sizes that were measured, and below the least of them, what was chosen; between two of them the way that
    was faster than the default at both; above them the default, unless that loses at all sizes by a tuner's presence.
    Elsewhere NCCL may change its own protocol."""
    mine = [row for row in chosen if row["operation"] == operation]
    sizes = sorted(times[DEFAULT_WAY])
    rows: list[dict[str, Any]] = []

    def add(first: int, last: int, row: dict[str, Any]) -> None:
        if rows and rows[-1]["ways"][0]["way"] == row["ways"][0]["way"]:
            before = rows.pop()
            first, row = before["from_bytes"], before if before["expected"] else row
        of_way = times[row["ways"][0]["way"]]
        expected = [{"bytes": size, "seconds": of_way[size]} for size in sizes if first <= size <= last]
        rows.append({**row, "from_bytes": first, "to_bytes": last, "expected": expected})

    for size, following in zip(sizes, [*sizes[1:], None], strict=True):
        (here,) = (row for row in mine if row["from_bytes"] <= size <= row["to_bytes"])
        add(0 if size == sizes[0] else size, size, here)
        way, why = _faster_at_both(times, size, following) if following else _above(times, here)
        rest = {**here, "ways": [{"way": way, "ratio": 1.0}], "why": why}
        add(size + 1, following - 1 if following else mine[-1]["to_bytes"], rest)
    return [{**row, "why": row["why"] + _beside_no_plug_in(row["expected"], times[UNTUNED])} for row in rows]


def _above(times: _Times, largest: dict[str, Any]) -> tuple[str, str]:
    way = largest["ways"][0]["way"]
    lost = way != DEFAULT_WAY and all(ratio > 1 + _HYSTERESIS["equal"] for ratio in _presence(times))
    return (way, _ALWAYS_LOST) if lost else (DEFAULT_WAY, _NOT_MEASURED)


def _beside_no_plug_in(expected: Sequence[dict[str, Any]], untuned: Mapping[int, float]) -> str:
    """What a row costs that is still slower than NCCL without a tuner, where this is more than noise."""
    ratio = max((point["seconds"] / untuned[point["bytes"]] for point in expected), default=1.0)
    return f"; {ratio:.2f} times as long as without a plug-in" if ratio > 1 + _HYSTERESIS["equal"] else ""


def _faster_at_both(times: _Times, low: int, high: int) -> tuple[str, str]:
    """The best of the ways that beat the default at both sizes by more than noise, and why."""
    usual = times[DEFAULT_WAY]
    ratios = {
        way: (found[low] / usual[low], found[high] / usual[high])
        for way, found in times.items()
        if way != UNTUNED and low in found and high in found
    }
    most = 1 - _HYSTERESIS["equal"]
    able = [way for way, both in ratios.items() if max(both) <= most]
    if not able:
        return DEFAULT_WAY, _NOT_MEASURED
    best = min(able, key=lambda way: (ratios[way][0] * ratios[way][1], way))
    return best, "faster than the default at the sizes on both sides"
