"""A rank that compares the calls of waywiser.table with polars' on the whole tables: `table_polars_ranks.py SEEDS`."""

from __future__ import annotations

import random
import sys
from typing import Any

import polars
import pyarrow as pa
import table_cases as cases

import waywiser
from waywiser import table

KINDS = ("int64", "uint8", "float64", "float32", "bool", "string", "date32", "timestamp")
JOINS = {"inner": "inner", "left": "left", "right": "right", "outer": "full", "semi": "semi", "anti": "anti"}
SMALL = {"budget": 1 << 14, "piece": 1 << 10}  # many pieces


def rows_of(frame: Any, names: list[str]) -> list[str]:
    return sorted(repr([row[name] for name in names]) for row in frame.to_dicts())


def all_rows(group: waywiser.Group, mine: Any) -> Any:
    frames: list[Any] = group.all_gather_objects(mine.to_arrow())
    return polars.concat([polars.from_arrow(each) for each in frames])


def require(got: Any, wanted: Any, what: object) -> None:
    names = sorted(wanted.columns)
    if sorted(got.columns) != names or rows_of(got, names) != rows_of(wanted, names):
        raise AssertionError((what, got, wanted))


def made(chance: random.Random, keys: list[str], name: str) -> Any:
    made_table = cases.table([*keys, "int64"], chance.choice(cases.ROWS), 0.2, chance, "k")
    return made_table.rename_columns([*(f"k{i}" for i in range(len(keys))), name])


def merged(group: waywiser.Group, chance: random.Random) -> None:
    keys = chance.sample(KINDS, chance.choice([1, 2]))
    on = [f"k{i}" for i in range(len(keys))]
    whole = [made(chance, keys, name) for name in ("left", "right")]
    mine = [polars.from_arrow(cases.cut(each, group.rank, group.size, chance)) for each in whole]
    one, other = (polars.from_arrow(each) for each in whole)
    for how, join in JOINS.items():
        for equal in (False, True):
            more = {} if join in ("semi", "anti") else {"coalesce": True}
            wanted = one.join(other, on=on, how=join, nulls_equal=equal, **more)  # type: ignore[arg-type]
            parts = chance.choice([None, 3 * group.size])
            got = table.merge(group, *mine, on, how=how, nulls_equal=equal, parts=parts, **SMALL)  # type: ignore[arg-type]
            require(all_rows(group, got), wanted, (how, equal, keys))


def grouped_and_sorted(group: waywiser.Group, chance: random.Random) -> None:
    keys = chance.sample(KINDS, chance.choice([1, 2]))
    on = [f"k{i}" for i in range(len(keys))]
    whole = made(chance, keys, "v")
    mine = polars.from_arrow(cases.cut(whole, group.rank, group.size, chance))
    one = polars.from_arrow(whole)
    got = table.group_by(group, mine, on, [("v", name) for name in ("count", "min", "max")], **SMALL)  # type: ignore[arg-type,list-item]
    v = polars.col("v")
    wanted = one.group_by(on).agg(
        v.count().cast(polars.Int64).alias("v_count"), v.min().alias("v_min"), v.max().alias("v_max")
    )
    require(all_rows(group, got), wanted, ("group_by", keys))
    in_order = all_rows(group, table.sort(group, mine, on, **SMALL))  # type: ignore[arg-type]
    require(in_order, one, ("sort", keys))
    ordered = one.sort(on, nulls_last=True, maintain_order=True)
    if in_order.select(on).to_dicts().__repr__() != ordered.select(on).to_dicts().__repr__():
        raise AssertionError(("sort", keys, in_order, ordered))


if __name__ == "__main__":
    pa.set_cpu_count(1)
    with waywiser.join(timeout=60) as ranks:
        for seed in range(int(sys.argv[1])):
            for call in (merged, grouped_and_sorted):
                call(ranks, random.Random(f"{call.__name__} {seed}"))
        print(f"{ranks.rank}: {sys.argv[1]} of each are as polars has them")
