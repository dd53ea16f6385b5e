"""How a domain is cut up: which cells of a rank's arrays other ranks own, and which of its cells others need."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.errors import InputError, InputTypeError
from waywiser.group.types import Array
from waywiser.halo.fields import HaloField
from waywiser.halo.gathering import gathered

if TYPE_CHECKING:
    import numpy

    from waywiser import _core
    from waywiser.group.group import Group

Box = tuple[Sequence[int], Sequence[int]]  # the first cell, the number of cells, by dimension


class Partition:
    """A rank's part of a domain: `GridPartition` or `MeshPartition`.

    `local_shape`: the shape of this rank's arrays, ghosts included, without components. `group`: its ranks.
    """

    def __init__(self, group: Group, core: _core.HaloPartition, local_shape: tuple[int, ...]) -> None:
        self.group = group
        self._core = core
        self.local_shape = local_shape

    @property
    def neighbors(self) -> list[int]:
        """The ranks that this one exchanges cells with, ascending; it may be among them. Raises nothing."""
        return sorted(set(self._core.neighbors))


class Sizes(NamedTuple):
    """Of a grid, each by dimension."""

    shape: list[int]
    ghost: list[int]
    periodic: list[bool]


class GridPartition(Partition):
    """A structured grid of 1 to 4 dimensions in boxes, one for each rank of `group`.

    `shape`: cells of the whole grid, without ghosts. `ghost`: how many ghost cells an array has on both sides, one
    number or one for each dimension. `periodic`: whether the grid repeats itself, one bool or one for each dimension.
    `parts`: how many parts each dimension is cut into; left out, they are chosen so that few cells lie on cuts. `box`
    instead: the cells that this rank owns, as its first cell and its number of cells by dimension; all ranks give one,
    and the boxes cover the grid. Ghosts are filled in one step, edges and corners too; those beyond a border that is
    not periodic, and those of a rank without cells, stay as they are.

    `first` and `count`: the cells that this rank owns, by dimension, in the whole grid. `interior` selects them in its
    arrays: `field[grid.interior]`. `local_shape`: the shape of its arrays, `count` with ghosts.

    Raises InputError for numbers that make no grid, or if `parts` do not multiply to the number of ranks; with `box`,
    at all ranks and as every call of a group.
    """

    def __init__(
        self,
        group: Group,
        shape: Sequence[int],
        *,
        ghost: int | Sequence[int] = 1,
        periodic: bool | Sequence[bool] = False,
        parts: Sequence[int] | None = None,
        box: Box | None = None,
    ) -> None:
        from waywiser import _core

        if box is not None:
            return self._of_boxes(group, shape, ghost, periodic, parts, box)
        sizes = _sizes(shape, ghost, periodic)
        if parts is None and not sizes.shape:
            raise InputError("shape= has no dimensions")
        cut = _core.ranks_per_dimension(sizes.shape, group.size) if parts is None else _numbers("parts", parts)
        grid = _core.even_grid(*sizes, cut)
        ranks = math.prod(cut)
        if ranks != group.size:
            raise InputError(f"parts={tuple(cut)} are {ranks} boxes for {group.size} ranks")
        self._take(group, grid, sizes, tuple(cut))

    def _of_boxes(
        self, group: Group, shape: Any, ghost: Any, periodic: Any, parts: Sequence[int] | None, box: Any
    ) -> None:
        from waywiser import _core

        try:
            sizes = _sizes(shape, ghost, periodic)
            if parts is not None:
                raise InputError("give parts= or box=")
            try:
                first, count = box
            except (TypeError, ValueError):
                raise InputTypeError("box= is a pair: the first cell, the numbers of cells") from None
            mine = _numbers("box", first), _numbers("box", count)
        except InputError:
            with suppress(InputError):
                _core.gathered_grid(group._core, [], [], [], [0], [0])  # no box, so that the other ranks raise too
            raise
        self._take(group, _core.gathered_grid(group._core, *sizes, *mine), sizes, ())

    def _take(self, group: Group, grid: _core.HaloGrid, sizes: Sizes, parts: tuple[int, ...]) -> None:
        from waywiser import _core

        super().__init__(group, _core.grid_partition(grid, group.rank), tuple(grid.local_shape(group.rank)))
        self._boxes = [grid.box(rank) for rank in range(group.size)]
        self._staggered: dict[tuple[int, ...], GridPartition] = {}
        first, count = self._boxes[group.rank]
        self.shape, self.ghost, self.periodic = tuple(sizes.shape), tuple(sizes.ghost), tuple(sizes.periodic)
        self.parts, self.first, self.count = parts, tuple(first), tuple(count)
        self.interior = tuple(slice(width, width + cells) for width, cells in zip(self.ghost, count, strict=True))

    def staggered(self, *axes: int) -> GridPartition:
        """The faces between the cells along one of `axes`; of two the edges, of three the corners: one more than cells
        along each axis that is not periodic, cut where the cells are cut.

        A rank owns the faces at the lower sides of its cells; the face at the upper side of its last one is a ghost (of
        width 1 or more), but at the upper border of the grid it owns that one too, and its arrays are longer by one.
        The same axes give the same object. Raises InputError for an axis that does not exist.
        """
        from waywiser import _core

        try:
            along = tuple(sorted({range(len(self.shape))[axis] for axis in axes}))
        except (IndexError, TypeError):
            raise InputError(f"staggered: axes are whole numbers below {len(self.shape)}, not {axes}") from None
        if along not in self._staggered:
            longer = [axis in along and not self.periodic[axis] for axis in range(len(self.shape))]
            shape = [cells + more for cells, more in zip(self.shape, longer, strict=True)]
            boxes = [
                (first, [c + (more and all(count) and f + c == end)
                         for f, c, more, end in zip(first, count, longer, self.shape, strict=True)])
                for first, count in self._boxes
            ]  # fmt: skip
            sizes = Sizes(shape, list(self.ghost), list(self.periodic))
            made = GridPartition.__new__(GridPartition)
            made._take(self.group, _core.box_grid(*sizes, boxes), sizes, self.parts)
            self._staggered[along] = made
        return self._staggered[along]

    def gather(self, field: HaloField, root: int = 0) -> numpy.ndarray[Any, Any] | None:
        """The values of the whole grid, without ghosts, as a NumPy array at rank `root`; None at the others. All ranks
        call it, with the same type and components; `field` as in `waywiser.HaloExchange`.

        Raises as every call of a group; InputError at all ranks for an array of another shape, and for types or
        components that differ.
        """
        return gathered(self.group, self._boxes, self.ghost, field, root)

    def __repr__(self) -> str:
        return f"<waywiser.GridPartition: {self.count} cells from {self.first} of {self.shape}>"


class MeshPartition(Partition):
    """An unstructured mesh: lists of cells for each neighbour.

    `cells`: the number of cells in this rank's arrays, ghosts included. `neighbors`: for each neighbour its rank, the
    cells whose values it is given, and the cells that it fills, as integers from 0 to `cells` - 1. What one rank gives
    to another and what the other takes are equally many, in an order that both know. A cell may be given to several
    ranks; one that is filled is in one list only. A rank may be its own neighbour.

    Raises InputError for ranks or cells that do not exist, and for cells that are filled twice, or given and filled.
    """

    def __init__(
        self, group: Group, cells: int, neighbors: Iterable[tuple[int, Sequence[int] | Array, Sequence[int] | Array]]
    ) -> None:
        from waywiser import _core

        lists = []
        for each in neighbors:
            try:
                peer, give, take = each
            except (TypeError, ValueError):
                raise InputTypeError("neighbors are tuples: rank, cells given, cells taken") from None
            lists.append((peer, _cells(give), _cells(take)))
        core = _core.listed_partition(group.rank, group.size, _number("cells", cells), lists)
        super().__init__(group, core, (cells,))

    def __repr__(self) -> str:
        return f"<waywiser.MeshPartition: {self.local_shape[0]} cells, neighbours {self.neighbors}>"


def _sizes(shape: Any, ghost: Any, periodic: Any) -> Sizes:
    cells = _numbers("shape", shape)
    repeats = [bool(each) for each in _of_each("periodic", periodic, len(cells))]
    return Sizes(cells, _of_each("ghost", ghost, len(cells)), repeats)


def _number(name: str, value: Any) -> int:
    try:
        number = index(value)
    except TypeError:
        raise InputTypeError(f"{name}= is a whole number, not {type(value).__name__}") from None
    if not 0 <= number < 1 << 60:
        raise InputError(f"{name}={number} is out of range")
    return number


def _numbers(name: str, values: Any) -> list[int]:
    try:
        listed = list(values)
    except TypeError:
        raise InputTypeError(f"{name}= has one whole number for each dimension") from None
    return [_number(name, each) for each in listed]


def _of_each(name: str, value: Any, dimensions: int) -> list[int]:
    """One number for each dimension."""
    try:
        listed = list(value)
    except TypeError:
        listed = [value] * dimensions
    if len(listed) != dimensions:
        raise InputError(f"{name}= has {len(listed)} entries for {dimensions} dimensions")
    return [_number(name, each) for each in listed]


def _cells(given: Any) -> Any:
    """A list as the core expects it: an array of 64-bit integers."""
    kind = getattr(getattr(given, "dtype", None), "kind", None)
    if kind not in (None, "i", "u"):
        raise InputTypeError(f"cells are integers, not {given.dtype}")
    if kind and given.ndim != 1:
        raise InputTypeError(f"cells are a list of integers, not an array of {given.ndim} dimensions")
    if kind and not given.dtype.isnative:
        given = given.astype(given.dtype.newbyteorder("="))
    try:
        return given if kind else array("q", map(index, given))
    except (TypeError, OverflowError) as error:
        raise InputTypeError(f"cells are integers: {error}") from None
