"""Three calls for a solver on one structured grid: `init_grid`, `update_halo`, `finalize`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from waywiser.errors import InputError
from waywiser.group.arrays import library_of
from waywiser.group.group import Group
from waywiser.group.joining import join
from waywiser.halo.exchange import HaloExchange
from waywiser.halo.fields import ComponentsFirst, HaloField, array_of
from waywiser.halo.partition import GridPartition

Fields = tuple[Hashable, ...]
MOST_EXCHANGES = 16  # of different fields, kept for the next update


class CurrentGrid:
    """The grid of this program, and the exchanges that it has needed so far, by their fields."""

    def __init__(self, group: Group, joined: bool, grid: GridPartition) -> None:
        self.group = group
        self.joined = joined
        self.grid = grid
        # They keep their arrays and grids, so an address or an id stays that of one.
        self._exchanges: dict[Fields, HaloExchange] = {}

    def exchange(self, fields: tuple[HaloField, ...], grid: GridPartition) -> HaloExchange:
        """The exchange of this memory; made if it is not known, in place of the one that was used longest ago."""
        memory, objects = _memory_of(fields, grid), (id(grid), *map(_object_of, fields))
        key = memory if memory is not None and memory in self._exchanges else objects
        known = self._exchanges.pop(key, None)
        if known is None:
            # All ranks must know it again alike, so one that cannot by the memory decides for all.
            by_objects = self.group.all_reduce(int(memory is None), op="max")
            key = objects if by_objects or memory is None else memory
            known = HaloExchange(self.group, grid, fields)
        self._exchanges[key] = known
        if len(self._exchanges) > MOST_EXCHANGES:
            del self._exchanges[next(iter(self._exchanges))]
        return known


def _memory_of(fields: tuple[HaloField, ...], grid: GridPartition) -> Fields | None:
    """What the arrays are to an exchange, whatever objects show them; None if an array does not tell its address, and
    for an array without elements, whose address may be that of others."""
    found: list[Hashable] = [id(grid)]
    for each in fields:
        array = array_of(each)
        memory = library_of(array).memory(array)
        if memory is None or 0 in memory[1]:
            return None
        found.append((memory, isinstance(each, ComponentsFirst)))
    return tuple(found)


def _object_of(field: HaloField) -> Hashable:
    return id(array_of(field)), isinstance(field, ComponentsFirst)


_current: CurrentGrid | None = None


def init_grid(
    shape: Sequence[int],
    *,
    ghost: int | Sequence[int] = 1,
    periodic: bool | Sequence[bool] = False,
    parts: Sequence[int] | None = None,
    group: Group | None = None,
) -> GridPartition:
    """Cuts a grid of `shape` cells up for all ranks of `group`; left out, it joins the ranks of the job.

    The other arguments are those of `waywiser.GridPartition`, which it returns. All ranks call it. Raises InputError as
    that does, and if there is a grid already; as `waywiser.join`.
    """
    global _current
    if _current is not None:
        raise InputError("init_grid: there is a grid already; finalize() ends it")
    used = join() if group is None else group
    _current = CurrentGrid(used, group is None, GridPartition(used, shape, ghost=ghost, periodic=periodic, parts=parts))
    return _current.grid


def update_halo(*fields: HaloField, grid: GridPartition | None = None) -> None:
    """Fills the ghost cells of the given arrays; all ranks call it with the same fields in the same order. `grid`:
    theirs, such as `staggered(0)` of that of init_grid; left out, that one.

    An exchange of the same memory (address, shape and type of each array) is prepared once, whatever objects show it;
    the last 16 are kept, with their arrays. If an array of any rank has no elements, or does not tell its address (one
    that has only a buffer or DLPack), the objects must be the same. Raises InputError before init_grid; as
    `waywiser.HaloExchange`.
    """
    current = _grid("update_halo")
    current.exchange(fields, current.grid if grid is None else grid).exchange()


def finalize() -> None:
    """Ends the grid; closes the group if init_grid has joined it. Raises InputError before init_grid; as close."""
    global _current
    ended = _grid("finalize")
    _current = None
    if ended.joined:
        ended.group.close()


def _grid(call: str) -> CurrentGrid:
    if _current is None:
        raise InputError(f"{call}: call init_grid first")
    return _current
