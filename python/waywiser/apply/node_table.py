"""Rows for GPUDirect RDMA and GDRCopy between nodes: one setting for all sizes, and the best setting by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import RenderableType

from waywiser.apply.node_switches import PURPOSES, NodePaths, Single, between_nodes, name_of
from waywiser.apply.setting import Settings
from waywiser.other_nodes import device_of
from waywiser.profile import Profile
from waywiser.terminal import add, table
from waywiser.units import format_range

HEAD = ("from", "to", "for", "one setting for all sizes", "at worst", "by size, never slower")
AS_ABOVE = "as above, by what is sent"


@dataclass(frozen=True)
class Row:
    """The switches from one type of node to another, for one purpose."""

    machine: str
    node: str
    purpose: str
    single: Single
    by_size: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells in the order of `HEAD`."""
        return self.machine, self.node, self.purpose, name_of(self.single.switches), _worst(self.single), self.by_size


def rows_of(profile: Profile) -> list[Row]:
    """The rows from the GPUs of a node to those of each type of node; its own type, which decides, comes first."""
    return [
        row for node, paths in between_nodes(profile).by_node.items() for row in _rows(profile.machine, node, paths)
    ]


def _rows(machine: str, node: str, paths: NodePaths) -> list[Row]:
    found = []
    for purpose in PURPOSES:
        if single := paths.single(purpose):
            text = AS_ABOVE if purpose == "mixed" else _by_size(paths, paths.judged_by(purpose)[0])
            found.append(Row(machine, node, purpose, single, text))
    return found


def _by_size(paths: NodePaths, operation: str) -> str:
    """ "8 B to 16 KiB both, 32 KiB to 64 MiB GDRCopy"; with the GPUs if they differ."""
    told: dict[str, list[str]] = {}
    for path in paths.paths:
        ranges = (f"{format_range(first, last)} {name_of(one)}" for first, last, one in path.by_size(operation))
        told.setdefault(", ".join(ranges), []).append(f"{path.source} to {device_of(path.destination)}")
    if len(told) == 1:
        return next(iter(told))
    return "; ".join(f"{text} ({', '.join(pairs)})" for text, pairs in told.items())


def _worst(single: Single) -> str:
    if single.worst_loss < 1.005:
        return "fastest at every size"
    return f"{single.worst_loss:.2f} x the time: {single.worst.text}"


def node_table(profiles: Sequence[Profile]) -> RenderableType | None:
    """The table for the terminal; None if no path to another node is known."""
    rows = [row for profile in profiles for row in rows_of(profile)]
    if not rows:
        return None
    label = next((one.warning() for one in profiles if one.warning()), "")
    title = "GPUDirect RDMA (GDR) and GDRCopy between nodes"
    made = table(*HEAD, title=f"{title}. {label.upper()}" if label else title)
    above: tuple[str, ...] = ()
    for row in rows:
        same = [*row.cells[:2]] == [*above[:2]]
        add(made, *(("", "") if same else row.cells[:2]), *row.cells[2:])
        above = row.cells
    return made


def node_markdown(profiles: Sequence[Profile]) -> str:
    """For a document."""
    return _markdown(HEAD, [row.cells for profile in profiles for row in rows_of(profile)])


def settings_markdown(settings: Sequence[Settings]) -> str:
    """A row for each variable, a column for each machine; a cell is empty if the default is right."""
    names = dict.fromkeys(one.name for each in settings for one in each.settings)
    values = [{one.name: f"`{one.value}`" for one in each.settings} for each in settings]
    rows = [(f"`{name}`", *(each.get(name, "") for each in values)) for name in names]
    return _markdown(("variable", *(each.machine for each in settings)), rows)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "\n".join("| " + " | ".join(line) + " |" for line in lines).replace("| --- ", "|---").replace("--- |", "---|")
    )
