"""The calls with arrays on virtual GPUs that fault_jobs.py tries: mode -> call -> function of a group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import waywiser as ww

RANKS = 3
COUNT = 60_000  # float64
LAST = "the last operation"
WINDOW = "put, signal and wait"
APART = "gpus of several machines"
MEMORY = 256 << 20  # of each GPU: more than what groups set aside
Group = ww.Group


class RankGpu:
    """The GPU of this process, with the arrays that its calls use; they are made before anything happens."""

    def __init__(self, rank: int) -> None:
        self.gpus = ww.virtual_gpus(RANKS, MEMORY)
        self.rank = rank
        self.stream = self.gpus.open_stream(rank)
        self.mine = self.gpus.array(np.full(COUNT, rank + 1.0), rank)
        self.result = self.gpus.empty(COUNT, float, rank)
        self.shown = self.gpus.array(np.append(0.0, np.full(COUNT, rank + 1.0)), rank)
        self.window: ww.Window | None = None
        self.before_waiting: Callable[[], object] = lambda: None
        self.filled: list[ww.GpuArray] = []

    def fill(self) -> None:
        """Takes all memory that the GPU has left."""
        size = MEMORY
        while size >= 4096:
            try:
                self.filled.append(self.gpus.empty(size, "u1", self.rank))
            except ww.DeviceError:
                size //= 2

    def holds(self, value: float) -> bool:
        return bool((self.result.numpy() == value).all())


def neighbours(group: Group) -> tuple[int, int]:
    return (group.rank + 1) % RANKS, (group.rank - 1) % RANKS


def reduced(group: Group, gpu: RankGpu) -> bool:
    group.all_reduce(gpu.mine, gpu.result, stream=gpu.stream)
    gpu.before_waiting()
    group.synchronize(gpu.result, stream=gpu.stream)
    return gpu.holds(6)


def made(group: Group, gpu: RankGpu) -> bool:
    """As above, into a new array."""
    total: Any = group.all_reduce(gpu.mine, stream=gpu.stream)
    gpu.before_waiting()
    group.synchronize(total, stream=gpu.stream)
    return bool((total.numpy() == 6).all())


def last(group: Group, gpu: RankGpu) -> bool:
    """Nobody waits for it before the group is closed."""
    group.all_reduce(gpu.mine, gpu.result, stream=gpu.stream)
    gpu.before_waiting()
    group.close()
    return gpu.holds(6)


def around(group: Group, gpu: RankGpu) -> bool:
    right, left = neighbours(group)
    group.sendrecv(gpu.mine, right, gpu.result, left, stream=gpu.stream)
    gpu.before_waiting()
    group.synchronize(gpu.result, stream=gpu.stream)
    return gpu.holds(left + 1)


def around_at_once(group: Group, gpu: RankGpu) -> bool:
    right, left = neighbours(group)
    gpu.before_waiting()
    group.sendrecv(gpu.mine, right, gpu.result, left)
    return gpu.holds(left + 1)


def flagged(group: Group, gpu: RankGpu) -> bool:
    """Each rank puts into the next one's memory, says so, and waits to hear it of the one before."""
    assert gpu.window is not None
    right, left = neighbours(group)
    gpu.before_waiting()
    group.put(gpu.mine, gpu.window, right, 8)
    group.signal(gpu.window, right, 0, 1)
    group.wait(gpu.window, 0, 1)
    return bool((gpu.shown.numpy()[1:] == left + 1).all())


CALLS: dict[str, dict[str, Callable[[Group, RankGpu], bool]]] = {
    "gpus": {
        "all_reduce on a stream": reduced,
        "all_reduce on a stream into a new array": made,
        LAST: last,
        "sendrecv on a stream": around,
        "sendrecv": around_at_once,
        WINDOW: flagged,
    },
    APART: {
        "all_reduce on a stream": reduced,
        LAST: last,
        "sendrecv on a stream": around,
        "sendrecv": around_at_once,
    },
}


def set_up(group: Group, gpu: RankGpu, name: str) -> None:
    """The first calls, which wait for the other ranks in any case."""
    if name == WINDOW:
        gpu.window = group.expose(gpu.shown)
    if not (reduced(group, gpu) and around(group, gpu) and around_at_once(group, gpu)):
        raise RuntimeError("wrong before anything has happened")
    gpu.result.fill(-77)
