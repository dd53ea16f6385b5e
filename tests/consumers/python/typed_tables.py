"""Every public name of waywiser.table, as a program of two ranks; `mypy --strict` reads it."""

from __future__ import annotations

import numpy
import pyarrow as pa

import waywiser as ww
from waywiser import table


def by_hand(group: ww.Group, data: table.Frame) -> None:
    moved = table.Shuffle(group, data, parts=3, budget=1 << 20, piece=1 << 12, memory=1 << 30, spill="/tmp")
    assert moved.schema == data.schema and moved.parts == 3
    moved.insert(data, on="k")
    moved.insert(data, part=0)
    moved.complete(1)
    moved.take_all()
    rows = 0
    if group.rank == 1:
        rows = moved.extract(1).num_rows
    rows += sum(part.num_rows for _, part in moved)
    counts: table.ShuffleCounts = moved.counts()
    peer: table.PeerCounts = counts.peers[group.rank]
    outcome: table.ShuffleOutcome = moved.outcome()
    paths: list[table.PathOutcome] = outcome.paths
    ways: list[table.WayCounts] = peer.ways
    assert outcome.bound > 0 and len(paths) == 2 and not ways and outcome.as_json()["bound"] == outcome.bound
    assert list(moved.explain()) == list(moved.explain(64)) == [1 - group.rank]
    assert peer.rows_in <= rows and counts.most_under_way >= counts.spilled == 0


def of_arrays(group: ww.Group) -> None:
    data: table.Columns = {"k": numpy.arange(3), "v": numpy.ones(3)}
    moved = table.ColumnShuffle(group, data, parts=3, piece=1 << 20)
    moved.insert(data, on="k")
    moved.insert(data, rows=[2, 1], to=[2, 0])
    assert moved.parts == 3 and moved.spilled == 0
    rows = sum(len(columns["v"]) for _, columns in moved)
    assert group.all_reduce(numpy.array([rows]))[0] == 12
    assert len(table.merge(group, data, data, "k", how="semi")) == len(table.shuffle(group, data, "k")) == 2


def on_gpus(group: ww.Group, data: pa.Table) -> None:
    try:
        moved = table.DeviceShuffle(group, data.schema, gpu=0, parts=2, budget=1 << 20, piece=1 << 12)
    except ww.UnavailableError:  # at all ranks: there is no GPU
        return
    moved.complete(0)
    parts: dict[int, table.DeviceRows] = dict(moved)
    assert [rows.rows for rows in parts.values()] == [0]


def main() -> None:
    how: table.How = "inner"
    order: table.Order = "descending"
    total: table.Aggregate = "sum"
    with ww.join(60) as group:
        data = pa.table({"k": [group.rank, 2], "v": [1.0, 2.0]})
        by_hand(group, data)
        of_arrays(group)
        assert len(table.partition(data, "k", 2)) == 2
        assert table.merge(group, data, table.shuffle(group, data, "k"), "k", how=how).num_rows <= 6
        assert table.group_by(group, data, "k", [("v", total)], parts=4, memory=1 << 30, spill="/tmp").num_rows <= 3
        on_gpus(group, data)
        first = table.sort(group, data, [("k", order)])
        assert group.rank == 1 or first["k"][0].as_py() == 2
        print(f"rank {group.rank}: every call", flush=True)


if __name__ == "__main__":
    main()
