"""The table of `explain` for a collective: every timed algorithm, and the plan's choice."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

import waywiser._core as _core
from waywiser import stages
from waywiser.errors import InputError
from waywiser.json_fields import Node
from waywiser.plan import read_plan
from waywiser.points import seconds_at
from waywiser.terminal import spaced, table
from waywiser.units import format_bytes, format_seconds

Which = tuple[str, str, int]  # operation, memory, ranks


def collective_answer(profile: str, which: Which, size: int) -> dict[str, Any]:
    """Candidates, fastest first; "chosen" and "why" as in the plan that follows from the profile."""
    series = [one for one in Node(json.loads(profile), "profile").items("collectives") if _which(one) == which]
    if not series:
        raise InputError(f"{_text(which)}: not measured here; `waywiser tune` measures collectives")
    candidates: list[dict[str, Any]] = []
    for one in series:
        points = [(point.integer("bytes"), point.number("seconds", above_zero=True)) for point in one.items("points")]
        way = _core.algorithm_of_today(one.text("way"))
        candidates.append({"way": way, "predicted": seconds_at(points, size), "points": dict(points)})
    candidates.sort(key=lambda one: one["predicted"] if one["predicted"] is not None else float("inf"))
    rows = read_plan(stages.choose(profile).encode("utf-8"), "plan").of_groups()
    mine = [row for row in rows if (row.operation, row.memory, row.ranks) == which]
    row = next((row for row in mine if row.from_bytes <= size <= row.to_bytes), None)
    chosen, why = (row.way, row.why) if row else ("", "nothing was measured at this size")
    return {"chosen": chosen, "why": why, "bytes": size, "candidates": candidates}


def _which(one: Node) -> Which:
    return one.text("operation"), one.text("memory"), one.integer("ranks")


def _text(which: Which) -> str:
    return f"{which[0]} of {which[2]} ranks with arrays in {which[1]} memory"


def collective_table(answer: dict[str, Any], head: str) -> RenderableType:
    """The answer for the terminal."""
    made = table("way", ">predicted", ">ratio", "measured")
    known = [one["predicted"] for one in answer["candidates"] if one["predicted"] is not None]
    for one in answer["candidates"]:
        predicted, chosen = one["predicted"], one["way"] == answer["chosen"]
        cells = (
            f"{'* ' if chosen else '  '}{spaced(one['way'])}",
            "" if predicted is None else format_seconds(predicted),
            "" if predicted is None else f"{predicted / min(known):.2f}",
            _sizes(sorted(one["points"])),
        )
        made.add_row(*(Text(cell, "bold" if chosen else "") for cell in cells))
    return Group(Text(head, "bold"), made, Text(answer["why"], "dim"))


def _sizes(sizes: list[int]) -> str:
    return format_bytes(sizes[0]) if len(sizes) == 1 else f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
