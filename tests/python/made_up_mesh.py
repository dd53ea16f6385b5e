"""Made-up meshes: boxes of all kinds of cells, cells by chance."""

from __future__ import annotations

import numpy as np

from waywiser.mesh import Mesh


def box(shape: tuple[int, ...], stretch: float = 1.0) -> Mesh:
    """A grid of quadrilaterals or hexahedra; the first dimension is `stretch` times as long."""
    lines = [np.arange(cells + 1.0) * (stretch if i == 0 else 1.0) for i, cells in enumerate(shape)]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), -1).reshape(-1, len(shape))
    numbers = np.arange(len(points)).reshape([cells + 1 for cells in shape])

    def corner(*offsets: int) -> np.ndarray:
        return numbers[tuple(slice(at, at + cells) for at, cells in zip(offsets, shape, strict=True))].ravel()

    round_ = [(0, 0), (1, 0), (1, 1), (0, 1)]
    if len(shape) == 2:
        return Mesh(points, [("quad", np.stack([corner(*each) for each in round_], 1))])
    corners = [corner(*each, top) for top in (0, 1) for each in round_]
    return Mesh(points, [("hexahedron", np.stack(corners, 1))])


def triangles(shape: tuple[int, int], random: np.random.Generator) -> Mesh:
    """Each square of a grid in two triangles, cut along one diagonal or the other, cells in any order."""
    quads = box(shape)
    corners = quads.blocks[0][1]
    turned = np.where(random.random((len(corners), 1)) < 0.5, corners, np.roll(corners, 1, axis=1))
    halves = np.concatenate([turned[:, [0, 1, 2]], turned[:, [0, 2, 3]]])
    return Mesh(quads.points, [("triangle", random.permutation(halves))])


def mixed_solid() -> Mesh:
    """A hexahedron, a wedge and a pyramid on it, and a tetrahedron on the pyramid."""
    points = [
        (0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1),
        (2, 0, 0.5), (2, 1, 0.5), (0.5, 0.5, 2), (0.5, 2, 2),
    ]  # fmt: skip
    cells = [
        ("hexahedron", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ("wedge", [[1, 5, 8, 2, 6, 9]]),
        ("pyramid", [[4, 5, 6, 7, 10]]),
        ("tetra", [[6, 7, 10, 11]]),
    ]
    return Mesh(np.array(points, float), cells)
