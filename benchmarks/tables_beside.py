"""Joins and shuffles of one pair of tables: `waywiser.table`, dask by tcp:// and by waywiser://, polars in one process.

Usage: python benchmarks/tables_beside.py [--ranks N] [--megabytes BOTH TABLES OF ALL RANKS] [--rounds N] [--json FILE];
needs distributed, dask, pandas, polars, pyarrow. All are there at once and take turns; who waits, sleeps. Tables lie in
the memory of their ranks (workers, process) before, the result stays there. Rows and sums of each result are compared.
"""

from __future__ import annotations

import argparse
import json
import logging
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy
import pyarrow

Sums = list[float]
MATCH = 0.3


def part(number: int, side: str, rows: int) -> dict[str, Any]:
    """Unique keys in any order, of which 30 % have a match, and a number: 16 bytes a row."""
    chance = numpy.random.default_rng([number, side == "right"])
    first = 2 * number * rows + (rows - int(rows * MATCH) if side == "right" else 0)
    return {"key": chance.permutation(rows) + first, side: chance.random(rows)}


def sums_of(columns: dict[str, Any]) -> Sums:
    return [float(len(columns["key"])), *(float(numpy.sum(columns[name])) for name in sorted(columns))]


def same(one: Sums, other: Sums) -> bool:
    return numpy.allclose(one, other, rtol=1e-9, atol=0)


# A rank: does what the parent says, and says how long it took.
def rank(port: int, rows: int) -> None:
    import waywiser
    from waywiser import table

    pyarrow.set_cpu_count(1)
    with waywiser.join(timeout=300) as group, socket.create_connection(("127.0.0.1", port)) as parent:
        left, right = (pyarrow.table(part(group.rank, side, rows)) for side in ("left", "right"))
        calls: dict[bytes, Callable[[], Any]] = {
            b"m": lambda: table.merge(group, left, right, "key"),
            b"s": lambda: table.shuffle(group, left, "key"),
        }
        while word := parent.recv(1):
            group.barrier()
            begun = time.perf_counter()
            result = calls[word]()
            seconds = group.all_reduce(numpy.array([time.perf_counter() - begun]), op="max")[0]
            mine = sums_of({name: result[name].to_numpy() for name in result.column_names})
            told = [float(seconds), *group.all_reduce(numpy.array(mine)).tolist()]
            del result
            if group.rank == 0:
                parent.sendall(json.dumps(told).encode() + b"\n")


class Ranks:
    def __init__(self, stack: ExitStack, ranks: int, rows: int) -> None:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        words = ["--port", str(listener.getsockname()[1]), "--rows", str(rows)]
        self.launcher = subprocess.Popen(
            [sys.executable, "-m", "waywiser", "run", "-n", str(ranks), sys.executable, __file__, *words]
        )
        stack.callback(self.launcher.wait)
        listener.settimeout(60)
        self.ranks = [stack.enter_context(listener.accept()[0]) for _ in range(ranks)]

    def __call__(self, what: str) -> tuple[float, Sums]:
        import select

        for each in self.ranks:
            each.sendall(what[:1].encode())
        (first, *_), _, _ = select.select(self.ranks, [], [], 600)
        seconds, *sums = json.loads(first.makefile().readline())
        return seconds, sums


def in_dask(client: Any, left: Any, right: Any, what: str) -> tuple[float, Sums]:
    from distributed import wait

    begun = time.perf_counter()
    whole = left.merge(right, on="key") if what == "merge" else left.shuffle("key", npartitions=left.npartitions)
    result = client.persist(whole)
    wait(result)
    seconds = time.perf_counter() - begun
    found = client.compute([result.index.size, *(result[name].sum() for name in sorted(result.columns))], sync=True)
    return seconds, [float(each) for each in found]


class Dask:
    def __init__(self, stack: ExitStack, protocol: str, workers: int, parts: int, rows: int) -> None:
        import dask.dataframe
        import pandas
        from distributed import Client, LocalCluster, wait

        def frame(number: int, side: str) -> Any:
            cut = parts // workers
            columns = part(number // cut, side, rows)
            begin, end = (rows * (number % cut + more) // cut for more in (0, 1))
            return pandas.DataFrame({name: array[begin:end] for name, array in columns.items()})

        cluster = stack.enter_context(
            LocalCluster(
                protocol=protocol, n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0,
                silence_logs=logging.ERROR,
            )
        )  # fmt: skip
        self.client = stack.enter_context(Client(cluster))
        self.tables = [
            self.client.persist(dask.dataframe.from_map(frame, range(parts), side=side)) for side in ("left", "right")
        ]
        wait(self.tables)

    def __call__(self, what: str) -> tuple[float, Sums]:
        return in_dask(self.client, *self.tables, what)


class Polars:
    def __init__(self, ranks: int, rows: int) -> None:
        import polars

        self.tables = [
            polars.concat([polars.DataFrame(part(number, side, rows)) for number in range(ranks)])
            for side in ("left", "right")
        ]

    def __call__(self, what: str) -> tuple[float, Sums]:
        begun = time.perf_counter()
        result = self.tables[0].join(self.tables[1], on="key")
        seconds = time.perf_counter() - begun
        return seconds, sums_of({name: result[name].to_numpy() for name in result.columns})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.port:
        return rank(options.port, options.rows)
    ranks, rows = options.ranks, options.megabytes * 1_000_000 // 32 // options.ranks
    with ExitStack() as stack:
        of_all: dict[str, Callable[[str], tuple[float, Sums]]] = {
            "waywiser.table": Ranks(stack, ranks, rows),
            "dask, tcp://": Dask(stack, "tcp", ranks, 4 * ranks, rows),
            "dask, waywiser://": Dask(stack, "waywiser", ranks, 4 * ranks, rows),
            "polars, one process": Polars(ranks, rows),
        }
        found: dict[str, Any] = {"ranks": ranks, "rows_of_a_table": rows * ranks, "bytes": 32 * rows * ranks}
        for what in ("merge", "shuffle"):
            times: dict[str, list[float]] = {}
            for turn in range(options.rounds + 1):
                wanted = None
                for name, call in of_all.items():
                    if what == "shuffle" and name.startswith("polars"):
                        continue
                    seconds, sums = call(what)
                    wanted = wanted or sums
                    if not same(sums, wanted):
                        raise SystemExit(f"{name}: another {what}: {sums}, not {wanted}")
                    if turn:  # the first one warms up
                        times.setdefault(name, []).append(seconds)
            found[what] = times
            for name, each in times.items():
                middle = statistics.median(each)
                moved = found["bytes"] // (2 if what == "shuffle" else 1)
                print(
                    f"{what:8} {name:20} {middle:7.3f} s  {moved / middle / 1e6:6.0f} MB/s, {len(each)} rounds",
                    flush=True,
                )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
