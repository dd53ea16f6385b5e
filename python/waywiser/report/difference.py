"""The differences of two profiles as tables for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.comparison import Comparison
from waywiser.terminal import add, table
from waywiser.units import format_range, format_seconds

_MOST_OF_OTHERS = 20  # rows of a table, if the profiles are of two machines


def difference(found: Comparison) -> RenderableType:
    """Tables of the differences, the machine first; one line if there are none.

    Of two different machines, whose paths all differ, only the largest differences are shown.
    """
    parts: list[RenderableType] = []
    if found.other_machine:
        parts.append(Text("These are two different machines: what follows is no change of one machine.", "bold yellow"))
    if found.state:
        made = table("what", "old", "new", title="State of the machine")
        for row in found.state:
            add(made, *row)
        parts.append(made)
    most = _MOST_OF_OTHERS if found.other_machine else max(len(found.changes), len(found.switched))
    if found.changes:
        made = table(
            "pair", "operation", "sizes", "path", "", ">old", ">new", ">ratio", title="Times beyond the intervals"
        )
        for one in found.changes[:most]:
            times = format_seconds(one.old_seconds), format_seconds(one.new_seconds), f"{one.ratio:.2f}"
            add(made, one.pair, one.operation, format_range(one.from_bytes, one.to_bytes), one.path, one.word, *times)
        parts += [made, *_rest(len(found.changes) - most)]
    for word, names in (("appeared", found.appeared), ("vanished", found.vanished)):
        shown = names[:most] if found.other_machine else names
        parts += [Text(f"{word}: {name}") for name in shown] + _rest(len(names) - len(shown))
    if found.switched:
        made = table("pair", "operation", "sizes", "old choice", "new choice", title="Choices")
        for switch in found.switched[:most]:
            add(
                made,
                switch.pair,
                switch.operation,
                format_range(switch.from_bytes, switch.to_bytes),
                switch.old,
                switch.new,
            )
        parts += [made, *_rest(len(found.switched) - most)]
    return Group(*parts) if parts else Text("no difference beyond the intervals")


def _rest(count: int) -> list[Text]:
    return [Text(f"{count} more: --json shows all", "dim")] if count > 0 else []
