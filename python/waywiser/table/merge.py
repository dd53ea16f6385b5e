"""Joins of tables over all ranks: each key's rows meet at one rank, where pyarrow joins them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from waywiser.errors import InputError
from waywiser.table.column_join import merged
from waywiser.table.columns import are_columns
from waywiser.table.frames import Frame, Given, arrow, decoded, given, key_places, names, value_type
from waywiser.table.shuffle import BUDGET, Limits, Shuffle, whole
from waywiser.table.skew import give, split_of

if TYPE_CHECKING:
    from waywiser.group.group import Group

How = Literal["inner", "left", "right", "outer", "semi", "anti"]
_JOINS = {
    "inner": "inner", "left": "left outer", "right": "right outer", "outer": "full outer",
    "semi": "left semi", "anti": "left anti",
}  # fmt: skip


class _Plan(NamedTuple):
    left: Given
    right: Given
    left_keys: list[str]
    right_keys: list[str]
    names: list[str]  # of the result, keys first


def merge(
    group: Group,
    left: Frame,
    right: Frame,
    on: str | Sequence[str] | None = None,
    *,
    left_on: str | Sequence[str] | None = None,
    right_on: str | Sequence[str] | None = None,
    how: How = "inner",
    nulls_equal: bool = False,
    suffix: str = "_right",
    parts: int | None = None,
    budget: int = BUDGET,
    piece: int | None = None,
    memory: int | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> Frame:
    """Joins the rows of all ranks: this rank's part of the result, in the library of `left`. All ranks call it.

    The keys are the columns `on` of both tables, or `left_on` and `right_on`. `how`: "inner", "left", "right", "outer"
    as in SQL; "semi" and "anti" are the rows of `left` that have a match, or none. Columns: the keys with the names of
    `left`, the others of `left`, then those of `right`, with `suffix` where the name is taken. A null matches nothing,
    as in SQL; with `nulls_equal` it matches a null, as in pandas. Keys are equal as pyarrow compares them: NaN equals
    NaN, and the two zeros of floating point differ. Keys that are dictionaries come out as their values. Rows of one
    key come to one rank, but for a key with more rows than a rank's part of all, in a join that is not "outer".

    Dicts of arrays are tables too (`Columns`): NumPy's, or PyTorch's, also on GPUs, with one column of integers as key;
    "inner", "semi" or "anti", by sorting the keys of both; of the limits they take `parts` and `piece`.

    `parts`, `budget`, `piece`, `memory` and `spill` as in `Shuffle`, for each of the tables; `parts` is a multiple of
    the number of ranks. A rank joins one part after the other, so that more of them, with `memory`, need less of it;
    its result has their rows by part. Raises as `Shuffle`; InputError at all ranks for
    columns that are not there, and for keys of unlike types.
    """
    limits = Limits(parts, budget, piece, memory, spill)
    if are_columns(left):
        return merged(group, left, right, (on, left_on, right_on), how, suffix, limits)
    plans: list[_Plan] = []

    def left_schema() -> Any:
        limits.check_parts(group.size)
        plans.append(_plan(left, right, on, left_on, right_on, how, suffix))
        return plans[0].left.table.schema

    purpose = f"a merge, {how}, of {on or left_on} and {on or right_on}, nulls_equal={bool(nulls_equal)}"
    from_left = Shuffle._of(group, left_schema, purpose, limits)
    plan = plans[0]
    from_right = Shuffle._of(group, lambda: plan.right.table.schema, purpose + ", right", limits)
    keeps_left, keeps_right = how in ("left", "outer", "anti"), how in ("right", "outer")
    split = split_of(group, [(plan.left.table, plan.left_keys), (plan.right.table, plan.right_keys)], how)
    ranks = group.rank, group.size
    table = _travelling(from_left, plan.left.table, plan.left_keys, nulls_equal, keeps_left, group.rank)
    give(from_left, table, plan.left_keys, split, 0, *ranks)
    from_left.take_all()  # before the other begins: a rank that waits in one shuffle takes nothing of another
    table = _travelling(from_right, plan.right.table, plan.right_keys, nulls_equal, keeps_right, group.rank)
    give(from_right, table, plan.right_keys, split, 1, *ranks)
    from_right.take_all()
    mine = range(group.rank, from_left.parts, group.size)
    joined = [_joined(plan, from_left.extract(part), from_right.extract(part), how, nulls_equal) for part in mine]
    return plan.left.back(whole(joined))


def _plan(left: Frame, right: Frame, on: Any, left_on: Any, right_on: Any, how: str, suffix: str) -> _Plan:
    if how not in _JOINS:
        raise InputError(f"how= is one of {', '.join(_JOINS)}, not {how!r}")
    if (on is None) == (left_on is None) or (left_on is None) != (right_on is None):
        raise InputError("merge takes on=, or left_on= and right_on=")
    one, other = given(left, "left"), given(right, "right")
    left_keys, right_keys = names(on or left_on, "left_on"), names(on or right_on, "right_on")
    if len(left_keys) != len(right_keys):
        raise InputError(f"left_on= has {len(left_keys)} columns, right_on= {len(right_keys)}")
    sides = key_places(one.table, left_keys, "left_on"), key_places(other.table, right_keys, "right_on")
    for i, j in zip(*sides, strict=True):
        a, b = one.table.schema.field(i), other.table.schema.field(j)
        if value_type(a.type) != value_type(b.type):
            raise InputError(f"the key {a.name!r} is {a.type} at the left, {b.name!r} is {b.type} at the right")
    result = left_keys + [name for name in one.table.column_names if name not in left_keys]
    if how not in ("semi", "anti"):
        taken = set(result)
        added = [name for name in other.table.column_names if name not in right_keys]
        result += [name + suffix if name in taken else name for name in added]
    if len(set(result)) < len(result):
        raise InputError(f"with suffix={suffix!r} two columns of the result have one name")
    return _Plan(one, other, left_keys, right_keys, result)


def _travelling(shuffle: Shuffle, table: Any, keys: list[str], nulls_equal: bool, keeps: bool, rank: int) -> Any:
    """All rows but those that match nothing, which stay where they are, or are left out."""
    if not nulls_equal and any(table[key].null_count for key in keys):
        compute = arrow().compute
        valid = compute.is_valid(table[keys[0]])
        for key in keys[1:]:
            valid = compute.and_(valid, compute.is_valid(table[key]))
        if keeps:
            shuffle.insert(table.filter(compute.invert(valid)), part=rank)
        table = table.filter(valid)
    return table


def _joined(plan: _Plan, left: Any, right: Any, how: str, nulls_equal: bool) -> Any:
    import numpy

    pa = arrow()
    left, right = left.unify_dictionaries(), right.unify_dictionaries()
    sides = [
        [decoded(table[key]) for key in keys] for table, keys in ((left, plan.left_keys), (right, plan.right_keys))
    ]
    columns = [_codes(a, b) for a, b in zip(*sides, strict=True)] if nulls_equal else list(zip(*sides, strict=True))
    keys = [f"k{i}" for i in range(len(columns))]
    both = [
        pa.table([*(pair[side] for pair in columns), numpy.arange(table.num_rows)], [*keys, row])
        for side, (table, row) in enumerate(((left, "l"), (right, "r")))
    ]
    rows = both[0].join(both[1], keys, join_type=_JOINS[how])
    order = [(name, "ascending") for name in ("l", "r") if name in rows.column_names]
    rows = rows.sort_by(order)
    made = [_key_of(a, b, rows, how) for a, b in zip(*sides, strict=True)]
    made += [left[name].take(rows["l"]) for name in left.column_names if name not in plan.left_keys]
    if how not in ("semi", "anti"):
        made += [right[name].take(rows["r"]) for name in right.column_names if name not in plan.right_keys]
    return pa.table(made, plan.names)


def _codes(left: Any, right: Any) -> tuple[Any, Any]:
    """A number for each value, and for null."""
    pa = arrow()
    both = pa.chunked_array([*left.chunks, *right.chunks], left.type).dictionary_encode(null_encoding="encode")
    codes = pa.chunked_array([chunk.indices for chunk in both.chunks], pa.int32())  # of one dictionary
    return codes.slice(0, len(left)), codes.slice(len(left))


def _key_of(left: Any, right: Any, rows: Any, how: str) -> Any:
    key = left.take(rows["l"])
    return arrow().compute.coalesce(key, right.take(rows["r"])) if how in ("right", "outer") else key
