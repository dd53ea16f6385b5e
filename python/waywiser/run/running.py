"""Parts of `waywiser run` beside the launcher: detects a job, prints the setup of ranks, watches counters."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.look.job import started

if TYPE_CHECKING:
    from waywiser import _core
    from waywiser.apply.setting import Settings
    from waywiser.profile import Pair
    from waywiser.run.rank_setup import RankSetup


def running_in_job(count: int) -> bool:
    """Whether a launcher has started this process as a rank, and no ranks are requested."""
    return count == 1 and started().launcher not in ("none", "waywiser run")


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
    from waywiser.terminal import add, print_result, table

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
    from waywiser.run.rank_setup import setup_for

    return [setup_for(topology, settings, rank, ranks, {}, allowed, measured=measured) for rank in range(ranks)]


def show_binding(topology: _core.Topology, setups: Sequence[RankSetup]) -> None:
    """A line for each rank of a node: its GPU and the devices near to it."""
    from waywiser.terminal import add, print_result, table

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


def watching(results: Path, wanted: Sequence[str], run: Callable[[], int], hosts: int) -> int:
    """Runs on this many `hosts`, then prints the paths that the bytes took on this node and keeps them for `doctor`."""
    from waywiser.monitor.counters import fresh, read_counters
    from waywiser.progress import say
    from waywiser.run.watch import keep_watched, watched

    before, start = read_counters(fresh()), time.monotonic()
    code = run()
    found = watched(before, read_counters(fresh()), time.monotonic() - start, wanted, hosts, socket.gethostname())
    for line in found.lines():
        say(line)
    keep_watched(results, found)
    return code
