"""An unstructured mesh: its cells, their centres, and which of them share a face."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waywiser.errors import InputError
from waywiser.mesh.faces import CORNERS, FLAT, WIDEST, Block, Numbers, distinct, faces_of, first_equals, hollow_cell


class Mesh:
    """Cells of one dimension: triangles and quadrilaterals, or tetrahedra, pyramids, wedges and hexahedra.

    `points`: shape (points, 2) or (points, 3). `cells`: blocks of cells of one kind, each the kind's name ("triangle",
    "quad", "tetra", "pyramid", "wedge", "hexahedron") and the numbers of its corners, shape (cells, corners), in the
    order of VTK. Cells are numbered from 0, block by block. A corner may be repeated, as in hexahedra that are prisms,
    pyramids or tetrahedra: a face is the set of its distinct corners, and a face that has become a line is none.

    `boundaries`: of each named part of the surface its faces, the corners of each in one row of up to four columns,
    the last one repeated where a face has fewer.

    Raises InputError for another kind, for kinds of two dimensions, corners that are no point, points that are not
    finite, a cell whose repeated corners leave it no volume (in two dimensions no area), and two cells of the same
    corners.
    """

    def __init__(
        self, points: Any, cells: Iterable[tuple[str, Any]], boundaries: Mapping[str, Any] | None = None
    ) -> None:
        self.points: NDArray[np.float64] = np.asarray(points, dtype=np.float64)
        if self.points.ndim != 2 or self.points.shape[1] not in (2, 3):
            raise InputError(f"a mesh: points have shape (points, 2) or (points, 3), not {self.points.shape}")
        if not np.isfinite(self.points).all():
            raise InputError("a mesh: a point is not finite")
        self.blocks: list[Block] = [(kind, self._checked(kind, corners)) for kind, corners in cells]
        kinds = {kind for kind, _ in self.blocks}
        if kinds - set(FLAT) and kinds & set(FLAT):
            raise InputError(f"a mesh: cells of two dimensions, {' and '.join(sorted(kinds))}")
        self._check_cells()
        self.boundaries: dict[str, Numbers] = {
            str(name): self._checked_faces(str(name), faces) for name, faces in (boundaries or {}).items()
        }

    def _checked_faces(self, name: str, faces: Any) -> Numbers:
        numbers = np.asarray(faces)
        if numbers.size == 0:
            return np.zeros((0, WIDEST), np.int64)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 2 or not 2 <= numbers.shape[1] <= WIDEST:
            raise InputError(f"a mesh: faces of the boundary {name!r} are rows of 2 to {WIDEST} numbers of points")
        if numbers.min() < 0 or numbers.max() >= len(self.points):
            raise InputError(f"a mesh: a corner of the boundary {name!r} is not one of the {len(self.points)} points")
        return np.pad(numbers.astype(np.int64), ((0, 0), (0, WIDEST - numbers.shape[1])), mode="edge")

    def _checked(self, kind: str, corners: Any) -> Numbers:
        if kind not in CORNERS:
            raise InputError(f"a mesh: cells of kind {kind!r}: there are {', '.join(CORNERS)}")
        numbers = np.asarray(corners)
        if numbers.size == 0:
            return np.zeros((0, CORNERS[kind]), np.int64)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 2 or numbers.shape[1] != CORNERS[kind]:
            raise InputError(f"a mesh: a {kind} has {CORNERS[kind]} corners, given as numbers of points")
        if numbers.min() < 0 or numbers.max() >= len(self.points):
            raise InputError(f"a mesh: a corner of a {kind} is not one of the {len(self.points)} points")
        return numbers.astype(np.int64)

    def _check_cells(self) -> None:
        first = 0
        for kind, corners in self.blocks:
            row = hollow_cell(kind, corners)
            if row is not None:
                what = "area" if kind in FLAT else "volume"
                points = ", ".join(map(str, corners[row].tolist()))
                raise InputError(f"a mesh: cell {first + row}, a {kind} with the corners {points}, has no {what}")
            first += len(corners)
        equals = first_equals(self.blocks)
        repeated = np.flatnonzero(equals != np.arange(len(equals)))
        if len(repeated):
            raise InputError(f"a mesh: cells {equals[repeated[0]]} and {repeated[0]} have the same corners")

    def __len__(self) -> int:
        return sum(len(corners) for _, corners in self.blocks)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{len(corners)} {kind}" for kind, corners in self.blocks)
        return f"<waywiser.mesh.Mesh: {len(self)} cells ({kinds}), {len(self.points)} points>"

    @property
    def is_flat(self) -> bool:
        """Whether the cells are triangles and quadrilaterals. Raises nothing."""
        return all(kind in FLAT for kind, _ in self.blocks)

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """The mean of each cell's distinct corners, shape (cells, 2 or 3). Raises nothing."""
        if not self.blocks:
            return np.zeros((0, self.points.shape[1]))
        return np.concatenate([self._centres(distinct(corners)) for _, corners in self.blocks])

    def _centres(self, sets: Numbers) -> NDArray[np.float64]:
        there = (sets >= 0)[:, :, None]
        centres: NDArray[np.float64] = self.points[sets].sum(axis=1, where=there) / there.sum(axis=1)
        return centres

    def _each_face(self) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        """As faces_of, of all blocks, with numbers of cells for rows."""
        first = 0
        for kind, corners in self.blocks:
            for shown, sets, rows in faces_of(kind, corners):
                yield shown, sets, rows + first
            first += len(corners)

    def each_face(self) -> tuple[Numbers, Numbers]:
        """Every face of every cell: its corners, the last one repeated where there are fewer than four; the cell.

        Area vectors point outwards where the cell lists its corners in the order of VTK. Raises nothing.
        """
        found = [(shown, rows) for shown, _, rows in self._each_face()]
        corners = np.concatenate([np.zeros((0, WIDEST), np.int64), *(shown for shown, _ in found)])
        return corners, np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in found)])

    def shared_faces(self) -> tuple[Numbers, Numbers]:
        """The two rows of each_face() of each face that two cells share; of one that more share, those of each with the
        first. Raises nothing."""
        order, same, _ = self._shared
        second = np.flatnonzero(same)
        starts = np.flatnonzero(~same)
        return order[starts[np.searchsorted(starts, second, side="right") - 1]], order[second]

    @cached_property
    def _shared(self) -> tuple[Numbers, NDArray[np.bool_], Numbers]:
        """An order of all faces in which equal ones are neighbours, whether each is equal to the one before, and the
        cells of the faces in that order."""
        found = [(sets, rows) for _, sets, rows in self._each_face()]
        faces = np.concatenate([np.zeros((0, WIDEST), np.int64), *(sets for sets, _ in found)])
        owners = np.concatenate([np.zeros(0, np.int64), *(rows for _, rows in found)])
        order = np.lexsort(faces.T)
        same = np.zeros(len(faces), bool)
        same[1:] = (faces[order][1:] == faces[order][:-1]).all(axis=1)
        return order, same, owners[order]

    @cached_property
    def pairs(self) -> Numbers:
        """The cells that share a face, shape (faces inside, 2), the smaller number first; ascending.

        Raises InputError if more than two cells share one.
        """
        _, same, owners = self._shared
        third = np.flatnonzero(same[1:] & same[:-1]) + 1
        if len(third):
            cells = ", ".join(map(str, sorted(owners[third[0] - 2 : third[0] + 1].tolist())))
            raise InputError(f"a mesh: more than two cells share a face, for example {cells}")
        second = np.flatnonzero(same)
        pairs = np.sort(np.stack([owners[second - 1], owners[second]], axis=1), axis=1)
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    def surface(self) -> tuple[Numbers, Numbers]:
        """The faces of one cell only: the corners of each, repeated where there are fewer than four; the cell.

        Raises nothing.
        """
        corners, owners = self.each_face()
        order, same, _ = self._shared
        shared = np.zeros(len(order), bool)
        shared[order] = same
        shared[order[:-1]] |= same[1:]
        return corners[~shared], owners[~shared]

    def named_faces(self) -> dict[str, Numbers]:
        """Of each boundary the rows of surface() that are its faces, ascending; faces inside the mesh are none.

        Raises nothing.
        """
        corners, _ = self.surface()
        named = [np.zeros((0, WIDEST), np.int64), *self.boundaries.values()]
        first = first_equals([("quad", corners), ("quad", np.concatenate(named))])
        ends = len(corners) + np.cumsum([len(each) for each in named])
        found = [np.unique(first[end - len(each) : end]) for each, end in zip(named, ends, strict=True)]
        return {name: rows[rows < len(corners)] for name, rows in zip(self.boundaries, found[1:], strict=True)}

    @cached_property
    def graph(self) -> tuple[Numbers, Numbers]:
        """The dual graph: those that cell i shares a face with are `neighbors[starts[i]:starts[i + 1]]`, ascending.

        Returns `starts`, `neighbors`. Raises as pairs.
        """
        ends = np.unique(np.concatenate([self.pairs, self.pairs[:, ::-1]]), axis=0)
        starts = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.bincount(ends[:, 0], minlength=len(self)), out=starts[1:])
        return starts, ends[:, 1].copy()
