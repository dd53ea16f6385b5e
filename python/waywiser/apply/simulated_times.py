"""Simulated times of transfers and collectives between two nodes of a machine's cluster, under settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waywiser import _core
from waywiser.apply.facts import Machine
from waywiser.apply.trials import Times
from waywiser.errors import InputError
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import Collective
from waywiser.simulator.sweep import Sweep

# What belongs to the numbered nodes and cables of one cluster, not to two of its nodes.
_OF_THE_WHOLE = ("nodes", "types", "sick")


class NotTimed(Exception):
    """The simulator has no time for it; the message says why."""


def transfer_times(
    machine: Machine,
    ends: tuple[str, str],
    other: Any,
    operation: str,
    sizes: Sequence[int],
    vary: Sequence[str] = (),
    **fixed: str,
) -> Times:
    """From a memory here to one of a node of type `other` (a topology; None: another node of this type); the least time
    of all varied settings at each size. Raises NotTimed."""
    network, costs = _network(machine)
    network |= {"nodes": 2, "types": [0, 1]} if other else {"nodes": 2}
    sweep = Sweep(machine.topology, network, operation, list(sizes), list(vary), dict(fixed), *ends, costs)
    sweep.others = [other] if other else []
    try:
        curves = sweep.run(_silent)
    except (_core.Error, InputError) as error:
        raise NotTimed(str(error)) from error
    known = [curve.points for curve in curves if curve.points]
    if not known:
        raise NotTimed(curves[0].unavailable)
    return {size: min(points[size] for points in known) for size in sizes}


def collective_times(
    machine: Machine,
    operation: str,
    algorithms: Sequence[str],
    sizes: Sequence[int],
    direct: Sequence[str],
    pxn: bool,
    nodes: int = 2,
    without: Sequence[str] = (),
) -> dict[str, Times]:
    """On nodes of this type, under each value of `direct`: the least time of the algorithms at each size; `without`:
    what the network does not have then. Raises NotTimed."""
    network, costs = _network(machine)
    network = {name: value for name, value in network.items() if name not in without}
    cluster = Cluster(machine.topology.name, {**network, "nodes": nodes}, costs=costs)
    run = Collective(machine.topology, cluster, operation, sizes, algorithms, direct=direct, pxn=pxn)
    try:
        cases = [case for case in run.run(_silent) if not case.unavailable]
    except _core.Error as error:
        raise NotTimed(str(error)) from error
    found: dict[str, dict[int, float]] = {one: {} for one in direct}
    for case in cases:
        least = found[case.direct].get(case.size, case.seconds)
        found[case.direct][case.size] = min(least, case.seconds)
    if any(len(times) < len(sizes) for times in found.values()):
        raise NotTimed(f"{operation} cannot be simulated here")
    return dict(found)


def _network(machine: Machine) -> tuple[dict[str, Any], dict[str, float]]:
    cluster = machine.cluster
    network: Mapping[str, Any] = cluster.network if cluster else {}
    kept = {name: value for name, value in network.items() if name not in _OF_THE_WHOLE}
    return kept, dict(cluster.costs) if cluster else {}


def _silent(_done: int, _total: int, _left: float, _label: str) -> None:
    return None
