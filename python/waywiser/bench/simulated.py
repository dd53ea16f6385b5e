"""The same rows for a simulated machine: transfers between two nodes, collectives over their GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from waywiser.bench.conduct import Case
from waywiser.bench.operations import Operation
from waywiser.bench.row import Figures, Row
from waywiser.bench.run import Wanted
from waywiser.errors import InputError
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.collectives import COMPARED, OF_NCCL, Collective
from waywiser.simulator.sweep import OPERATIONS as TRANSFERS
from waywiser.simulator.sweep import Sweep
from waywiser.stages import Show
from waywiser.topology import load_topology

Tell = Callable[[str, str], None]


def simulated_rows(wanted: Wanted, machine: str, tell: Tell, show: Show) -> Iterator[Row]:
    """Rows of the operations that the simulator supports; calls `tell` for the others.

    The ranks of collectives fill one node after another.
    """
    topology = load_topology(machine)
    gpus = len(topology.ids("gpu"))
    cases = wanted.cases()
    groups = dict.fromkeys((case.operation.name, case.memory) for case in cases)
    for done, (name, memory) in enumerate(groups):
        group = [case for case in cases if (case.operation.name, case.memory) == (name, memory)]
        why = _why_not(group[0], gpus)
        if why:
            tell("simulator", f"{name}, {memory}: {why}")
            continue
        show(done, len(groups), 0.0, name)
        sizes = [case.bytes for case in group]
        if name in TRANSFERS:
            yield from _transfers(topology, machine, group[0].operation, memory, sizes)
        else:
            yield from _collectives(topology, machine, group[0].operation, wanted.ranks, gpus, sizes)


def _why_not(case: Case, gpus: int) -> str:
    name = case.operation.name
    if name not in TRANSFERS and name not in COMPARED:
        return f"is not simulated: {', '.join((*TRANSFERS, *COMPARED))} are"
    if "gpu" in case.memory and not gpus:
        return "the machine has no GPU"
    if name in COMPARED and case.memory != "gpu":
        return "collectives are simulated between GPUs: write --memory gpu"
    return ""


def _transfers(topology: object, machine: str, operation: Operation, memory: str, sizes: list[int]) -> Iterator[Row]:
    """Times between the same place of two nodes, by RDMA with all features switched on."""
    given, _, taken = memory.partition(">")
    source, destination = f"{given}0", f"{taken or given}0"
    network = {**Cluster(machine, {"nodes": 2}).network}
    sweep = Sweep(topology, network, operation.name, sizes, source=source, destination=destination)
    curve = sweep.run(_silent)[0]
    if curve.unavailable:
        raise InputError(f"{source}>{destination} of {machine}: {curve.unavailable}")
    for size in sizes:
        yield _row(operation, memory, 2, size, curve.points[size])


def _collectives(
    topology: object, machine: str, operation: Operation, ranks: int, gpus: int, sizes: list[int]
) -> Iterator[Row]:
    """The fastest of the compared algorithms at each size."""
    nodes = -(-ranks // gpus)
    algorithms = [name for name in COMPARED[operation.name] if name not in (*OF_NCCL, "in_network")]
    cluster = Cluster(machine, {"nodes": max(1, nodes)})
    cases = Collective(topology, cluster, operation.name, sizes, algorithms, ranks=ranks).run(_silent)
    for size in sizes:
        times = [case.seconds for case in cases if case.size == size and not case.unavailable]
        if times:
            yield _row(operation, "gpu", ranks, size, min(times))


def _row(operation: Operation, memory: str, ranks: int, size: int, seconds: float) -> Row:
    figures = Figures(seconds, seconds, seconds, (seconds, seconds), 1, 1)
    return Row(operation, memory, ranks, size, figures, simulated=True)


def _silent(done: int, total: int, seconds_left: float, label: str) -> None:
    """Yields operations and moves the progress bar."""
