"""A rank that compares the calls of waywiser.table with pyarrow's on the whole tables: `table_ranks.py SEEDS`."""

from __future__ import annotations

import io
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy
import pyarrow as pa
import table_cases as cases

import waywiser
from waywiser import table

SMALL = {"budget": 1 << 14, "piece": 1 << 10}  # many pieces
JOINS = {"inner": "inner", "left": "left outer", "right": "right outer", "outer": "full outer", "semi": "left semi"}
JOINS["anti"] = "left anti"


def all_rows(group: waywiser.Group, mine: pa.Table) -> pa.Table:
    """The rows of all ranks, by rank."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, mine.schema) as writer:
        writer.write_table(mine)
    tables = [pa.ipc.open_stream(each).read_all() for each in group.all_gather_objects(sink.getvalue())]
    return pa.concat_tables(tables)


def require(same: bool, what: object) -> None:
    if not same:
        raise AssertionError(what)


def limits(group: waywiser.Group, chance: random.Random) -> dict[str, Any]:
    """One part for each rank, or more."""
    return SMALL | chance.choice([{}, {"parts": 3 * group.size}])


def shuffled(group: waywiser.Group, chance: random.Random) -> None:
    kinds = [*chance.sample(list(cases.KINDS), 3), *chance.sample(list(cases.NESTED), 2)]
    whole = cases.table(kinds, chance.choice(cases.ROWS), chance.choice([0, 0.3]), chance)
    mine = cases.cut(whole, group.rank, group.size, chance)
    on = ["c0", "c1"][: chance.choice([1, 2])]
    got = table.shuffle(group, mine, on, **SMALL)
    got.validate(full=True)
    require(got.schema == whole.schema, (got.schema, whole.schema))
    everything = all_rows(group, got)
    require(cases.sorted_rows(everything) == cases.sorted_rows(whole), kinds)
    owners = [{repr(row) for row in each} for each in group.all_gather_objects(got.select(on).to_pylist())]
    require(max(Counter(key for each in owners for key in each).values(), default=1) == 1, "a key at two ranks")
    local = table.partition(whole, on, group.size)[group.rank]
    require(cases.sorted_rows(local) == cases.sorted_rows(got), "partition differs from shuffle")


def merged(group: waywiser.Group, chance: random.Random) -> None:
    keys = chance.sample(list(cases.KINDS), chance.choice([1, 2]))
    kinds = [*keys, chance.choice(list(cases.NESTED)), "int64"]
    whole = [cases.table(kinds, chance.choice(cases.ROWS), 0.2, chance, prefix) for prefix in "lr"]
    left, right = (cases.cut(each, group.rank, group.size, chance) for each in whole)
    left_on, right_on = [f"l{i}" for i in range(len(keys))], [f"r{i}" for i in range(len(keys))]
    for how, join in JOINS.items():
        got = table.merge(group, left, right, left_on=left_on, right_on=right_on, how=how, **limits(group, chance))  # type: ignore[arg-type]
        got.validate(full=True)
        wanted = whole_join(whole, left_on, right_on, join)
        everything = all_rows(group, got)
        same = cases.sorted_rows(everything.select(wanted.column_names)) == cases.sorted_rows(wanted)
        require(same, (how, kinds, everything.num_rows, wanted.num_rows))
    got = table.merge(group, left, right, left_on=left_on, right_on=right_on, nulls_equal=True, **limits(group, chance))
    counts = [Counter(map(repr, zip(*each.select(keys).to_pydict().values(), strict=True)))
              for each, keys in zip(whole, (left_on, right_on), strict=True)]  # fmt: skip
    matches = sum(count * counts[1][key] for key, count in counts[0].items())
    require(all_rows(group, got).num_rows == matches, ("nulls_equal", kinds, matches))


def whole_join(whole: list[pa.Table], left_on: list[str], right_on: list[str], join: str) -> pa.Table:
    """pyarrow joins neither lists nor structs: these are taken by row."""
    both = []
    for each, keys, row in zip(whole, (left_on, right_on), ("l", "r"), strict=True):
        decoded = [plain(each[key]) for key in keys]
        both.append(pa.table([*decoded, numpy.arange(each.num_rows)], [*keys, row]))
    rows = both[0].join(both[1], left_on, right_on, join_type=join, coalesce_keys=True)
    columns = {name: rows[name] for name in (right_on if join == "right outer" else left_on)}
    columns = dict(zip(left_on, columns.values(), strict=True))
    others = [("l", whole[0], left_on)] + ([("r", whole[1], right_on)] if "r" in rows.column_names else [])
    for row, each, keys in others:
        columns |= {name: each[name].take(rows[row]) for name in each.column_names if name not in keys}
    return pa.table(columns)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def grouped(group: waywiser.Group, chance: random.Random) -> None:
    keys = chance.sample(list(cases.KINDS), chance.choice([1, 2]))
    whole = cases.table([*keys, "int64", "bool", "uint8", "decimal"], chance.choice(cases.ROWS), 0.2, chance)
    mine = cases.cut(whole, group.rank, group.size, chance)
    by = [f"c{i}" for i in range(len(keys))]
    wanted = [(f"c{len(keys)}", name) for name in ("sum", "count", "min", "max", "mean")]
    wanted += [(f"c{len(keys) + 1}", "mean"), (f"c{len(keys) + 2}", "sum"), (f"c{len(keys) + 3}", "mean")]
    got = all_rows(group, table.group_by(group, mine, by, wanted, **limits(group, chance)))  # type: ignore[arg-type]
    decoded = pa.table({name: plain(whole[name]) if name in by else whole[name] for name in whole.column_names})
    one = decoded.group_by(by).aggregate(wanted)
    require(got.column_names == by + [f"{column}_{name}" for column, name in wanted], got.column_names)
    require(cases.sorted_rows(got) == cases.sorted_rows(one.select(got.column_names)), keys)


def in_order(group: waywiser.Group, chance: random.Random) -> None:
    keys = chance.sample([kind for kind in cases.KINDS if kind != "dictionary"], chance.choice([1, 2]))
    whole = cases.table([*keys, "struct"], chance.choice(cases.ROWS), 0.2, chance)
    whole = whole.append_column("row", pa.array(range(whole.num_rows), pa.int64()))
    mine = cases.cut(whole, group.rank, group.size, chance)
    by = [(f"c{i}", chance.choice(["ascending", "descending"])) for i in range(len(keys))]
    got = all_rows(group, table.sort(group, mine, by, **limits(group, chance)))  # type: ignore[arg-type]
    wanted = whole.take(pa.compute.sort_indices(whole, sort_keys=by))
    require(got["row"].to_pylist() == wanted["row"].to_pylist(), (by, keys))
    require(list(map(repr, got.to_pylist())) == list(map(repr, wanted.to_pylist())), (by, keys))


CALLS: dict[str, Callable[[waywiser.Group, random.Random], None]] = {
    "shuffle": shuffled, "merge": merged, "group_by": grouped, "sort": in_order,
}  # fmt: skip


def compare(group: waywiser.Group, seeds: int) -> None:
    for seed in range(seeds):
        for name, call in CALLS.items():
            try:
                call(group, random.Random(f"{name} {seed}"))
            except AssertionError as error:
                raise AssertionError(f"{name}, seed {seed}: {error}") from None


if __name__ == "__main__":
    pa.set_cpu_count(1)
    with waywiser.join(timeout=60) as ranks:
        compare(ranks, int(sys.argv[1]))
        print(f"{ranks.rank}: {sys.argv[1]} of each are as pyarrow has them")
