"""The faces of cells. A face is the set of its distinct corners: files write prisms as hexahedra with equal corners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Block = tuple[str, Numbers]
# Of each kind of cell: its faces, as numbers of its corners, in the order in which their area vectors point outwards.
FACES: dict[str, tuple[tuple[int, ...], ...]] = {
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
    "tetra": ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)),
    "pyramid": ((0, 3, 2, 1), (0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)),
    "wedge": ((0, 2, 1), (3, 4, 5), (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    "hexahedron": ((0, 3, 2, 1), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
}
CORNERS = {"triangle": 3, "quad": 4, "tetra": 4, "pyramid": 5, "wedge": 6, "hexahedron": 8}
FLAT = ("triangle", "quad")
WIDEST = 4  # corners of a face
_MOST = max(CORNERS.values())


def distinct(corners: Numbers) -> Numbers:
    """The distinct numbers of each row, ascending, behind a -1 for each repeated one."""
    rows = np.sort(corners, axis=1)
    repeated = rows[:, 1:] == rows[:, :-1]
    if repeated.any():
        rows[:, 1:][repeated] = -1
        rows.sort(axis=1)
    return rows


def faces_of(kind: str, corners: Numbers) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
    """For each face of a kind: its corners, the last one repeated where there are fewer than four; the distinct ones,
    ascending, behind -1; the row of its cell. Faces that have become lines, in two dimensions points, are left out.
    """
    for part, numbers, rows in _parts(kind, corners):
        for face in FACES[part]:
            shown = numbers[:, list(face) + [face[-1]] * (WIDEST - len(face))]
            sets, whole = _face(part, numbers, face)
            yield (shown, sets, rows) if whole.all() else (shown[whole], sets[whole], rows[whole])


def _parts(kind: str, corners: Numbers) -> Iterator[tuple[str, Numbers, Numbers]]:
    """The cells and their rows; those of four distinct corners, of three in two dimensions, as what they are: some
    programs repeat the last corner only, so that the faces in the order of `kind` would not be theirs."""
    sets = distinct(corners)
    simplex = "triangle" if kind in FLAT else "tetra"
    simple = np.zeros(len(sets), bool)
    if kind != simplex:
        count = CORNERS[simplex]
        simple = (sets[:, -count - 1] < 0) & (sets[:, -count] >= 0)
        yield simplex, sets[simple, -count:], np.flatnonzero(simple)
    yield kind, corners[~simple], np.flatnonzero(~simple)


def _face(kind: str, corners: Numbers, face: tuple[int, ...]) -> tuple[Numbers, NDArray[np.bool_]]:
    """The distinct corners of one face of each cell, and whether they are enough."""
    sets = np.full((len(corners), WIDEST), -1, np.int64)
    sets[:, WIDEST - len(face) :] = distinct(corners[:, list(face)])
    return sets, sets[:, WIDEST - (2 if kind in FLAT else 3)] >= 0


def hollow_cell(kind: str, corners: Numbers) -> int | None:
    """The row of the first cell whose corners are too few, or two of whose faces are one; None if there is none."""
    rows = np.flatnonzero(distinct(corners)[:, 0] < 0)
    some = corners[rows]
    hollow = distinct(some)[:, -3 if kind in FLAT else -4] < 0
    for (one, whole), (other, _) in combinations([_face(kind, some, face) for face in FACES[kind]], 2):
        hollow |= (one == other).all(axis=1) & whole
    return int(rows[hollow][0]) if hollow.any() else None


def first_equals(blocks: Sequence[Block]) -> Numbers:
    """For each cell the first one with the same corners: itself, unless a cell is there twice."""
    cells = [distinct(corners) for _, corners in blocks]
    first = np.arange(sum(map(len, cells)))
    sums = np.concatenate([np.zeros(0, np.uint64), *(_mixed(each).sum(axis=1) for each in cells)])
    order = np.argsort(sums)
    same = sums[order[1:]] == sums[order[:-1]]
    if not same.any():
        return first
    maybe = np.unique(order[np.concatenate([[False], same]) | np.concatenate([same, [False]])])
    wide = np.concatenate([np.pad(each, ((0, 0), (_MOST - each.shape[1], 0)), constant_values=-1) for each in cells])
    _, at, of = np.unique(wide[maybe], axis=0, return_index=True, return_inverse=True)
    first[maybe] = maybe[at[of.reshape(-1)]]
    return first


def _mixed(numbers: Numbers) -> NDArray[np.uint64]:
    """Scrambles numbers, so that equal sums mean equal sets but for a rare chance; -1 gives 0."""
    mixed: NDArray[np.uint64] = (numbers + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    return mixed
