"""Keys that have so many rows that one rank would be slower than all others: their rows are split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.table.frames import arrow, places
from waywiser.table.shuffle import Shuffle

if TYPE_CHECKING:
    from waywiser.group.group import Group

SAMPLES = 1024  # of the keys of each rank and side
_LEAST = 32  # samples of one key
_BUCKETS = 1 << 30
# Sides whose rows may be split: each row of the other side that meets them is then at every rank.
_SIDES = {"inner": (0, 1), "left": (0,), "semi": (0,), "anti": (0,), "right": (1,), "outer": ()}


class Split(NamedTuple):
    """Of each side, the buckets of keys whose rows go to all ranks in turn; the other side's go to each."""

    left: frozenset[int]
    right: frozenset[int]


def buckets(table: Any, keys: Sequence[str]) -> Any:
    """Of each row: equal keys have one bucket, at any rank."""
    import numpy

    from waywiser import _core

    columns, numbers = places(table, keys, "on"), [numpy.empty(0, numpy.int32)]
    for batch in table.to_batches():
        schema, array = batch.__arrow_c_array__()
        numbers.append(_core.parts_of_rows(schema, array, columns, _BUCKETS))
    return numpy.concatenate(numbers)


def split_of(group: Group, sides: Sequence[tuple[Any, Sequence[str]]], how: str) -> Split:
    """By samples of all ranks: a bucket with more rows of a side than a rank's equal part of them, and no more of the
    other one. `sides`: table and keys, left and right. All ranks call it, and have the same answer.
    """
    import numpy

    if group.size == 1 or not _SIDES[how]:
        return Split(frozenset(), frozenset())
    mine = numpy.full((2, SAMPLES + 1), -1, numpy.int64)
    for side, (table, keys) in enumerate(sides):
        rows = table.num_rows
        chosen = numpy.arange(min(SAMPLES, rows)) * rows // max(1, min(SAMPLES, rows))
        mine[side, 0] = rows
        mine[side, 1 : 1 + len(chosen)] = buckets(table.take(chosen).combine_chunks(), keys)
    everything = group.all_gather(mine)
    seen, rows_of = [Counter[int](), Counter[int]()], [Counter[int](), Counter[int]()]
    for of_rank in everything:
        for side in (0, 1):
            samples = of_rank[side, 1:][of_rank[side, 1:] >= 0].tolist()
            seen[side].update(samples)
            for bucket, count in Counter(samples).items():
                rows_of[side][bucket] += count * int(of_rank[side, 0]) // len(samples)
    found: list[set[int]] = [set(), set()]
    for side in _SIDES[how]:
        part = everything[:, side, 0].sum() / group.size
        found[side] = {
            bucket
            for bucket, rows in rows_of[side].items()
            if rows > part and seen[side][bucket] >= _LEAST and rows >= rows_of[1 - side][bucket]
        }
    return Split(frozenset(found[0]), frozenset(found[1] - found[0]))


def give(shuffle: Shuffle, table: Any, keys: Sequence[str], split: Split, side: int, rank: int, size: int) -> None:
    """Inserts the rows of one side of a join."""
    import numpy

    if not any(split):
        return shuffle.insert(table, on=keys)
    numbers = buckets(table, keys)
    spread, copied = (numpy.isin(numbers, list(split[each])) for each in (side, 1 - side))
    shuffle.insert(table.filter(arrow().array(~(spread | copied))), on=keys)
    rows = numpy.flatnonzero(spread)
    to_all = table.filter(arrow().array(copied))
    for part in range(size):
        first = (part - rank) % size  # ranks begin at different parts
        shuffle.insert(table.take(rows[first::size]), part=part)
        shuffle.insert(to_all, part=part)
