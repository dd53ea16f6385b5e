"""Rows of arrays to the ranks that own their parts, in rounds of one part for each rank."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.errors import InputError
from waywiser.table.columns import Columns, Library, part_of_rows, rows_of

if TYPE_CHECKING:
    from waywiser.group.future import Future
    from waywiser.group.group import Group

PIECE = 512 << 20  # bytes of one message, at most; two for each pair of ranks are under way
_FIRST = 128 << 20  # of the first one, whose rows are gathered before any move; each may be twice as long as the last
_UNIT = 16 << 10  # bytes that are gathered as one by their number, at most
_LONG = 32 << 20  # of runs in the middle: these are gathered one by one
_LONG_ODD = 256 << 10  # the same where a unit would be a few rows
_WHOLE = 256 << 20  # a run goes from where it lies
# Runs of this mean length go from where they lie, as parts of one message. Where two ranks shared an H200, a copy took
# 6 us to begin, and runs of 256 KiB were 3 times slower so than gathered; NVLink carries 4 MiB in 11 us. On two GPUs it
# has not been measured.
_APART = 4 << 20


class Sorted(NamedTuple):
    """The rows of a rank by part, each part's in `runs` whose lengths all ranks are told. `order` has the numbers of
    rows, in units of `unit` rows that stay together; None: run i of all begins at row `begins[i]`. `apart`: messages
    are of runs from where they lie.
    """

    library: Library
    columns: Columns
    runs: list[list[int]]
    order: Any
    unit: int
    begins: list[int]
    apart: bool = False

    @property
    def counts(self) -> list[int]:
        return [sum(of_part) for of_part in self.runs]


def by_keys(library: Library, columns: Columns, keys: Sequence[Any], parts: int) -> Sorted:
    """Each row by the hash of its keys."""
    order, counts = library.by_part(part_of_rows(library, keys, parts), parts)
    return Sorted(library, columns, [[count] for count in counts], order, 1, [])


def by_runs(library: Library, columns: Columns, rows: Sequence[int], to: Sequence[int], parts: int) -> Sorted:
    """Runs of `rows[i]` rows, one behind the other, of which each belongs to part `to[i]`. Raises InputError."""
    import numpy

    lengths, owners = (numpy.asarray(each, numpy.int64).reshape(-1) for each in (rows, to))
    if len(lengths) != len(owners) or (len(lengths) and lengths.min() < 0) or lengths.sum() != rows_of(columns):
        told = f"rows= has {lengths.sum()} rows in {len(lengths)} runs, to= {len(owners)} parts"
        raise InputError(f"{told}: not the table's")
    if len(owners) and not 0 <= owners.min() <= owners.max() < parts:
        raise InputError(f"to= has parts that are not in 0 to {parts - 1}")
    columns = {name: library.contiguous(array) for name, array in columns.items()}
    counts = numpy.bincount(owners, lengths, parts).astype(numpy.int64)
    if (numpy.diff(owners) >= 0).all():
        in_one = [[count] for count in counts.tolist()]
        return Sorted(library, columns, in_one, None, 1, _before(counts.tolist()), library.sends_runs)
    narrowest, widest = (of(map(_row_bytes, columns.values())) for of in (min, max))
    unit = int(numpy.gcd.reduce(lengths)) or 1
    if unit * widest > _UNIT:
        unit = math.gcd(unit, max(1, _UNIT // widest))
    chosen = numpy.argsort(owners.astype(numpy.int16) if parts <= 1 << 15 else owners, kind="stable")
    begins = (numpy.cumsum(lengths) - lengths)[chosen]
    in_order = lengths[chosen]
    apart = library.sends_runs and lengths.sum() * narrowest >= len(lengths) * _APART
    if apart or lengths.sum() * widest >= len(lengths) * (_LONG if unit * widest > _UNIT // 4 else _LONG_ODD):
        ends = numpy.cumsum(numpy.bincount(owners, minlength=parts))[:-1]
        runs = [each.tolist() for each in numpy.split(in_order, ends)]
        return Sorted(library, columns, runs, None, 1, begins.tolist(), apart)
    units, begins = in_order // unit, begins // unit
    shift = library.numbers(begins - (numpy.cumsum(units) - units))
    order = library.repeat(shift, library.numbers(units)) + library.arange(int(units.sum()))
    return Sorted(library, columns, [[count] for count in counts.tolist()], order, unit, [])


class _Gathering:
    """Rows of a rank, which are in the order of parts from here on."""

    def __init__(self, rows: Sorted) -> None:
        self._rows = rows
        self._firsts = _before([*itertools.chain.from_iterable(rows.runs)])

    def sending(self, group: Group, name: str, begin: int, end: int) -> Callable[[int], Future[None]]:
        """What begins to send these rows to a rank; they are gathered from now on."""
        if not self._rows.apart:
            data = self.rows(name, begin, end)
            return lambda to: group.start_send(data, to)
        array = self._rows.columns[name]
        values = math.prod(array.shape[1:])
        runs = [(first * values, count * values) for first, count in self._runs(begin, end)]
        return lambda to: group._start_send_runs(array, runs, to)

    def rows(self, name: str, begin: int, end: int, into: Any = None) -> Any:
        """A copy, or those of the table itself where they lie in one; with `into` copied there."""
        library, array, unit = self._rows.library, self._rows.columns[name], self._rows.unit
        if self._rows.order is None:
            cuts = [array[first : first + count] for first, count in self._runs(begin, end)] or [array[:0]]
            return cuts[0] if len(cuts) == 1 and into is None else library.in_one(cuts, into)
        order = self._rows.order[begin // unit : end // unit]
        if unit == 1:
            return library.take(array, order, into)
        shape = unit, *array.shape[1:]
        into = None if into is None else into.reshape(len(order), *shape)
        found = library.take(array.reshape(len(array) // unit, *shape), order, into)
        return found.reshape(end - begin, *array.shape[1:])

    def _runs(self, begin: int, end: int) -> list[tuple[int, int]]:
        """From row `begin` to row `end`: where each begins in the table, and its rows."""
        found = []
        run = bisect_right(self._firsts, begin) - 1
        while begin < end:
            length = min(end, self._firsts[run + 1]) - begin
            first = self._rows.begins[run] + begin - self._firsts[run]
            if length > 0:
                found.append((first, length))
            begin, run = begin + length, run + 1
        return found


class _Told(NamedTuple):
    """What a rank gives, as all ranks know it."""

    unit: int
    apart: bool
    runs: list[list[int]]


def _tell(group: Group, rows: Sorted, parts: int) -> list[_Told]:
    """Of each rank."""
    import numpy

    numbers = [len(of_part) for of_part in rows.runs]
    mine = numpy.array([[rows.unit, rows.apart, *numbers]], numpy.int64)
    heads = group.all_gather(mine).reshape(group.size, parts + 2)
    lengths = numpy.array([*itertools.chain.from_iterable(rows.runs)], numpy.int64)
    every = iter(group.all_gather(lengths, counts=heads[:, 2:].sum(1).tolist()).tolist())
    return [
        _Told(unit, bool(apart), [[*itertools.islice(every, number)] for number in of_rank])
        for unit, apart, *of_rank in heads.tolist()
    ]


def rounds(
    group: Group, rows: Sorted, parts: int, piece: int = PIECE, *, together: bool = False
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The parts of this rank, whole, by the rank that gave their rows, then in its order. All ranks take all of them,
    at the same time: one part of each rank moves in a round, or, `together`, all in one. `group` has no other messages
    meanwhile.
    """
    told, gathering = _tell(group, rows, parts), _Gathering(rows)
    at_once = parts if together else group.size
    for first in range(0, parts, at_once):
        yield from _moved(group, rows, told, gathering, range(first, min(first + at_once, parts)), piece)


def _moved(
    group: Group, rows: Sorted, told: list[_Told], gathering: _Gathering, parts: range, piece: int
) -> list[tuple[int, dict[str, Any]]]:
    """Two messages are under way in each direction between two ranks; what stays here is copied meanwhile."""
    rank, size = group.rank, group.size
    to_others = [(rank + distance) % size for distance in range(1, size)]
    gives: dict[int, list[tuple[str, int, int]]] = {to: [] for to in to_others}
    takes: dict[int, list[Any]] = {source: [] for source in to_others}
    found, mine = [], []
    begins = _before(rows.counts)
    for part in parts:
        owner = part % size
        if owner != rank:
            for name, array in rows.columns.items():
                cuts = _cuts(told[rank], part, array, piece, len(gives[owner]))
                gives[owner] += [(name, begins[part] + begin, begins[part] + end) for begin, end in cuts]
            continue
        counts = [sum(each.runs[part]) for each in told]
        columns = {name: rows.library.empty(array, sum(counts)) for name, array in rows.columns.items()}
        at = _before(counts)
        for source, each in enumerate(told):
            for name, array in columns.items():
                stays = source == rank
                limits = (min(piece, _FIRST), 0) if stays else (piece, len(takes[source]))
                for begin, end in _cuts(each, part, array, *limits):
                    whole = array[at[source] + begin : at[source] + end]
                    if stays:
                        mine.append((name, begins[part] + begin, begins[part] + end, whole))
                    else:
                        takes[source].append(whole)
        found.append((part, columns))
    before: list[Any] = []
    turns = max((len(each) for each in (*gives.values(), *takes.values())), default=0)
    for turn in range(turns):
        sent = [(to, gathering.sending(group, *gives[to][turn])) for to in to_others if turn < len(gives[to])]
        now = [group.start_recv(takes[source][turn], source) for source in to_others if turn < len(takes[source])]
        now += [send(to) for to, send in sent]
        for one in mine[turn * len(mine) // turns : (turn + 1) * len(mine) // turns]:
            gathering.rows(*one)
            for future in now:
                future.done()  # so that they begin
        for future in before:
            future.wait()
        before = now
    for one in mine if turns == 0 else []:
        gathering.rows(*one)
    for future in before:
        future.wait()
    return found


def _cuts(told: _Told, part: int, array: Any, piece: int, sent: int) -> Iterator[tuple[int, int]]:
    """Of the rows of a part, at most `piece` bytes in each: long runs alone, short ones together; or all `apart` in
    messages that are as long as they may be. `sent`: as many messages come before.
    """
    width = max(1, _row_bytes(array))
    if told.apart:
        whole, rows = sum(told.runs[part]), max(1, piece // width)
        yield from ((begin, min(begin + rows, whole)) for begin in range(0, whole, rows))
        return
    limits = (min(piece, _FIRST << min(turn, 20)) for turn in itertools.count(sent))
    steps = (max(1, limit // width // told.unit) * told.unit for limit in limits)
    step = next(steps)
    begin = at = 0
    for length in told.runs[part]:
        is_whole = length * width >= _WHOLE
        if at > begin and (is_whole or at + length - begin > step):
            yield begin, at
            begin, step = at, next(steps)
        at += length
        while at - begin > step or (is_whole and at > begin):
            yield begin, min(begin + step, at)
            begin, step = min(begin + step, at), next(steps)
    if at > begin:
        yield begin, at


def _before(counts: list[int]) -> list[int]:
    """The sum of all before each, and of all."""
    return [*itertools.accumulate(counts, initial=0)]


def _row_bytes(array: Any) -> int:
    values: int = math.prod(array.shape[1:])
    return values * int(array.itemsize)
