"""Rows of arrays to the ranks that own their parts, in rounds of one part for each rank."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.errors import InputError
from waywiser.table.columns import Columns, Library, part_of_rows, rows_of

if TYPE_CHECKING:
    from waywiser.group.group import Group

PIECE = 128 << 20  # bytes of one message, at most; two for each pair of ranks are under way
_RUN = 16 << 10  # bytes that are gathered as one, at most


class Sorted(NamedTuple):
    """The rows of a rank by part: `order` has their numbers, in units of `unit` rows that stay together; None: they lie
    in this order already. `counts`: the rows of each part.
    """

    library: Library
    columns: Columns
    order: Any
    unit: int
    counts: list[int]


def by_keys(library: Library, columns: Columns, keys: Sequence[Any], parts: int) -> Sorted:
    """Each row by the hash of its keys."""
    order, counts = library.by_part(part_of_rows(library, keys, parts), parts)
    return Sorted(library, columns, order, 1, counts)


def by_runs(library: Library, columns: Columns, rows: Sequence[int], to: Sequence[int], parts: int) -> Sorted:
    """Runs of `rows[i]` rows, one behind the other, of which each belongs to part `to[i]`. Raises InputError."""
    import numpy

    lengths, owners = (numpy.asarray(each, numpy.int64).reshape(-1) for each in (rows, to))
    if len(lengths) != len(owners) or (len(lengths) and lengths.min() < 0) or lengths.sum() != rows_of(columns):
        told = f"rows= has {lengths.sum()} rows in {len(lengths)} runs, to= {len(owners)} parts"
        raise InputError(f"{told}: not the table's")
    if len(owners) and not 0 <= owners.min() <= owners.max() < parts:
        raise InputError(f"to= has parts that are not in 0 to {parts - 1}")
    counts = numpy.bincount(owners, lengths, parts).astype(numpy.int64)
    if (numpy.diff(owners) >= 0).all():
        return Sorted(library, columns, None, 1, counts.tolist())
    widest = max(_row_bytes(each) for each in columns.values())
    unit = int(numpy.gcd.reduce(lengths)) or 1
    if unit * widest > _RUN:
        unit = math.gcd(unit, max(1, _RUN // widest))
    chosen = numpy.argsort(owners.astype(numpy.int16) if parts <= 1 << 15 else owners, kind="stable")
    units, begins = lengths[chosen] // unit, (numpy.cumsum(lengths) - lengths)[chosen] // unit
    shift = library.numbers(begins - (numpy.cumsum(units) - units))
    order = library.repeat(shift, library.numbers(units)) + library.arange(int(units.sum()))
    return Sorted(library, columns, order, unit, counts.tolist())


def gathered(rows: Sorted, name: str, begin: int, end: int) -> Any:
    """Of those in the order of parts."""
    array, unit = rows.columns[name], rows.unit
    if rows.order is None:
        return array[begin:end]
    if unit == 1:
        return rows.library.take(array, rows.order[begin:end])
    in_units = array.reshape(len(array) // unit, unit, *array.shape[1:])
    return rows.library.take(in_units, rows.order[begin // unit : end // unit]).reshape(end - begin, *array.shape[1:])


def rounds(
    group: Group, rows: Sorted, parts: int, piece: int = PIECE, *, together: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The parts of this rank, whole, by the rank that gave their rows, then in its order. All ranks take all of them,
    at the same time: one part of each rank moves in a round, or, `together`, all in one. `group` has no other messages
    meanwhile.
    """
    import numpy

    told = group.all_gather(numpy.array([[rows.unit, *rows.counts]], numpy.int64)).reshape(group.size, parts + 1)
    units, counts = told[:, 0].tolist(), told[:, 1:].tolist()
    at_once = parts if together else group.size
    for first in range(0, parts, at_once):
        yield from _moved(group, rows, units, counts, range(first, min(first + at_once, parts)), piece)


def _moved(
    group: Group, rows: Sorted, units: list[int], counts: list[list[int]], parts: range, piece: int
) -> list[tuple[int, dict[str, Any]]]:
    """`units`, `counts`: of each rank. Two messages are under way in each direction between two ranks."""
    rank, size = group.rank, group.size
    to_others = [(rank + distance) % size for distance in range(1, size)]
    gives: dict[int, list[tuple[str, int, int]]] = {to: [] for to in to_others}
    takes: dict[int, list[Any]] = {source: [] for source in to_others}
    found, mine = [], []
    for part in parts:
        begin, owner = sum(rows.counts[:part]), part % size
        if owner != rank:
            for name, array in rows.columns.items():
                cuts = _cuts(rows.counts[part], units[rank], array, piece)
                gives[owner] += [(name, begin + cut.start, begin + cut.stop) for cut in cuts]
            continue
        columns = {name: rows.library.empty(array, sum(each[part] for each in counts))
                   for name, array in rows.columns.items()}  # fmt: skip
        at = 0
        for source, of_source in enumerate(counts):
            for name, array in columns.items():
                whole = array[at : at + of_source[part]]
                if source == rank:
                    mine.append((whole, name, begin))
                else:
                    takes[source] += [whole[cut] for cut in _cuts(len(whole), units[source], array, piece)]
            at += of_source[part]
        found.append((part, columns))
    before: list[Any] = []
    for turn in range(max((len(each) for each in (*gives.values(), *takes.values())), default=0)):
        sent = [(to, gathered(rows, *gives[to][turn])) for to in to_others if turn < len(gives[to])]
        now = [group.start_recv(takes[source][turn], source) for source in to_others if turn < len(takes[source])]
        now += [group.start_send(data, to) for to, data in sent]
        for each in before:
            each.wait()
        before = now
    for whole, name, begin in mine:
        whole[:] = gathered(rows, name, begin, begin + len(whole))
    for each in before:
        each.wait()
    return found


def _cuts(count: int, unit: int, array: Any, piece: int) -> list[slice]:
    """Of `count` rows, at most `piece` bytes in each."""
    step = max(1, piece // max(1, _row_bytes(array)) // unit) * unit
    return [slice(begin, min(begin + step, count)) for begin in range(0, count, step)]


def _row_bytes(array: Any) -> int:
    values: int = math.prod(array.shape[1:])
    return values * int(array.itemsize)
