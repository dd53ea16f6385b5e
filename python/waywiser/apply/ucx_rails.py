"""The number of rails of UCX's large messages between nodes, from times over one and several, simulated or measured.

Each number counts with the fastest setting of GPUDirect RDMA and GDRCopy at each size. The variable is for host memory
too, which must not lose by it; on a machine with GPUs the times between these decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from waywiser.apply.facts import Machine
from waywiser.apply.nearest import rdma_nics
from waywiser.apply.node_switches import between_nodes
from waywiser.apply.setting import LeftOut, Setting
from waywiser.apply.simulated_times import NotTimed, transfer_times
from waywiser.apply.trials import Trial, compared, judged
from waywiser.other_nodes import device_of, is_elsewhere
from waywiser.topology.load import load_topology

NAME, DEFAULT = "UCX_MAX_RNDV_RAILS", "2"
SIZES = tuple(8 << power for power in range(0, 24, 2))  # 8 B to 32 MiB
# The operations of the simulator that count for a purpose, and their names in profiles.
OPERATIONS = {
    "latency": {"latency": "latency"},
    "bandwidth": {"bidirectional": "bidirectional"},
    "mixed": {"bidirectional": "bidirectional", "bandwidth": "streaming", "latency": "latency"},
}


def proposed(machine: Machine) -> Iterator[Setting | LeftOut]:
    """Another number than UCX's default, if it is worth it."""
    if not rdma_nics(machine):
        return
    try:
        trials = rail_trials(machine) if machine.is_simulated else _measured(machine)
    except NotTimed as error:
        yield LeftOut("ucx", NAME, "", f"the number of rails is not known: {error}")
        return
    if len(trials) < 2 or DEFAULT not in trials:
        if not machine.is_simulated:
            why = "needs times over one and over two rails: run 'waywiser tune' on two machines"
            yield LeftOut("ucx", NAME, "", why)
        return
    best = judged(trials, DEFAULT, machine.purpose, [kind for kind in trials[DEFAULT] if "gpu" in kind])
    names = {count: f"over {count}" for count in trials}
    why = compared(trials, names)
    if best.value == DEFAULT:
        yield LeftOut("ucx", NAME, DEFAULT, f"the default, and no other number is worth it: {why}")
    else:
        why += f"; {best.gain:.2f} times the speed for {machine.purpose}"
        yield Setting("ucx", NAME, best.value, DEFAULT, why, NAME, not machine.label)


def rail_trials(machine: Machine) -> dict[str, Trial]:
    """Simulated, by number of rails. Raises NotTimed."""
    counts = [str(count) for count in range(1, len(rdma_nics(machine)) + 1) if count & (count - 1) == 0]
    trials: dict[str, dict[str, dict[int, float]]] = {count: {} for count in counts}
    for ends, other in _pairs(machine):
        by_gpu = any(end.startswith("gpu") for end in ends)
        for operation in OPERATIONS[machine.purpose]:
            kind = f"{ends[0]} to {f'{other.name}:' if other else ''}{ends[1]}, {operation}"
            for count in counts:
                vary = ("gdr", "gdrcopy") if by_gpu else ()
                times = transfer_times(machine, ends, other, operation, SIZES, vary, nics=count)
                trials[count][kind] = dict(times)
    return dict(trials)


def _pairs(machine: Machine) -> Iterator[tuple[tuple[str, str], Any]]:
    """Ends of a transfer and the type of the other node: those that decide, and the first host memory of both."""
    paths = between_nodes(machine.profile).deciding.paths
    types = {one.name: one for one in map(load_topology, machine.cluster.machines)} if machine.cluster else {}
    own = machine.topology.name
    for path in paths:
        other = None if path.node == own else types.get(path.node)
        yield (path.source, device_of(path.destination)), other
    if not paths and machine.topology.ids("gpu"):
        yield ("gpu0", "gpu0"), None
    yield ("host0", "host0"), types.get(paths[0].node) if paths and paths[0].node != own else None


def _measured(machine: Machine) -> dict[str, Trial]:
    """The least time over a number of rails of every series to another machine, where all numbers were timed."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for one in machine.profile.series if machine.profile else ():
        given = dict(one.path.parameters)
        wanted = one.operation in OPERATIONS[machine.purpose].values()
        if one.path.mechanism != "ucx" or "device" not in given or not is_elsewhere(one.path.destination) or not wanted:
            continue
        kind = f"{one.path.source} to {one.path.destination}, {one.operation}"
        times = found.setdefault(str(given["device"].count("+") + 1), {}).setdefault(kind, {})
        for point in one.points:
            times[point.bytes] = min(point.seconds, times.get(point.bytes, point.seconds))
    return _common(found)


def _common(found: dict[str, dict[str, dict[int, float]]]) -> dict[str, Trial]:
    """Only the kinds and sizes that every number has."""
    if not found:
        return {}
    kinds = set.intersection(*(set(trial) for trial in found.values()))
    sizes = {kind: sorted(set.intersection(*(set(trial[kind]) for trial in found.values()))) for kind in sorted(kinds)}
    return {
        count: {kind: {size: trial[kind][size] for size in known} for kind, known in sizes.items() if known}
        for count, trial in found.items()
    }
