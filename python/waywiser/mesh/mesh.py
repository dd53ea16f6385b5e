"""An unstructured mesh: its cells, their centres, and which of them share a face."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waywiser.errors import InputError

Numbers = NDArray[np.int64]
# Of each kind of cell: its faces, as numbers of its corners, in the order of VTK.
FACES: dict[str, tuple[tuple[int, ...], ...]] = {
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
    "tetra": ((0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3)),
    "pyramid": ((0, 1, 2, 3), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
    "wedge": ((0, 1, 2), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    "hexahedron": ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
}
CORNERS = {"triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
FLAT = ("triangle", "quad")
_WIDEST = 4  # corners of a face


class Mesh:
    """Cells of one dimension: triangles and quadrilaterals, or tetrahedra, pyramids, wedges and hexahedra.

    `points`: shape (points, 2) or (points, 3). `cells`: blocks of cells of one kind, each the kind's name ("triangle",
    "quad", "tetra", "pyramid", "wedge", "hexahedron") and the numbers of its corners, shape (cells, corners), in the
    order of VTK. Cells are numbered from 0, block by block.

    Raises InputError for another kind, for kinds of two dimensions, corners that are no point, points that are not
    finite, and a face that more than two cells share.
    """

    def __init__(self, points: Any, cells: Iterable[tuple[str, Any]]) -> None:
        self.points: NDArray[np.float64] = np.asarray(points, dtype=np.float64)
        if self.points.ndim != 2 or self.points.shape[1] not in (2, 3):
            raise InputError(f"a mesh: points have shape (points, 2) or (points, 3), not {self.points.shape}")
        if not np.isfinite(self.points).all():
            raise InputError("a mesh: a point is not finite")
        self.blocks: list[tuple[str, Numbers]] = [(kind, self._checked(kind, corners)) for kind, corners in cells]
        kinds = {kind for kind, _ in self.blocks}
        if kinds - set(FLAT) and kinds & set(FLAT):
            raise InputError(f"a mesh: cells of two dimensions, {' and '.join(sorted(kinds))}")

    def _checked(self, kind: str, corners: Any) -> Numbers:
        if kind not in CORNERS:
            raise InputError(f"a mesh: cells of kind {kind!r}: there are {', '.join(CORNERS)}")
        numbers = np.asarray(corners)
        if numbers.size == 0:
            return np.zeros((0, CORNERS[kind]), np.int64)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 2 or numbers.shape[1] != CORNERS[kind]:
            raise InputError(f"a mesh: a {kind} has {CORNERS[kind]} corners, given as numbers of points")
        if numbers.min() < 0 or numbers.max() >= len(self.points):
            raise InputError(f"a mesh: a corner of a {kind} is none of the {len(self.points)} points")
        return numbers.astype(np.int64)

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
        """The mean of each cell's corners, shape (cells, 2 or 3). Raises nothing."""
        if not self.blocks:
            return np.zeros((0, self.points.shape[1]))
        return np.concatenate([self.points[corners].mean(axis=1) for _, corners in self.blocks])

    @cached_property
    def _faces(self) -> tuple[Numbers, Numbers]:
        """All faces of all cells: sorted corners, -1 where there are fewer than four; the cell of each."""
        faces, owners, first = [np.zeros((0, _WIDEST), np.int64)], [np.zeros(0, np.int64)], 0
        for kind, corners in self.blocks:
            for face in FACES[kind]:
                padded = np.full((len(corners), _WIDEST), -1, np.int64)
                padded[:, : len(face)] = corners[:, list(face)]
                faces.append(np.sort(padded, axis=1))
                owners.append(np.arange(first, first + len(corners)))
            first += len(corners)
        return np.concatenate(faces), np.concatenate(owners)

    @cached_property
    def pairs(self) -> Numbers:
        """The cells that share a face, shape (faces inside, 2), the smaller number first; ascending.

        Raises InputError if more than two cells share one.
        """
        faces, owners = self._faces
        order = np.lexsort(faces.T)
        same = (faces[order][1:] == faces[order][:-1]).all(axis=1)
        if (same[1:] & same[:-1]).any():
            raise InputError("a mesh: more than two cells share a face")
        first = np.flatnonzero(same)
        pairs = np.sort(np.stack([owners[order[first]], owners[order[first + 1]]], axis=1), axis=1)
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]

    def surface(self) -> tuple[Numbers, Numbers]:
        """The faces of one cell only: the corners of each, repeated where there are fewer than four; the cell.

        Raises nothing.
        """
        corners, owners = [np.zeros((0, _WIDEST), np.int64)], [np.zeros(0, np.int64)]
        first = 0
        for kind, numbers in self.blocks:
            for face in FACES[kind]:
                chosen = list(face) + [face[-1]] * (_WIDEST - len(face))
                corners.append(numbers[:, chosen])
                owners.append(np.arange(first, first + len(numbers)))
            first += len(numbers)
        faces = self._faces[0]
        order = np.lexsort(faces.T)
        same = (faces[order][1:] == faces[order][:-1]).all(axis=1)
        shared = np.zeros(len(faces), bool)
        shared[order[1:][same]] = True
        shared[order[:-1][same]] = True
        return np.concatenate(corners)[~shared], np.concatenate(owners)[~shared]

    @cached_property
    def graph(self) -> tuple[Numbers, Numbers]:
        """The dual graph: those that cell i shares a face with are `neighbors[starts[i]:starts[i + 1]]`, ascending.

        Returns `starts`, `neighbors`. Raises as pairs.
        """
        ends = np.unique(np.concatenate([self.pairs, self.pairs[:, ::-1]]), axis=0)
        starts = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.bincount(ends[:, 0], minlength=len(self)), out=starts[1:])
        return starts, ends[:, 1].copy()
