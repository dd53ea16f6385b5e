"""dask.dataframe merges over dask's own comms and over `waywiser://`, in turns, in two clusters of this machine.

Usage: python benchmarks/dask_merge.py [ROWS OF A PART] [PARTS] [WORKERS] [ROUNDS]; needs distributed, pandas, pyarrow.
"""

from __future__ import annotations

import logging
import statistics
import sys
import time
from contextlib import ExitStack
from typing import Any

import dask.dataframe
import numpy
import pandas
from distributed import Client, LocalCluster, wait

PROTOCOLS, SIZES = ("tcp", "waywiser"), (1 << 20, 8 << 20, 64 << 20, 256 << 20)


def part(number: int, side: str, rows: int) -> pandas.DataFrame:
    """Unique keys, of which 30 % have a match, and a payload of 8 bytes."""
    chance = numpy.random.default_rng([number, side == "right"])
    first = 2 * number * rows + (int(rows * 0.7) if side == "right" else 0)
    return pandas.DataFrame({"key": chance.permutation(rows) + first, side: chance.random(rows)})


def merged(client: Client, rows: int, parts: int) -> tuple[int, float]:
    """Rows of the result, and seconds."""
    left, right = (
        client.persist(dask.dataframe.from_map(part, range(parts), side=side, rows=rows)) for side in ("left", "right")
    )
    wait([left, right])
    begun = time.perf_counter()
    count = len(client.compute(left.merge(right, on="key"), sync=True))
    return count, time.perf_counter() - begun


def filled(number: int, size: int) -> numpy.ndarray[Any, Any]:
    return numpy.full(size, number, numpy.uint8)


def last(array: numpy.ndarray[Any, Any]) -> int:
    return int(array[-1])


def carried(client: Client, number: int, size: int) -> float:
    """Seconds until an array of one worker has been read at another one."""
    one, other = sorted(client.scheduler_info()["workers"])[:2]
    array = client.submit(filled, number, size, workers=[one], pure=False)
    wait(array)
    begun = time.perf_counter()
    found = client.submit(last, array, workers=[other], pure=False).result()
    seconds = time.perf_counter() - begun
    assert found == number % 256, found
    return seconds


def main() -> None:
    rows, parts, workers, rounds = ([int(word) for word in sys.argv[1:]] + [1_000_000, 8, 2, 7][len(sys.argv) - 1 :])[
        :4
    ]
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    times: dict[str, list[float]] = {name: [] for name in PROTOCOLS}
    with ExitStack() as stack:
        clients = {}
        for name in PROTOCOLS:
            cluster = stack.enter_context(LocalCluster(protocol=name, silence_logs=logging.ERROR, **options))
            clients[name] = stack.enter_context(Client(cluster))
        for size in SIZES:
            seconds = {name: [carried(clients[name], turn, size) for turn in range(3 * rounds)] for name in PROTOCOLS}
            middles = ", ".join(f"{name} {1e3 * statistics.median(seconds[name][1:]):.1f} ms" for name in PROTOCOLS)
            print(f"an array of {size >> 20} MiB from worker to worker: {middles}", flush=True)
        for turn in range(rounds + 1):
            counts = set()
            for name in PROTOCOLS if turn % 2 else PROTOCOLS[::-1]:
                count, seconds = merged(clients[name], rows, parts)
                counts.add(count)
                if turn:  # the first one warms up
                    times[name].append(seconds)
            assert len(counts) == 1, counts
    size = 2 * parts * rows * 16
    for name in PROTOCOLS:
        middle = statistics.median(times[name])
        print(f"{name:10s} {middle:6.3f} s  {size / middle / 1e6:6.1f} MB/s of both tables, median of {rounds}")
    ratios = [a / b for a, b in zip(times["tcp"], times["waywiser"], strict=True)]
    print(f"tcp / waywiser {statistics.median(ratios):.2f}, least {min(ratios):.2f}, most {max(ratios):.2f}")


if __name__ == "__main__":
    main()
