"""The setups of the ranks of a node: as JSON, and as tables for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from waywiser import _core
from waywiser.apply.setting import Settings
from waywiser.profile import Pair
from waywiser.run.rank_setup import RankSetup, setup_for
from waywiser.terminal import add, print_result, table


def setups_json(ranks: Sequence[int], setups: Sequence[RankSetup]) -> str:
    """A JSON list with an object for each rank: GPU, NIC, CPUs, NUMA node of its memory, variables, reasons."""
    told = [
        {"rank": rank, "gpu": one.gpu or None, "nic": one.nic or None, "cpus": list(one.cpus), "memory": one.memory,
         "variables": dict(one.variables), "removed": dict(one.removed), "predicted": list(one.predicted),
         "why": list(one.why)}
        for rank, one in zip(ranks, setups, strict=True)
    ]  # fmt: skip
    return json.dumps(told, indent=1)


def show_setups(ranks: Sequence[tuple[int, int]], setups: Sequence[RankSetup]) -> None:
    """A line for each rank of this node, then the variables and the reasons."""
    made = table(">rank", "GPU", "NIC", "CPUs", "variables")
    for (rank, _), setup in zip(ranks, setups, strict=True):
        told = " ".join(f"{name}={value}" for name, value in setup.variables.items())
        add(made, str(rank), setup.gpu or "-", setup.nic or "-", _ranges(setup.cpus), told or "-")
    print_result(made)
    for line in dict.fromkeys(line for setup in setups for line in setup.why):
        print_result(line)
    for text in dict.fromkeys(text for setup in setups for text in setup.predicted):
        print_result(f"{text} is simulated, not measured")


def bindings(
    topology: _core.Topology,
    settings: Settings | None,
    ranks: int,
    allowed: set[int],
    measured: Mapping[Pair, float] | None = None,
) -> list[RankSetup]:
    """The setup of each of `ranks` ranks of a node; `measured` as in `setup_for`."""
    return [setup_for(topology, settings, rank, ranks, {}, allowed, measured=measured) for rank in range(ranks)]


def show_binding(topology: _core.Topology, setups: Sequence[RankSetup]) -> None:
    """A line for each rank of a node: its GPU and the devices near to it."""
    title = f"{len(setups)} ranks on {topology.name}"
    made = table(">rank", "GPU", "CPUs", "memory", "NIC", "its distance", title=title)
    for rank, setup in enumerate(setups):
        memory = "as it comes" if setup.memory is None else f"node {setup.memory} preferred"
        nic = f"{setup.nic} {topology.device(setup.nic).name}" if setup.nic else "-"
        distance = topology.relation(setup.gpu, setup.nic) if setup.gpu and setup.nic else ""
        add(made, str(rank), setup.gpu or "-", _ranges(setup.cpus), memory, nic, distance)
    print_result(made)
    for line in dict.fromkeys(line for setup in setups for line in setup.why):
        print_result(line)
    print_result("`waywiser run --bind none` changes none of this")


def _ranges(cpus: Sequence[int]) -> str:
    """(0, 1, 2, 8) -> "0-2,8"."""
    parts: list[list[int]] = []
    for cpu in cpus:
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
