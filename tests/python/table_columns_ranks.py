"""A rank that compares tables of arrays with those of pyarrow: `table_columns_ranks.py LIBRARY SEEDS`."""

from __future__ import annotations

import sys
from typing import Any

import numpy
import pyarrow as pa

import waywiser
from waywiser import table
from waywiser.table import column_rounds, columns


def in_library(data: dict[str, Any], library: str) -> table.Columns:
    """On this rank's GPU, for PyTorch, where each rank has one."""
    if library == "numpy":
        return data
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return {name: torch.from_numpy(numpy.ascontiguousarray(array)).to(device) for name, array in data.items()}


def plain(columns: table.Columns) -> dict[str, Any]:
    return {name: numpy.asarray(array.cpu() if hasattr(array, "cpu") else array) for name, array in columns.items()}


def rows_of(columns: Any) -> list[Any]:
    if isinstance(columns, pa.Table):
        columns = {name: columns[name].to_numpy() for name in columns.column_names}
    named = plain(columns)
    return sorted(zip(*(named[name].tolist() for name in sorted(named)), strict=True))


def require(same: bool, what: object) -> None:
    if not same:
        raise AssertionError(what)


def random_table(chance: Any, name: str) -> dict[str, Any]:
    rows = int(chance.integers(0, 300)) * int(chance.integers(0, 3))
    keys = chance.integers(0, int(chance.choice([5, 200, 1 << 40])), rows)
    return {"k": keys, name: chance.random(rows), "o": chance.integers(0, 99, rows).astype("i4")}


def shuffled(group: waywiser.Group, chance: Any, library: str) -> None:
    data = random_table(chance, "v")
    wanted = table.shuffle(group, pa.table(data), ["o", "k"])
    require(rows_of(table.shuffle(group, in_library(data, library), ["o", "k"])) == rows_of(wanted), "shuffle")


def merged(group: waywiser.Group, chance: Any, library: str, parts: int) -> None:
    left, right = random_table(chance, "l"), random_table(chance, "r")
    for how in ("inner", "semi", "anti"):
        wanted = table.merge(group, pa.table(left), pa.table(right), "k", how=how, parts=parts)  # type: ignore[arg-type]
        got = table.merge(group, in_library(left, library), in_library(right, library), "k", how=how, parts=parts)  # type: ignore[arg-type]
        require(set(got) == set(wanted.column_names), (how, list(got), wanted.column_names))
        require(rows_of(got) == rows_of(wanted), (how, parts))


def runs(group: waywiser.Group, chance: Any, library: str) -> None:
    """Rows in runs of chance lengths, of columns with one dimension and with two, in several inserts."""
    parts, unit = int(chance.integers(1, 3 * group.size + 1)), int(chance.choice([1, 4, 4096]))
    piece = int(chance.choice([1 << 10, 1 << 16, 1 << 27]))
    # Runs by their units, one by one together, and from where they lie.
    column_rounds._LONG = column_rounds._LONG_ODD = int(chance.choice([1, 1 << 40]))
    column_rounds._WHOLE = int(chance.choice([1, 64, 1 << 40]))
    columns.NumPyColumns.sends_runs = bool(chance.integers(0, 2))  # as for arrays on GPUs
    column_rounds._APART = int(chance.choice([1, 100, 4096]))
    column_rounds._FIRST = int(chance.choice([64, 4096, 1 << 27]))
    wanted: dict[int, list[Any]] = {part: [] for part in range(group.rank, parts, group.size)}
    moved = None
    for turn in range(2):
        lengths = [chance.integers(0, 5, 6) * unit for _ in range(group.size)]
        owners = [chance.integers(0, parts, 6) for _ in range(group.size)]
        values = []
        for rank, (rows, to) in enumerate(zip(lengths, owners, strict=True)):
            values.append(numpy.arange(rows.sum()) + 10**9 * rank + 10**6 * turn)
            for part in wanted:
                cuts = zip(numpy.split(values[rank], numpy.cumsum(rows)[:-1]), to, strict=True)
                wanted[part] += [cut for cut, owner in cuts if owner == part]
        mine = values[group.rank]
        data = dict(in_library({"v": mine, "pair": numpy.stack([mine, -mine], 1)}, library))
        data["v"] = in_library({"v": numpy.repeat(mine, 2)}, library)["v"][::2]  # with a stride
        moved = moved or table.ColumnShuffle(group, data, parts=parts, piece=piece)
        moved.insert(data, rows=lengths[group.rank], to=owners[group.rank])  # type: ignore[arg-type]
    assert moved is not None
    come = {part: plain(rows) for part, rows in moved}
    require(come.keys() == wanted.keys(), "parts")
    for part, cuts in wanted.items():
        whole = numpy.concatenate([*cuts, numpy.arange(0)])
        require(numpy.array_equal(come[part]["v"], whole), (part, parts, unit))
        require(numpy.array_equal(come[part]["pair"], numpy.stack([whole, -whole], 1)), "two dimensions")


def compare(group: waywiser.Group, library: str, seeds: int) -> None:
    for seed in range(seeds):
        chance = numpy.random.default_rng([seed, group.rank])
        shuffled(group, chance, library)
        merged(group, chance, library, group.size * (1 + seed % 3))
        runs(group, numpy.random.default_rng(seed), library)  # known to all


if __name__ == "__main__":
    pa.set_cpu_count(1)
    with waywiser.join(timeout=60) as ranks:
        compare(ranks, sys.argv[1], int(sys.argv[2]))
        print(f"{ranks.rank}: {sys.argv[2]} of each are as pyarrow has them", flush=True)
