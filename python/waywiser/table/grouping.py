"""Sums and the like over the rows of all ranks, by key."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from waywiser.errors import InputError, InputTypeError
from waywiser.table.frames import Frame, Given, arrow, decoded, given, names, places
from waywiser.table.shuffle import BUDGET, Limits, Shuffle, whole

if TYPE_CHECKING:
    from waywiser.group.group import Group

Aggregate = Literal["sum", "count", "min", "max", "mean"]
_PARTS: dict[str, tuple[str, ...]] = {
    "sum": ("sum",), "count": ("count",), "min": ("min",), "max": ("max",), "mean": ("sum", "count"),
}  # fmt: skip
_OF_PARTS = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}  # what makes one of those of all ranks


def group_by(
    group: Group,
    data: Frame,
    by: str | Sequence[str],
    aggregates: Sequence[tuple[str, Aggregate]],
    *,
    parts: int | None = None,
    budget: int = BUDGET,
    piece: int | None = None,
    memory: int | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> Frame:
    """One row for each key of all ranks: this rank's part of the result, in the library of `data`. All ranks call it.

    `aggregates`: columns, each with "sum", "count", "min", "max" or "mean"; the result has the columns `by`, then one
    named `column_sum` and so on for each. Nulls are no values: a count leaves them out, and the rest is null where
    there is no value. A null is a key of its own, as is NaN. Each rank first aggregates its own rows, so that one row
    for each key moves. Keys that are dictionaries come out as their values.

    `parts`, `budget`, `piece`, `memory` and `spill` as in `Shuffle`; `parts` is a multiple of the number of ranks, and
    a rank aggregates one after the other. Raises as `Shuffle`; InputError at all ranks for columns that are not there
    and for types that pyarrow does not aggregate; the mean of decimals of 256 bits is not served.
    """
    frames: list[Given] = []
    tables: list[Any] = []
    keys: list[str] = []
    limits = Limits(parts, budget, piece, memory, spill)

    def make() -> Any:
        limits.check_parts(group.size)
        frames.append(given(data))
        keys.extend(names(by, "by"))
        tables.append(_own(frames[0].table, keys, aggregates))
        return tables[0].schema

    shuffle = Shuffle._of(group, make, f"a group_by of {by}: {aggregates}", limits)
    places_of_keys = tables[0].column_names[: len(keys)]
    shuffle.insert(tables[0], on=places_of_keys)
    wanted = [(name, _OF_PARTS[name.split("_")[0]]) for name in tables[0].column_names[len(keys) :]]
    of_all = whole([rows.group_by(places_of_keys).aggregate(wanted) for _, rows in shuffle])
    return frames[0].back(_result(of_all, keys, aggregates, frames[0].table.schema))


def _own(table: Any, keys: list[str], aggregates: Any) -> Any:
    """The parts of this rank: keys k0, ..., then sum_0 and so on, by the number of the column."""
    _check(table, aggregates)
    columns = list(dict.fromkeys(column for column, _ in aggregates))
    places(table, columns, "aggregates")
    places(table, keys, "by")
    pa = arrow()
    key_names = [f"k{i}" for i in range(len(keys))]
    arrays = [decoded(table[key]) for key in keys] + [table[column] for column in columns]
    renamed = pa.table(arrays, [*key_names, *map(str, range(len(columns)))])
    wanted = sorted({(str(columns.index(column)), part) for column, name in aggregates for part in _PARTS[name]})
    own = renamed.group_by(key_names).aggregate(wanted)
    made = [own[name] for name in key_names] + [own[f"{column}_{part}"] for column, part in wanted]
    return pa.table(made, key_names + [f"{part}_{column}" for column, part in wanted])


def _check(table: Any, aggregates: Any) -> None:
    if not all(isinstance(each, tuple) and len(each) == 2 for each in aggregates):
        raise InputTypeError("aggregates= has pairs: a column, and sum, count, min, max or mean")
    for column, name in aggregates:
        if name not in _PARTS:
            raise InputError(f"aggregates= has {name!r}, not sum, count, min, max or mean")
        places(table, [column], "aggregates")
        if name == "mean" and arrow().types.is_decimal256(table[column].type):
            raise InputError(f"the mean of decimals of 256 bits, as {column!r} is, is not served: take sum and count")


def _result(of_all: Any, keys: list[str], aggregates: Any, types: Any) -> Any:
    pa = arrow()
    columns = list(dict.fromkeys(column for column, _ in aggregates))
    made = [of_all[f"k{i}"] for i in range(len(keys))]
    for column, name in aggregates:
        parts = [of_all[f"{part}_{columns.index(column)}_{_OF_PARTS[part]}"] for part in _PARTS[name]]
        if name == "mean":
            made.append(_mean(types.field(column).type, *parts))
        else:
            made.append(parts[0])
    return pa.table(made, keys + [f"{column}_{name}" for column, name in aggregates])


def _mean(kind: Any, total: Any, count: Any) -> Any:
    """As pyarrow has it: of decimals with the type of the column, and half a digit goes away from zero."""
    pa = arrow()
    if not pa.types.is_decimal(kind):
        wide = [pa.compute.cast(part, pa.float64(), safe=False) for part in (total, count)]
        return pa.compute.divide(*wide)
    digits = kind.scale
    exact = pa.compute.divide(total.cast(pa.decimal256(38, digits)), count.cast(pa.decimal256(19, 0)))
    return pa.compute.round(exact, digits, "half_towards_infinity").cast(kind)
