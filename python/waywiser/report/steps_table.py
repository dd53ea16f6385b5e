"""What happens on the way of a transfer, step by step, for the terminal."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser import _core
from waywiser.errors import InputError
from waywiser.terminal import add, spaced, table
from waywiser.units import format_rate


def add_steps(answer: dict[str, Any], topology: dict[str, Any] | None) -> None:
    """Adds `steps` to each candidate of an answer of `explain`. Raises InputError if there is no topology."""
    if topology is None:
        raise InputError("there is no topology.json: the steps name the devices on the way")
    machine = _core.Topology.from_json(json.dumps(topology), "topology.json")
    for one in answer["candidates"]:
        one["steps"] = json.loads(_core.path_steps(machine, json.dumps(one["path"]), answer["bytes"]))


def steps_table(answer: dict[str, Any]) -> RenderableType:
    """The steps of the chosen path and of the fastest one of another mechanism; how many the others have."""
    ordered = sorted(answer["candidates"], key=lambda one: one["label"] != answer["chosen"])
    others = [one for one in ordered if one["path"]["mechanism"] != ordered[0]["path"]["mechanism"]]
    shown = [*ordered[:1], *others[:1]]
    parts: list[RenderableType] = []
    for one in shown:
        parts += [Text(""), _of_path(one, chosen=one["label"] == answer["chosen"])]
    rest = [f"{_count(one)}: {spaced(one['label'])}" for one in ordered if one not in shown]
    if rest:
        parts += [Text(""), Text("Steps of the others", "bold"), *map(Text, rest)]
    return Group(*parts)


def _of_path(one: dict[str, Any], *, chosen: bool) -> RenderableType:
    made = table("!>", "who", "does", "from", "to", "over", "!>times", "!>limit")
    for number, step in enumerate(one["steps"], 1):
        over = " - ".join(step["over"])
        limit = format_rate(step["limit"]) if step["limit"] else ""
        times = str(step["times"]) if step["from"] or step["to"] else ""
        add(made, str(number), step["who"], step["what"], step["from"] or "", step["to"] or "", over, times, limit)
    head = f"{_count(one)}: {spaced(one['label'])}{', the chosen path' if chosen else ''}"
    return Group(Text(head, "bold"), made)


def _count(one: dict[str, Any]) -> str:
    count = len(one["steps"])
    return f"{count} step{'' if count == 1 else 's'}"
