"""How a domain is cut up: which cells of a rank's arrays other ranks own, and which of its cells others need."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError, InputTypeError
from waywiser.group.types import Array
from waywiser.halo.fields import HaloField
from waywiser.halo.gathering import gathered

if TYPE_CHECKING:
    import numpy

    from waywiser import _core
    from waywiser.group.group import Group


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


class GridPartition(Partition):
    """A structured grid of 1 to 4 dimensions in boxes, one for each rank of `group`.

    `shape`: cells of the whole grid, without ghosts. `ghost`: how many ghost cells an array has on both sides, one
    number or one for each dimension. `periodic`: whether the grid repeats itself, one bool or one for each dimension.
    `parts`: how many parts each dimension is cut into; left out, they are chosen so that few cells lie on cuts. Ghosts
    are filled in one step, edges and corners too; those beyond a border that is not periodic stay as they are.

    `first` and `count`: the cells that this rank owns, by dimension, in the whole grid. `interior` selects them in its
    arrays: `field[grid.interior]`. `local_shape`: the shape of its arrays, `count` with ghosts.

    Raises InputError for numbers that make no grid, or if `parts` do not multiply to the number of ranks.
    """

    def __init__(
        self,
        group: Group,
        shape: Sequence[int],
        *,
        ghost: int | Sequence[int] = 1,
        periodic: bool | Sequence[bool] = False,
        parts: Sequence[int] | None = None,
    ) -> None:
        from waywiser import _core

        cells = _numbers("shape", shape)
        widths = _of_each("ghost", ghost, len(cells))
        repeats = [bool(each) for each in _of_each("periodic", periodic, len(cells))]
        if parts is None and not cells:
            raise InputError("shape= has no dimensions")
        cut = _core.ranks_per_dimension(cells, group.size) if parts is None else _numbers("parts", parts)
        grid = _core.even_grid(cells, widths, repeats, cut)
        ranks = 1
        for each in cut:
            ranks *= each
        if ranks != group.size:
            raise InputError(f"parts={tuple(cut)} are {ranks} boxes for {group.size} ranks")
        super().__init__(group, _core.grid_partition(grid, group.rank), tuple(grid.local_shape(group.rank)))
        self._boxes = [grid.box(rank) for rank in range(group.size)]
        first, count = self._boxes[group.rank]
        self.shape = tuple(cells)
        self.ghost = tuple(widths)
        self.periodic = tuple(repeats)
        self.parts, self.first, self.count = tuple(cut), tuple(first), tuple(count)
        self.interior = tuple(slice(width, width + cells) for width, cells in zip(widths, count, strict=True))

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
    try:
        return given if kind else array("q", map(index, given))
    except (TypeError, OverflowError) as error:
        raise InputTypeError(f"cells are integers: {error}") from None
