"""GPUDirect RDMA and GDRCopy between nodes, as rows: one setting for all sizes, and beside it the one by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import RenderableType

from waywiser.apply.node_switches import PURPOSES, NodeRoads, Road, Single, between_nodes, name_of
from waywiser.profile import Profile
from waywiser.report.terminal import add, table
from waywiser.units import format_range

HEAD = ("from", "to", "for", "one setting for all sizes", "at worst", "by size, never slower")
ALL = "all of them"


@dataclass(frozen=True)
class Row:
    """What to switch on from one type of node to another, for a purpose."""

    machine: str
    node: str
    rail: str
    purpose: str
    single: Single
    by_size: str

    @property
    def cells(self) -> tuple[str, ...]:
        """As `HEAD` names them."""
        return self.machine, self.node, self.purpose, name_of(self.single.switches), _worst(self.single), self.by_size


def rows_of(profile: Profile) -> list[Row]:
    """From the GPUs of a node to those of each other type, then to all of them, where there are several."""
    roads = between_nodes(profile)
    found = []
    for road in roads.roads:
        alone = NodeRoads((road,))
        found += [_row(profile, alone, road.node, road.rail, purpose, by_size(road, alone.judged_by(purpose)))
                  for purpose in PURPOSES if alone.single(purpose)]  # fmt: skip
    if len(roads.roads) > 1:
        found += [_row(profile, roads, ALL, "", purpose, "") for purpose in PURPOSES if roads.single(purpose)]
    return found


def _row(profile: Profile, roads: NodeRoads, node: str, rail: str, purpose: str, text: str) -> Row:
    single = roads.single(purpose)
    assert single is not None
    return Row(profile.machine, node, rail, purpose, single, text)


def by_size(road: Road, operations: Sequence[str]) -> str:
    """ "8 B to 16 KiB both, 32 KiB to 64 MiB GDRCopy"; of several operations where they agree."""
    told = [
        ", ".join(f"{format_range(first, last)} {name_of(one)}" for first, last, one in road.by_size(operation))
        for operation in operations
    ]
    return told[0] if len(set(told)) == 1 else "as above, by what is sent"


def _worst(single: Single) -> str:
    if single.worst_loss < 1.005:
        return "fastest at every size"
    return f"{single.worst_loss:.2f} x the time: {single.worst.text}"


def node_table(profiles: Sequence[Profile]) -> RenderableType | None:
    """For the terminal; None where no road to another node is known."""
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
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    lines += ["| " + " | ".join(row.cells) + " |" for profile in profiles for row in rows_of(profile)]
    return "\n".join(lines)
