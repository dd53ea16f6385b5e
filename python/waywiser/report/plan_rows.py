"""`explain` for rows that are added to the plan apart: halo exchanges, arrays of a server's GPU, files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.errors import InputError
from waywiser.plan import Plan, PlanRow
from waywiser.points import seconds_at
from waywiser.terminal import spaced, table
from waywiser.units import format_bytes, format_seconds


def rows_answer(plan: Plan, what: str, partner: str, size: int | None) -> list[dict[str, Any]]:
    """The rows of "halo", of "remote" for a server's GPUs at `size`, of "read" or "write" for the files of a file
    system: each with its ways, the one that is taken first. Raises InputError if the plan has none."""
    if what == "halo":
        rows, how = [row for row in plan.rows if row.shape], "halo.tune(seconds, file=FOLDER) in a program"
    elif what in ("read", "write"):
        of_files = [row for row in plan.rows if row.partner == partner and row.operation.startswith(f"file_{what}")]
        rows = [row for row in of_files if row.from_bytes <= (size or 0) <= row.to_bytes]
        how = "waywiser tune --storage FOLDER"
    else:
        of_server = [row for row in plan.rows if row.partner.partition(" ")[0] == partner]
        rows = [row for row in of_server if row.from_bytes <= (size or 0) <= row.to_bytes]
        how = f"waywiser tune --remote {partner}"
    if not rows:
        raise InputError(f"the plan has no row for {what}{f' {partner}' if partner else ''}: {how} adds them")
    return [_row(row, size) for row in rows]


def _row(row: PlanRow, size: int | None) -> dict[str, Any]:
    seconds = row.expected[0][1] if row.shape and row.expected else seconds_at(row.expected, size or 0)
    ways = [
        {"way": one.way, "ratio": one.ratio or None, "seconds": seconds * one.ratio if seconds and one.ratio else None}
        for one in row.ways
    ]
    about = {"memory": row.memory, "ranks": row.ranks, "shape": row.shape, "partner": row.partner}
    bytes_ = row.expected[0][0] if row.shape and row.expected else size
    return {"operation": row.operation, **about, "bytes": bytes_, "chosen": row.way, "why": row.why, "ways": ways}


def rows_table(answer: Sequence[dict[str, Any]]) -> RenderableType:
    """The answer for the terminal: a table for each row."""
    return Group(*(part for one in answer for part in _parts(one)))


def _parts(one: dict[str, Any]) -> Iterator[RenderableType]:
    if one["shape"]:
        head = f"halo exchange {one['shape']}: {one['ranks']} ranks, {one['memory']} memory, "
        head += f"up to {format_bytes(one['bytes'])} given by a rank"
    else:
        head = f"{one['operation'].replace('_', ' ')} of {format_bytes(one['bytes'])}, {one['partner']}"
        if one["operation"].startswith("file_"):
            head += f", {'GPU' if one['memory'] == 'gpu' else 'host'} memory"
    made = table("", "way", ">time", ">ratio")
    for way in one["ways"]:
        taken = way["way"] == one["chosen"]
        seconds, ratio = way["seconds"], way["ratio"]
        cells = ("*" if taken else "", spaced(way["way"]), format_seconds(seconds) if seconds else "-")
        made.add_row(*(Text(cell, "bold" if taken else "") for cell in (*cells, f"{ratio:.2f}" if ratio else "-")))
    yield from (Text(head, "bold"), made, Text(one["why"], "dim"), Text())
