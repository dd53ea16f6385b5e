"""A small benchmark of any MPI: `mpirun -n 2 python mpi_benchmark.py SIZE,... [TEST,...]`. Needs mpi4py only.

Times ping-pong (half a round trip), a window of one-way sends (each), all-reduce of floats. Rank 0 prints one JSON:
test -> size -> seconds, the best of many short blocks, so that an interruption spoils only one block.
"""

from __future__ import annotations

import json
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

_BLOCK_SECONDS = 2e-3
_BLOCKS = 25
_BUDGET = 0.12  # seconds for one test and size
_WINDOW = 8


def _timed(world: Any, once: Callable[[int], None]) -> float:
    """The best time of one call over short blocks; all ranks make the same number of calls."""
    for _ in range(3):
        once(1)
    world.Barrier()
    start = time.perf_counter()
    once(4)
    first = world.bcast((time.perf_counter() - start) / 4)
    calls = max(1, min(1000, int(_BLOCK_SECONDS / first)))
    blocks = max(3, min(_BLOCKS, int(_BUDGET / (calls * first))))
    best = float("inf")
    for _ in range(blocks):
        world.Barrier()
        start = time.perf_counter()
        once(calls)
        best = min(best, (time.perf_counter() - start) / calls)
    return best


def _pattern(size: int) -> bytearray:
    return bytearray((17 * i + 5) & 255 for i in range(min(size, 251))) * (size // 251 + 1)


def _ping_pong(world: Any, size: int) -> float:
    data = memoryview(_pattern(size))[:size]
    wanted, got = bytes(data), bytearray(size)

    def once(calls: int) -> None:
        for _ in range(calls):
            if world.rank == 0:
                world.Send(data, 1)
                world.Recv(got, 1)
            elif world.rank == 1:
                world.Recv(got, 0)
                world.Send(data, 0)

    seconds = _timed(world, once)
    if world.rank < 2 and bytes(got) != wanted:
        raise SystemExit(f"{size} bytes did not arrive intact")
    return seconds / 2


def _bandwidth(world: Any, size: int) -> float:
    data, token = bytearray(size), bytearray(1)
    windows = [bytearray(size) for _ in range(_WINDOW)]

    def once(calls: int) -> None:
        for _ in range(calls):
            if world.rank == 0:
                requests = [world.Isend(data, 1) for _ in range(_WINDOW)]
                for request in requests:
                    request.Wait()
                world.Recv(token, 1)
            elif world.rank == 1:
                requests = [world.Irecv(one, 0) for one in windows]
                for request in requests:
                    request.Wait()
                world.Send(token, 0)

    return _timed(world, once) / _WINDOW


def _all_reduce(world: Any, size: int) -> float:
    count = max(1, size // 4)
    mine, total = array("f", [world.rank + 1.0]) * count, array("f", [0.0]) * count

    def once(calls: int) -> None:
        for _ in range(calls):
            world.Allreduce(mine, total)

    seconds = _timed(world, once)
    expected = world.size * (world.size + 1) / 2
    if total[0] != expected or total[-1] != expected:
        raise SystemExit(f"all-reduce of {size} bytes gave {total[0]}, not {expected}")
    return seconds


TESTS = {"ping-pong": _ping_pong, "one way": _bandwidth, "all-reduce": _all_reduce}


def main() -> None:
    """Times every test at the sizes of the command line."""
    from mpi4py import MPI  # type: ignore[import-not-found,unused-ignore]

    world = MPI.COMM_WORLD
    sizes = [int(text) for text in sys.argv[1].split(",")]
    wanted = sys.argv[2].split(",") if len(sys.argv) > 2 else list(TESTS)
    found = {name: {str(size): TESTS[name](world, size) for size in sizes} for name in wanted}
    if world.rank == 0:
        told = {"library": MPI.Get_library_version().splitlines()[0], "libmpi": _mapped_libmpi(), "tests": found}
        print(json.dumps(told))


def _mapped_libmpi() -> str:
    """The file of the libmpi in this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = (line.split(maxsplit=5)[-1].strip() for line in maps if "/libmpi.so" in line)
        return next(paths, "")


if __name__ == "__main__":
    main()
