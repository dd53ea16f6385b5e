"""Which GPUs of a training step belong together: tensor, sequence, expert and data parallelism, pipeline stages."""

from __future__ import annotations

from typing import NamedTuple

from waywiser.errors import InputError
from waywiser.simulator.training import Layout


class Groups(NamedTuple):
    """GPUs of a node whose groups, each with the same GPUs of other nodes, communicate at once; `numbers` are the nodes
    of the first group. Without a placement they are taken as neighbours."""

    nodes: int
    of_node: list[list[int]]
    numbers: tuple[int, ...] = (0,)


def _strides(layout: Layout) -> dict[str, int]:
    """How far apart the GPUs of two neighbours in a dimension are: those of a sequence are next to each other within
    data parallelism."""
    sizes = {"tensor": layout.tensor, "data": layout.replicas, "pipeline": layout.pipeline}
    strides, stride = {}, 1
    for name in layout.placement.split("-"):
        strides[name] = stride
        stride *= sizes[name]
    return strides


def _groups(what: str, layout: Layout, stride: int, size: int, gpus: int) -> Groups:
    """Of `size` GPUs, `stride` apart, those that have a GPU of the first node; with those of the whole step at once."""
    found: list[tuple[int, list[int]]] = []  # nodes of a group, its GPUs of each of them
    numbers: tuple[int, ...] = ()
    for first in range(min(gpus, layout.gpus)):
        if first // stride % size:
            continue
        members = [first + stride * number for number in range(size)]
        nodes = sorted({one // gpus for one in members})
        numbers = numbers or tuple(nodes)
        inside = [[one % gpus for one in members if one // gpus == node] for node in nodes]
        found.append((len(nodes) if all(part == inside[0] for part in inside) else 0, inside[0]))
    counts = {count for count, _ in found}
    if len(counts) != 1 or 0 in counts:
        raise InputError(
            f"--parallel: {what} of {size} GPUs, {stride} apart, takes other GPUs of one node of {gpus} than of another"
        )
    return Groups(counts.pop(), [inside for _, inside in found], numbers)


def tensor_groups(layout: Layout, gpus: int) -> Groups:
    return _groups("tensor parallelism", layout, _strides(layout)["tensor"], layout.tensor, gpus)


def sequence_groups(layout: Layout, gpus: int) -> Groups:
    return _groups("sequence parallelism", layout, _strides(layout)["data"], layout.sequence, gpus)


def data_groups(layout: Layout, gpus: int) -> Groups:
    return _groups("data parallelism", layout, _strides(layout)["data"], layout.replicas, gpus)


def expert_groups(layout: Layout, gpus: int) -> Groups:
    """GPUs that have different experts."""
    return _groups("expert parallelism", layout, _strides(layout)["data"], layout.expert, gpus)


def same_expert_groups(layout: Layout, gpus: int) -> Groups:
    """GPUs that have the same experts."""
    size = layout.replicas // layout.expert
    return _groups("data parallelism of experts", layout, _strides(layout)["data"] * layout.expert, size, gpus)


def stage_groups(layout: Layout, gpus: int) -> Groups:
    """Pairs of GPUs of two stages."""
    stride = _strides(layout)["pipeline"]
    if stride * layout.pipeline <= gpus:
        return _groups("pairs of pipeline stages", layout, stride, min(2, layout.pipeline), gpus)
    # Where some pairs are within a node, those between two nodes are the slower ones.
    return Groups(2, [[gpu] for gpu in range(min(stride, gpus))], (0, max(1, stride // gpus)))
