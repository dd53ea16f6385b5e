"""What may be wrong with a mesh: cells without volume, inverted, doubled; cracks; parts that do not hang together."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from waywiser.errors import InputError
from waywiser.mesh.faces import WIDEST, Numbers, distinct, first_equals
from waywiser.mesh.mesh import Mesh
from waywiser.mesh.shapes import Shapes, shapes_of

NAMED = 5  # cells of a finding
# What OpenFOAM's checkMesh calls too skewed, and what it calls severely non-orthogonal.
MOST_SKEWNESS, MOST_ANGLE = 4.0, 70.0
_SAME_POINT = 1e-9  # of the mesh's extent
_FLAT_CELL = 1e-12  # of the cube of a cell's extent
_NO_TURN = 1e-9  # of the square of a face's greatest turn: its sides are in line there


@dataclass(frozen=True)
class MeshFinding:
    """`name`: a word; `what`: the same in words; `cells`: the first few; `count`: how many; `is_error`: whether no
    finite-volume method can take such a mesh.
    """

    name: str
    what: str
    count: int
    cells: tuple[int, ...]
    is_error: bool

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.cells) else ""
        mark = "error" if self.is_error else "note"
        return f"{mark}: {self.count} {self.what}: {', '.join(map(str, self.cells))}{more}"


@dataclass(frozen=True)
class MeshCheck:
    """`volume`: of all cells, in two dimensions their area. `smallest`, `largest`: of one cell. `skewness`, `angle`:
    the greatest of a face, as OpenFOAM's checkMesh has them; the angle in degrees. `parts`: that hang together by
    faces. `boundaries`: the faces of each name; `unnamed`: faces of the surface without one.
    """

    cells: int
    points: int
    volume: float
    smallest: float
    largest: float
    skewness: float
    angle: float
    parts: int
    boundaries: dict[str, int] = field(default_factory=dict)
    unnamed: int = 0
    findings: tuple[MeshFinding, ...] = ()

    @property
    def good(self) -> bool:
        """Whether no finding is an error. Raises nothing."""
        return not any(each.is_error for each in self.findings)

    def __str__(self) -> str:
        named = ", ".join(f"{name} {faces}" for name, faces in self.boundaries.items()) or "none"
        lines = [
            f"{self.cells} cells, {self.points} points, {self.parts} part{'s' * (self.parts != 1)}",
            f"volume {self.volume:.6g}, of a cell {self.smallest:.3g} to {self.largest:.3g}",
            f"greatest skewness {self.skewness:.3g}, greatest angle {self.angle:.1f} degrees",
            f"faces of boundaries: {named}; without a name {self.unnamed}",
        ]
        return "\n".join([*lines, *map(str, self.findings)])


def check_mesh(mesh: Mesh) -> MeshCheck:
    """Looks at each cell and face.

    Errors: cells without volume; cells that fold over their neighbours ("inverted"); cells with a face of four corners
    two of whose sides cross ("crossed"), as of twisted or tangled hexahedra; faces of more than two cells; cells that
    lie where another lies, with points of their own ("doubled"); cracks, where two faces lie on each other with points
    of their own. Notes: cells that list their corners the other way round ("reversed"); repeated corners, as prisms
    written as hexahedra have them; faces that are too skewed or not orthogonal; several parts; points of no cell.

    Raises InputError for a surface in space, whose cells have no volume.
    """
    if mesh.is_flat and mesh.points.shape[1] == 3 and len(mesh):
        raise InputError("a mesh: a surface in space is not checked")
    shapes = shapes_of(mesh)
    part, alike = _oriented(len(mesh), shapes)
    folded, turned = _folded(shapes, part, alike)
    parts = len(np.unique(part))
    smallest_part = part != np.argmax(np.bincount(part)) if len(part) else np.zeros(0, bool)
    names = mesh.named_faces()
    surface = len(mesh.surface()[0])
    unnamed = surface - len(np.unique(np.concatenate([np.zeros(0, np.int64), *names.values()])))
    merged = _merged(mesh)
    found = [
        _finding("flat", "cells without volume", _flat(mesh, shapes), True),
        _finding("inverted", "cells that fold over their neighbours", folded, True),
        _finding("crossed", "cells with a face whose sides cross", _crossed(mesh), True),
        _finding("crowded", "cells at faces of more than two cells", _crowded(mesh), True),
        _finding("doubled", "cells that lie where another lies", _doubled(mesh, merged), True),
        _finding("cracks", "cells at a crack: faces on each other, each with its points", _cracks(mesh, merged), True),
        _finding("reversed", "cells that list their corners the other way round", turned, False),
        _finding("collapsed", "cells with repeated corners", _collapsed(mesh), False),
        _finding("skewed", f"cells at a face of a skewness above {MOST_SKEWNESS:g}",
                 shapes.pairs[shapes.skewness > MOST_SKEWNESS], False),
        _finding("slanted", f"cells at a face of an angle above {MOST_ANGLE:g} degrees",
                 shapes.pairs[shapes.angle > MOST_ANGLE], False),
        _finding("apart", f"cells that do not hang together with the largest of {parts} parts",
                 np.flatnonzero(smallest_part), False),
        _finding("unused", "points of no cell", _unused(mesh), False),
    ]  # fmt: skip
    sizes = np.abs(shapes.volume)
    return MeshCheck(
        len(mesh), len(mesh.points), float(sizes.sum()),
        float(sizes.min() if len(sizes) else 0), float(sizes.max(initial=0)),
        float(np.nan_to_num(shapes.skewness, nan=np.inf).max(initial=0)),
        float(np.nan_to_num(shapes.angle, nan=180).max(initial=0)), parts,
        {name: len(rows) for name, rows in names.items()}, unnamed, tuple(each for each in found if each is not None),
    )  # fmt: skip


def _finding(name: str, what: str, cells: Numbers, is_error: bool) -> MeshFinding | None:
    unique = np.unique(cells)
    return MeshFinding(name, what, len(unique), tuple(unique[:NAMED].tolist()), is_error) if len(unique) else None


def _flat(mesh: Mesh, shapes: Shapes) -> Numbers:
    """Cells whose volume is nothing beside their extent."""
    found, first = [], 0
    dimensions = 2 if mesh.is_flat else 3
    for _, corners in mesh.blocks:
        extent = np.ptp(mesh.points[corners], axis=1).max(axis=1, initial=0) if len(corners) else np.zeros(0)
        volume = np.abs(shapes.volume[first : first + len(corners)])
        found.append(first + np.flatnonzero(~(volume > _FLAT_CELL * extent**dimensions)))
        first += len(corners)
    return np.concatenate([np.zeros(0, np.int64), *found])


def _oriented(cells: int, shapes: Shapes) -> tuple[Numbers, NDArray[np.bool_]]:
    """The part of each cell, and whether it lists its corners as the first cell of its part does. Each cell is there
    twice, as it is and turned over; a pair joins those that run along their face in opposite directions."""
    a, b = shapes.pairs[:, 0], shapes.pairs[:, 1] + np.where(shapes.opposed, 0, cells)
    label = joined(
        2 * cells, np.concatenate([a, (a + cells) % (2 * cells)]), np.concatenate([b, (b + cells) % (2 * cells)])
    )
    one, other = label[:cells], label[cells:]
    _, part = np.unique(np.minimum(one, other), return_inverse=True)
    return part.reshape(-1), one <= other


def joined(count: int, a: Numbers, b: Numbers) -> Numbers:
    """For each of `count` nodes the smallest one that edges a-b join it to."""
    label = np.arange(count)
    while True:
        low = np.minimum(label[a], label[b])
        new = label.copy()
        np.minimum.at(new, label[a], low)
        np.minimum.at(new, label[b], low)
        while (new[new] != new).any():
            new = new[new]
        if (new == label).all():
            return label
        label = new


def _folded(shapes: Shapes, part: Numbers, alike: NDArray[np.bool_]) -> tuple[Numbers, Numbers]:
    """Cells whose volume has, listed alike, the other sign than most of their part; and others of negative volume."""
    sign = np.sign(shapes.volume) * np.where(alike, 1, -1)
    most = np.bincount(part, sign)
    folded = (sign != 0) & (sign * np.where(most == 0, 1, most)[part] < 0)
    return np.flatnonzero(folded), np.flatnonzero(~folded & (shapes.volume < 0))


def _crossed(mesh: Mesh) -> Numbers:
    """Where two corners of a face, in two dimensions of a cell, turn one way and two the other: the sides of a hollow
    one do not cross, and one of its corners turns the other way."""
    corners, owners = _quads(mesh) if mesh.is_flat else mesh.each_face()
    points = np.pad(mesh.points, ((0, 0), (0, 3 - mesh.points.shape[1])))[corners]
    turns = np.cross(np.roll(points, -1, axis=1) - points, np.roll(points, 1, axis=1) - points)
    beside = (turns * turns[:, :1]).sum(axis=2)
    largest = (turns**2).sum(axis=2).max(axis=1, initial=0)
    crossed: Numbers = owners[(beside < -_NO_TURN * largest[:, None]).sum(axis=1) == 2]
    return crossed


def _quads(mesh: Mesh) -> tuple[Numbers, Numbers]:
    """The corners of the quadrilaterals, and their numbers."""
    found, first = [(np.zeros((0, WIDEST), np.int64), np.zeros(0, np.int64))], 0
    for kind, corners in mesh.blocks:
        if kind == "quad":
            found.append((corners, np.arange(first, first + len(corners))))
        first += len(corners)
    return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])


def _crowded(mesh: Mesh) -> Numbers:
    first, second = mesh.shared_faces()
    _, owners = mesh.each_face()
    faces, times = np.unique(first, return_counts=True)
    cells: Numbers = owners[np.concatenate([faces[times > 1], second[np.isin(first, faces[times > 1])]])]
    return cells


def _merged(mesh: Mesh) -> Numbers:
    """For each point one that lies there."""
    if not len(mesh.points):
        return np.zeros(0, np.int64)
    extent = float(np.ptp(mesh.points, axis=0).max()) or 1.0
    # From a corner that is none of a grid's lines, so that equal points round alike.
    places = np.floor((mesh.points - mesh.points.min(axis=0)) / (_SAME_POINT * extent) + 0.354)
    _, first, of = np.unique(places, axis=0, return_index=True, return_inverse=True)
    merged: Numbers = first[of.reshape(-1)]
    return merged


def _doubled(mesh: Mesh, merged: Numbers) -> Numbers:
    equals = first_equals([(kind, merged[corners]) for kind, corners in mesh.blocks])
    return np.flatnonzero(equals != np.arange(len(equals)))


def _cracks(mesh: Mesh, merged: Numbers) -> Numbers:
    corners, owners = mesh.surface()
    here = merged[corners]
    whole = distinct(here)[:, WIDEST - (2 if mesh.is_flat else 3)] >= 0
    equals = first_equals([("quad", here[whole])])
    twice = np.bincount(equals, minlength=len(equals))[equals] > 1
    cells: Numbers = owners[whole][twice]
    return cells


def _collapsed(mesh: Mesh) -> Numbers:
    sets = [distinct(corners)[:, 0] < 0 for _, corners in mesh.blocks]
    return np.flatnonzero(np.concatenate([np.zeros(0, bool), *sets]))


def _unused(mesh: Mesh) -> Numbers:
    used = np.zeros(len(mesh.points), bool)
    for _, corners in mesh.blocks:
        used[corners] = True
    return np.flatnonzero(~used)
