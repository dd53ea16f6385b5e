"""Joins of tables that are dicts of arrays, by sorting the keys of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError
from waywiser.table.column_rounds import PIECE, by_keys, rounds
from waywiser.table.column_shuffle import Table, agreed, table_of
from waywiser.table.columns import Columns, Library, named_types, rows_of
from waywiser.table.frames import names
from waywiser.table.shuffle import Limits

if TYPE_CHECKING:
    from waywiser.group.group import Group

HOW = ("inner", "semi", "anti")  # the others need nulls, which arrays do not have


def merged(
    group: Group, left: Columns, right: Columns, on: tuple[Any, Any, Any], how: str, suffix: str, limits: Limits
) -> Columns:
    """As `merge`, of which `on` has on, left_on, right_on. One part after the other is in memory beside the result."""
    tables: list[Table] = []
    keys: list[str] = []

    def make() -> list[tuple[str, str]]:
        keys.extend(_keys(*on))
        limits.check_parts(group.size)
        if limits.memory is not None or limits.spill is not None:
            raise InputError("memory= and spill= are not for tables of arrays: with more parts= less comes at one time")
        if how not in HOW:
            raise InputError(f"how={how!r} of tables of arrays, which have no nulls: it is one of {', '.join(HOW)}")
        tables.extend([table_of(left, keys[0], "left", "left_on"), table_of(right, keys[1], "right", "right_on")])
        one, other = tables
        words = [each.library.words(each.keys[0]) for each in tables]
        if words[0] != words[1] or one.library.name != other.library.name:
            raise InputError(f"the key {keys[0]!r} is {words[0]} at the left, {keys[1]!r} is {words[1]} at the right")
        joined_names(left, right, keys[1], how, suffix)
        return named_types(one.library, left) + named_types(other.library, right)

    own = agreed(group, f"a merge of arrays, {how}, of {on}, parts={limits.parts}", make)
    parts, piece = limits.parts or own.size, limits.piece or PIECE
    library = tables[0].library
    both = [rounds(own, by_keys(each.library, each.columns, each.keys, parts), parts, piece) for each in tables]
    left_key, right_key = keys
    pairs = zip(*both, strict=True)
    found = [joined(library, one, other, left_key, right_key, how, suffix) for (_, one), (_, other) in pairs]
    return library.joined(found)


def _keys(on: Any, left_on: Any, right_on: Any) -> list[str]:
    """The column of keys at the left and at the right."""
    if (on is None) == (left_on is None) or (left_on is None) != (right_on is None):
        raise InputError("merge takes on=, or left_on= and right_on=")
    both = [names(on or left_on, "left_on"), names(on or right_on, "right_on")]
    if any(len(each) != 1 for each in both):
        raise InputError("a merge of tables of arrays has one column of keys")
    return [each[0] for each in both]


def joined_names(left: Columns, right: Columns, right_on: str, how: str, suffix: str) -> dict[str, str]:
    """What the columns of the right table are called in the result. Raises InputError if two have one name."""
    if how != "inner":
        return {}
    named = {name: name + suffix * (name in left) for name in right if name != right_on}
    if len({*named.values(), *left}) < len(named) + len(left):
        raise InputError(f"suffix={suffix!r}: two columns of the result have one name")
    return named


def joined(
    library: Library, left: Columns, right: Columns, left_on: str, right_on: str, how: str, suffix: str
) -> dict[str, Any]:
    """At this rank: the rows of `left` by their keys, each with those of `right` that have its key."""
    keys, order = library.sorted(left[left_on])
    among, rows = library.sorted(right[right_on])
    first = library.places(among, keys, behind=False)
    counts = library.places(among, keys, behind=True) - first
    if how != "inner":
        kept = library.take(order, library.chosen(counts > 0 if how == "semi" else counts == 0))
        return {name: library.take(array, kept) for name, array in left.items()}
    from_left = library.repeat(library.arange(rows_of(left)), counts)
    shift = first - library.running(counts)
    from_right = library.take(rows, library.take(shift, from_left) + library.arange(len(from_left)))
    from_left = library.take(order, from_left)
    found = {name: library.take(array, from_left) for name, array in left.items()}
    for name, called in joined_names(left, right, right_on, how, suffix).items():
        found[called] = library.take(right[name], from_right)
    return found
