"""The differences of two profiles as tables for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.comparison import Comparison
from waywiser.report.terminal import add, table
from waywiser.units import format_range, format_seconds


def difference(found: Comparison) -> RenderableType:
    """Tables of the differences; one line if there are none."""
    parts: list[RenderableType] = []
    if found.changes:
        made = table(
            "pair", "operation", "sizes", "path", "", ">old", ">new", ">ratio", title="Times beyond the intervals"
        )
        for one in found.changes:
            times = format_seconds(one.old_seconds), format_seconds(one.new_seconds), f"{one.ratio:.2f}"
            add(made, one.pair, one.operation, format_range(one.from_bytes, one.to_bytes), one.path, one.word, *times)
        parts.append(made)
    parts += [Text(f"appeared: {name}") for name in found.appeared]
    parts += [Text(f"vanished: {name}") for name in found.vanished]
    if found.switched:
        made = table("pair", "operation", "sizes", "old choice", "new choice", title="Choices")
        for switch in found.switched:
            add(
                made,
                switch.pair,
                switch.operation,
                format_range(switch.from_bytes, switch.to_bytes),
                switch.old,
                switch.new,
            )
        parts.append(made)
    if found.state:
        made = table("what", "old", "new", title="State of the machine")
        for row in found.state:
            add(made, *row)
        parts.append(made)
    return Group(*parts) if parts else Text("no difference beyond the intervals")
