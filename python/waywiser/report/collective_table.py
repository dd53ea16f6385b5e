"""The table of `explain` for a collective: every timed algorithm, and the plan's choice."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

import waywiser._core as _core
from waywiser import stages
from waywiser.errors import InputError
from waywiser.json_fields import Node
from waywiser.plan import PlanRow, read_plan
from waywiser.points import seconds_at
from waywiser.profile import COLLECTIVES
from waywiser.terminal import spaced, table
from waywiser.units import format_bytes, format_range, format_seconds

Which = tuple[str, str, int]  # operation, memory, ranks


@dataclass(frozen=True)
class TimedWay:
    """A way with its measured points: (bytes, seconds), and the bounds of their 95 % intervals."""

    way: str
    points: list[tuple[int, float]]
    lows: list[tuple[int, float]]
    highs: list[tuple[int, float]]

    def equals(self, other: TimedWay, size: int) -> bool:
        """Whether the intervals overlap at `size`, at which both were measured."""
        mine, theirs = ((seconds_at(one.lows, size), seconds_at(one.highs, size)) for one in (self, other))
        return (mine[0] or 0.0) <= (theirs[1] or 0.0) and (theirs[0] or 0.0) <= (mine[1] or 0.0)


def collective_answer(profile: str, which: Which, size: int) -> dict[str, Any]:
    """The row of the plan that follows from the profile ("chosen", "row": its sizes), the time of each way at `size`,
    fastest first, and at that size why each is taken or not."""
    ways = [_timed(one) for one in Node(json.loads(profile), "profile").items("collectives") if _which(one) == which]
    if not ways:
        how = (
            "collectives"
            if which[0] in COLLECTIVES
            else f"it between two {'GPUs' if which[1] == 'gpu' else 'processes'}"
        )
        raise InputError(f"{_text(which)}: not measured here; `waywiser tune` measures {how}")
    rows = read_plan(stages.choose(profile).encode("utf-8"), "plan").of_groups()
    mine = [row for row in rows if (row.operation, row.memory, row.ranks) == which]
    row = next((row for row in mine if row.from_bytes <= size <= row.to_bytes), None)
    chosen = next((one for one in ways if row and one.way == row.way), None)
    least = seconds_at(chosen.points, size) if chosen else None
    candidates: list[dict[str, Any]] = []
    for one in ways:
        predicted = seconds_at(one.points, size)
        ratio = predicted / least if predicted and least else None
        why = "" if one is chosen else _why_not(one, chosen, ratio, size)
        candidates.append(
            {"way": one.way, "predicted": predicted, "ratio": ratio, "why": why, "points": dict(one.points)}
        )
    candidates.sort(key=lambda one: one["predicted"] if one["predicted"] is not None else float("inf"))
    second = next((one for one in candidates if one["ratio"] and one["way"] != (row.way if row else "")), None)
    return {
        "operation": which[0],
        "bytes": size,
        "chosen": row.way if row else "",
        "row": {"from_bytes": row.from_bytes, "to_bytes": row.to_bytes} if row else None,
        "seconds": least,
        "runner_up": {"way": second["way"], "ratio": second["ratio"]} if second else None,
        "why": _why(row, least, second, size),
        "candidates": candidates,
    }


def _timed(one: Node) -> TimedWay:
    points = list(one.items("points"))
    sizes = [point.integer("bytes") for point in points]
    seconds, lows, highs = (
        list(zip(sizes, [point.number(name, above_zero=True) for point in points], strict=True))
        for name in ("seconds", "low", "high")
    )
    return TimedWay(_core.algorithm_of_today(one.text("way")), seconds, lows, highs)


def _why(row: PlanRow | None, least: float | None, second: dict[str, Any] | None, size: int) -> str:
    """Why the row's way is taken, at the size of the question; the plan's own reason is for the middle of the row."""
    asked = format_bytes(size)
    if row is None:
        return f"the plan has no row for {asked}: too far from the sizes that were measured"
    if least is None:
        return f"{asked} was not measured, but the row has it; for the row, {row.why}"
    if second is None:
        return f"the only way that was measured at {asked}"
    if second["why"].startswith("equal"):
        return f"equal to {second['way']} at {asked} within the confidence intervals"
    if second["ratio"] < 1:
        return f"within {100 * (1 / second['ratio'] - 1):.1f} % of {second['way']} at {asked}: not worth a switch"
    return f"the fastest: {second['way']} takes {second['ratio']:.2f} times as long at {asked}"


def _why_not(one: TimedWay, chosen: TimedWay | None, ratio: float | None, size: int) -> str:
    if seconds_at(one.points, size) is None:
        return f"not measured at {format_bytes(size)}"
    if chosen is None or ratio is None:
        return "the plan has no row for this size"
    if one.equals(chosen, size):
        return "equal to the chosen way within the confidence intervals"
    return "too little for a switch" if ratio < 1 else f"{ratio:.2f} times the time of the chosen way"


def _which(one: Node) -> Which | None:
    """None for arrays of a server's GPU, which are no collective of this machine."""
    return None if one.has("partner") else (one.text("operation"), one.text("memory"), one.integer("ranks"))


def _text(which: Which) -> str:
    return f"{which[0]} of {which[2]} ranks with arrays in {which[1]} memory"


def collective_table(answer: dict[str, Any], head: str) -> RenderableType:
    """The answer for the terminal."""
    made = table("way", ">time", ">ratio", "measured", "why not")
    for one in answer["candidates"]:
        predicted, ratio, chosen = one["predicted"], one["ratio"], one["way"] == answer["chosen"]
        cells = (
            f"{'* ' if chosen else '  '}{spaced(one['way'])}",
            "" if predicted is None else format_seconds(predicted),
            "" if ratio is None else f"{ratio:.2f}",
            _sizes(sorted(one["points"])),
            "slower" if one["why"].endswith("the time of the chosen way") else one["why"],
        )
        made.add_row(*(Text(cell, "bold" if chosen else "") for cell in cells))
    lines = [Text(answer["why"], "dim")]
    if row := answer["row"]:
        lines.append(Text(f"row of the plan: {format_range(row['from_bytes'], row['to_bytes'])}", "dim"))
    lines += [Text(each, "dim") for each in answer.get("notes", [])]
    return Group(Text(head, "bold"), made, *lines)


def _sizes(sizes: list[int]) -> str:
    return format_bytes(sizes[0]) if len(sizes) == 1 else f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
