"""Tables cut by the hash of their keys, at one rank or over all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from waywiser.table.column_shuffle import partitioned, shuffled
from waywiser.table.columns import are_columns
from waywiser.table.frames import Frame, Given, given, key_places, names, places
from waywiser.table.shuffle import BUDGET, Limits, Shuffle, whole

if TYPE_CHECKING:
    from waywiser.group.group import Group


def partition(data: Frame, on: str | Sequence[str], parts: int) -> list[Frame]:
    """The table in `parts` tables, each row by the hash of its columns `on`, in the order of `data`.

    `data` may be a dict of arrays (`Columns`), whose keys are integers. No other rank takes part; the same keys have
    the same part everywhere, as `Shuffle.insert` has it. Raises InputError for columns that are not there and for types
    that differ; UnavailableError for types that are not served, and for keys that are lists or structs.
    """
    if are_columns(data):
        return partitioned(data, on, parts)
    import numpy

    from waywiser import _core

    table, back = given(data)
    keys = places(table, names(on, "on"), "on")
    of_rows = [numpy.empty(0, numpy.int32)]
    for batch in table.to_batches():
        schema, array = batch.__arrow_c_array__()
        of_rows.append(_core.parts_of_rows(schema, array, keys, parts))
    numbers = numpy.concatenate(of_rows)
    return [back(table.take(numpy.flatnonzero(numbers == part))) for part in range(parts)]


def shuffle(
    group: Group, data: Frame, on: str | Sequence[str], *, budget: int = BUDGET, piece: int | None = None
) -> Frame:
    """The rows of all ranks whose keys belong to this rank, in the library of `data`: rows with equal values in the
    columns `on` are at one rank afterwards. All ranks call it, with the same columns.

    `data` may be a dict of arrays (`Columns`), also on GPUs, whose keys are integers; `budget` and `piece` are not for
    these. `budget` and `piece` as in `Shuffle`. The order is that of ranks, then of their rows. Raises InputError and
    UnavailableError as `Shuffle`.
    """
    if are_columns(data):
        return shuffled(group, data, on, f"a shuffle of arrays on {_words(on)}")
    mine: list[Given] = []
    keys: list[str] = []

    def make() -> Any:
        mine.append(given(data))
        keys.extend(names(on, "on"))
        key_places(mine[0].table, keys, "on")
        return mine[0].table.schema

    moved = Shuffle._of(group, make, f"a shuffle on {_words(on)}", Limits(None, budget, piece))
    moved.insert(mine[0].table, on=keys)
    return mine[0].back(whole([rows for _, rows in moved]))


def _words(on: Any) -> str:
    return str(on) if isinstance(on, str) else ", ".join(map(str, on))
