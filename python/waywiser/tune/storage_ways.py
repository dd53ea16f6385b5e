"""The ways to files that `waywiser tune --storage` times."""

from __future__ import annotations

import os
import re

from waywiser.simulator.storage import shape_of

READ, CACHED, MANY, WRITE = "file_read", "file_read_cached", "file_read_many", "file_write"
WORKS = (READ, CACHED, MANY, WRITE)
PARTS, LARGEST_PART = 256, 64 << 10  # of one call for many
SMALL = 64 << 10  # up to here one piece is all
# The first of each is the default: of equals the earlier one is taken.
_WAYS = {
    "buffered": ("", "(threads=2)", "(threads=4)", "(threads=8)", "(threads=16)"),
    "io_uring": (
        *("", "(registered=1)", "(chunk=64K,depth=64)", "(chunk=128K,depth=16)", "(chunk=16M,depth=2)"),
        "(chunk=1M,depth=16)",
    ),
    "direct": ("", "(chunk=16M,threads=1)", "(chunk=256K,threads=8)", "(chunk=1M,threads=16)"),
    "mmap": ("", "(chunk=1M,threads=4)"),
    "cufile": ("", "(chunk=1M,threads=16)", "(chunk=4M,threads=8)", "(chunk=1G,threads=1)"),
}
# To memory of GPUs also through other buffers, and several threads that each have their own.
_BOUNCING = {
    "buffered": (
        *("(bounce=256K,lanes=4)", "(bounce=1M,lanes=4)", "(bounce=1M,lanes=8)", "(bounce=1M,lanes=16)"),
        "(bounce=4M,lanes=8)",
    ),
    "io_uring": ("(bounce=8M)", "(bounce=8M,chunk=1M,depth=16,lanes=2)", "(bounce=32M,chunk=1M,depth=32)"),
    "direct": (
        *("(bounce=8M,chunk=1M,threads=8)", "(bounce=1M,lanes=8)"),
        *("(bounce=4M,chunk=4M,threads=1)", "(bounce=16M,chunk=16M,threads=1)"),
    ),
}
_BY_PROCESSORS = ("buffered", "mmap")  # whose threads copy, and do not wait for a device
_THREADS = re.compile(r"(?:threads|lanes)=(\d+)")
HOST, GPU = "host", "gpu"  # whose memory: the ends of a path besides the file
Why = dict[str, tuple[str, str | None, str | None]]
Case = tuple[str, str, int]  # memory, work, bytes


def processors() -> int:
    """For the threads of this process."""
    return len(os.sched_getaffinity(0))


def ways_of(memory: str, work: str, size: int, why: Why, most_threads: int) -> list[str]:
    """Those to time. `why`: of each mechanism whose memory it serves, and why it does not read or write here. Those of
    hosts serve GPUs through host memory. `most_threads`: as many as there are processors."""
    served = [
        name
        for name, (end, read, write) in why.items()
        if end in (memory, HOST) and (write if work == WRITE else read) is None
    ]
    if size <= SMALL and work != MANY:
        return [name + _WAYS[name][0] for name in served]
    more_to_gpus: dict[str, tuple[str, ...]] = _BOUNCING if memory == GPU else {}
    more = {name: _WAYS[name][:3] if work == MANY else (*_WAYS[name], *more_to_gpus.get(name, ())) for name in served}
    return [name + each for name in served for each in more[name] if _threads(name, each) <= most_threads]


def _threads(name: str, parameters: str) -> int:
    """Those that need a processor each."""
    return max(map(int, _THREADS.findall(parameters)), default=1) if name in _BY_PROCESSORS else 1


def alike(memory: str, work: str, way: str, size: int) -> tuple[object, ...]:
    """Equal for ways that do the same at this size: one piece needs no second thread."""
    shape, whole = shape_of(way), size * (PARTS if work == MANY else 1)
    through_host = memory == GPU and shape.mechanism != "cufile"
    load = min(whole, shape.bounce) if through_host else whole
    piece = min(shape.chunk, size, load)
    lanes = min(shape.lanes, -(-whole // load)) if through_host else 1
    return shape.mechanism, "registered" in way, piece, min(shape.count, -(-load // piece)), load, lanes
