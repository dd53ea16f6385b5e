"""The named faces of a mesh file: groups of cells that are faces, and side sets of Exodus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from waywiser.errors import InputError
from waywiser.mesh.faces import CORNERS, FLAT, WIDEST, Block, Numbers

# Cells with more nodes than corners: the corners come first.
_ORDERS = {"triangle": (6, 7, 10), "quad": (8, 9), "tetra": (4, 10), "pyramid": (13, 14), "wedge": (15, 18),
           "hexahedron": (20, 24, 27)}  # fmt: skip
KINDS = {name: name for name in CORNERS} | {f"{name}{nodes}": name for name, all_ in _ORDERS.items() for nodes in all_}
# The sides of Exodus' elements, as numbers of corners: G. D. Sjaardema et al., EXODUS II (SAND92-2137), table 2.
_SIDES: dict[str, tuple[tuple[int, ...], ...]] = {
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
    "tetra": ((0, 1, 3), (1, 2, 3), (0, 2, 3), (0, 1, 2)),
    "pyramid": ((0, 1, 4), (1, 2, 4), (2, 3, 4), (0, 3, 4), (0, 1, 2, 3)),
    "wedge": ((0, 1, 3, 4), (1, 2, 4, 5), (0, 2, 3, 5), (0, 1, 2), (3, 4, 5)),
    "hexahedron": ((0, 1, 4, 5), (1, 2, 5, 6), (2, 3, 6, 7), (0, 3, 4, 7), (0, 1, 2, 3), (4, 5, 6, 7)),
}


def boundaries_of(
    blocks: Sequence[tuple[str, Any]], groups: Mapping[str, Any], sides: Mapping[str, Any], solid: bool
) -> dict[str, Numbers]:
    """Of each name its faces, the corners of each in four columns. `groups`: (block, row) of cells; `sides`: (element,
    side) from 1, elements numbered through all blocks. Names without a face are left out.

    Raises InputError for a block, row, element or side that there is not.
    """
    found: dict[str, list[Numbers]] = {}
    for name, pairs in groups.items():
        found.setdefault(name, []).extend(_faces_of_group(name, blocks, pairs, solid))
    for name, pairs in sides.items():
        found.setdefault(name, []).extend(_faces_of_sides(name, blocks, pairs))
    return {name: np.concatenate(faces) for name, faces in found.items() if sum(map(len, faces))}


def _faces_of_group(name: str, blocks: Sequence[Block], pairs: Any, solid: bool) -> list[Numbers]:
    faces = []
    for number in np.unique(pairs[:, 0]).tolist():
        kind, corners = blocks[number]
        is_face = KINDS.get(kind) in FLAT if solid else kind.startswith("line")
        if not is_face:
            continue
        rows = pairs[pairs[:, 0] == number, 1]
        if rows.min() < 0 or rows.max() >= len(corners):
            raise InputError(f"its group {name!r} has a cell that there is not")
        faces.append(_wide(corners[rows, : CORNERS[KINDS[kind]] if solid else 2]))
    return faces


def _faces_of_sides(name: str, blocks: Sequence[Block], pairs: Any) -> list[Numbers]:
    faces, first = [], 1
    if len(pairs) and not (pairs[:, 0].min() >= 1 and pairs[:, 0].max() <= sum(len(each) for _, each in blocks)):
        raise InputError(f"its side set {name!r} has an element that there is not")
    for kind, corners in blocks:
        mine = pairs[(pairs[:, 0] >= first) & (pairs[:, 0] < first + len(corners))]
        for side in np.unique(mine[:, 1]).tolist():
            of_kind = _SIDES.get(KINDS.get(kind, ""), ())
            if not 1 <= side <= len(of_kind):
                raise InputError(f"its side set {name!r} has side {side} of a {kind}")
            rows = mine[mine[:, 1] == side, 0] - first
            faces.append(_wide(corners[np.ix_(rows, of_kind[side - 1])]))
        first += len(corners)
    return faces


def _wide(corners: Any) -> Numbers:
    """Four columns, the last corner repeated."""
    wide: Numbers = np.pad(corners.astype(np.int64), ((0, 0), (0, WIDEST - corners.shape[1])), mode="edge")
    return wide
