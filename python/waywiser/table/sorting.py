"""The rows of all ranks in order: rank 0 has the first of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from waywiser.errors import InputError, InputTypeError
from waywiser.table.frames import Frame, Given, arrow, decoded, given, names, places
from waywiser.table.shuffle import BUDGET, Limits, Shuffle, whole

if TYPE_CHECKING:
    from waywiser.group.group import Group

Order = Literal["ascending", "descending"]
SAMPLES = 64  # of each part, in all: the largest part is then a few percent larger than the others


def sort(
    group: Group,
    data: Frame,
    by: str | Sequence[str | tuple[str, Order]],
    *,
    parts: int | None = None,
    budget: int = BUDGET,
    piece: int | None = None,
    memory: int | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> Frame:
    """The rows of all ranks in order: this rank's part, in the library of `data`. All ranks call it.

    `by`: columns, each with "ascending" (if left out) or "descending"; nulls and NaN come last. Rows of equal keys are
    at one rank, in the order of ranks, then of their rows. The parts are about equal, unless many rows have equal keys:
    samples of all ranks' keys decide.

    `parts`, `budget`, `piece`, `memory` and `spill` as in `Shuffle`; `parts` is a multiple of the number of ranks, and
    a rank sorts one after the other. Raises as `Shuffle`; InputError at all ranks for columns that are not there,
    and for types that pyarrow does not sort.
    """
    frames: list[Given] = []
    sorted_tables: list[Any] = []
    keys: list[tuple[str, str]] = []
    limits = Limits(parts, budget, piece, memory, spill)

    def make() -> Any:
        limits.check_parts(group.size)
        frames.append(given(data))
        keys.extend(_keys(by))
        places(frames[0].table, names([name for name, _ in keys], "by"), "by")
        sorted_tables.append(_sorted(frames[0].table, keys))
        return frames[0].table.schema

    shuffle = Shuffle._of(group, make, f"a sort by {by}", limits)
    table = sorted_tables[0]
    own = _key_table(table, keys)
    cuts = _cuts(group, own, keys, shuffle.parts)
    ends = [*_places_of_cuts(cuts, own, keys), table.num_rows]
    of_rank = shuffle.parts // group.size
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        owner, place = divmod(number, of_rank)
        shuffle.insert(table.slice(begin, end - begin), part=place * group.size + owner)
    in_order = {part: _sorted(rows.unify_dictionaries(), keys) for part, rows in shuffle}
    return frames[0].back(whole([in_order[part] for part in sorted(in_order)]))


def _keys(by: Any) -> list[tuple[str, str]]:
    listed = [by] if isinstance(by, str) else list(by)
    pairs = [(each, "ascending") if isinstance(each, str) else tuple(each) for each in listed]
    for each in pairs:
        if len(each) != 2 or each[1] not in ("ascending", "descending"):
            raise InputTypeError("by= has columns, or pairs: a column, and ascending or descending")
    if not pairs:
        raise InputError("by= has one column or more")
    return pairs


def _key_table(table: Any, keys: list[tuple[str, str]]) -> Any:
    return arrow().table([decoded(table[name]) for name, _ in keys], [f"k{i}" for i in range(len(keys))])


def _order(key_table: Any, keys: list[tuple[str, str]]) -> Any:
    sort_keys = [(f"k{i}", order) for i, (_, order) in enumerate(keys)]
    return arrow().compute.sort_indices(key_table, sort_keys=sort_keys)  # stable


def _sorted(table: Any, keys: list[tuple[str, str]]) -> Any:
    return table.take(_order(_key_table(table, keys), keys))


def _cuts(group: Group, own: Any, keys: list[tuple[str, str]], parts: int) -> Any:
    """The first keys of all parts but the first. `own`: the sorted keys of this rank."""
    import numpy

    counts = group.all_gather(numpy.array([own.num_rows], numpy.int64))
    wanted = SAMPLES * parts * own.num_rows
    samples = -(-wanted // max(int(counts.sum()), 1))
    chosen = (numpy.arange(samples) * own.num_rows + own.num_rows // 2) // max(samples, 1)
    every = _gathered(group, own.take(numpy.minimum(chosen, max(own.num_rows - 1, 0))))
    every = every.take(_order(every, keys))
    cuts = numpy.arange(1, parts) * every.num_rows // parts
    return every.take(cuts if every.num_rows else cuts[:0])


def _gathered(group: Group, table: Any) -> Any:
    """The tables of all ranks, by rank."""
    import numpy

    pa = arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    mine = numpy.frombuffer(sink.getvalue(), numpy.uint8)
    sizes = group.all_gather(numpy.array([mine.size], numpy.int64)).reshape(-1).tolist()
    every, begin, tables = group.all_gather(mine, counts=sizes), 0, []
    for size in sizes:
        tables.append(pa.ipc.open_stream(pa.py_buffer(every[begin : begin + size])).read_all())
        begin += size
    return pa.concat_tables(tables)


def _places_of_cuts(cuts: Any, own: Any, keys: list[tuple[str, str]]) -> list[int]:
    """How many rows of this rank come before each cut. Those that equal it come after it."""
    import numpy

    if cuts.num_rows == 0:
        return [0] * 0
    order = _order(arrow().concat_tables([cuts, own]), keys).to_numpy()
    at = numpy.empty(len(order), numpy.int64)
    at[order] = numpy.arange(len(order))
    return [int(place) - number for number, place in enumerate(at[: cuts.num_rows])]
