"""Meshes of the bend and the draft tube with named boundaries, for case files: python ducts.py draft_tube tube.msh.

The same cells as those that the program makes itself (mesh/pipe_bend.cpp): a round section swept along x, around a bend
of 90 degrees, and along y; in the draft tube it becomes a wide rounded rectangle. The diameter at the inlet is 1.
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
RADIUS, INLET, BEND, OUTLET = 0.5, 2.0, 1.5, 4.0
# Half of the extent towards the middle of the bend and across it, and how angular the section is: at the inlet, at both
# ends of the elbow, at the outlet.
SHAPES = {
    "bend": [(0.5, 0.5, 2), (0.5, 0.5, 2), (0.5, 0.5, 2), (0.5, 0.5, 2)],
    "draft_tube": [(0.5, 0.5, 2), (0.6, 0.6, 2), (0.5, 0.9, 4), (0.7, 1.2, 4)],
}


def section(across: int) -> tuple[Floats, Numbers, list[int]]:
    """Points of a round section, its quadrilaterals, and the points of its border in turn."""
    half, bulge, n = 0.55 * RADIUS, 0.22, across
    t, s = np.meshgrid(2 * np.arange(n + 1) / n - 1, 2 * np.arange(n + 1) / n - 1, indexing="ij")
    scale = half / (1 + bulge / 2)
    square = np.stack([scale * s * (1 + bulge * (1 - t**2)), scale * t * (1 + bulge * (1 - s**2))], -1).reshape(-1, 2)
    low = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    cells = [np.stack([low, low + 1, low + n + 2, low + n + 1], 1)]
    border = [(i, 0) for i in range(n)] + [(n, j) for j in range(n)]
    border += [(i, n) for i in range(n, 0, -1)] + [(0, j) for j in range(n, 0, -1)]
    inner = np.array([j * (n + 1) + i for i, j in border])
    points, start, layers = [square], square[inner], max(n // 2, 1)
    angle = -0.75 * np.pi + 2 * np.pi * np.arange(4 * n) / (4 * n)
    circle = RADIUS * np.stack([np.cos(angle), np.sin(angle)], 1)
    for layer in range(1, layers + 1):
        outer = sum(map(len, points)) + np.arange(4 * n)
        points.append(start + layer / layers * (circle - start))
        cells.append(np.stack([inner, outer, np.roll(outer, -1), np.roll(inner, -1)], 1))
        inner = outer
    return np.concatenate(points), np.concatenate(cells), inner.tolist()


def swept(name: str, across: int, along: int) -> tuple[Floats, Numbers, dict[str, Numbers]]:
    """Points, hexahedra, and the quadrilaterals of the boundaries inlet, outlet, wall."""
    plane, quads, border = section(across)
    arc = np.pi / 2 * BEND
    places = [0, INLET, INLET + arc, INLET + arc + OUTLET]
    points = []
    for at in places[-1] * np.arange(along + 1) / along:
        towards, wide, angular = (np.interp(at, places, each) for each in zip(*SHAPES[name], strict=True))
        angle = np.clip(at - INLET, 0, arc) / BEND
        forward = np.array([np.cos(angle), np.sin(angle), 0])
        inward = np.array([-np.sin(angle), np.cos(angle), 0])
        straight = at - INLET if at < INLET else max(at - INLET - arc, 0)
        middle = np.array([INLET, BEND, 0]) - BEND * inward + straight * forward
        out = stretch(plane, angular)[:, None] / RADIUS
        points.append(middle + out * (towards * plane[:, :1] * inward + wide * plane[:, 1:] * np.array([0, 0, 1])))
    layer = len(plane)
    cells = np.concatenate([np.hstack([quads + k * layer, quads + (k + 1) * layer]) for k in range(along)])
    round_ = np.array(list(pairwise([*border, border[0]])))
    wall = np.concatenate([np.hstack([round_ + k * layer, round_[:, ::-1] + (k + 1) * layer]) for k in range(along)])
    return np.concatenate(points), cells, {"inlet": quads, "outlet": quads + along * layer, "wall": wall}


def stretch(plane: Floats, angular: float) -> Floats:
    """By which a point of the round section moves out, so that |a|^n + |b|^n stays what it is for a circle."""
    radius = np.hypot(*plane.T)
    unit = np.abs(plane / np.where(radius == 0, 1, radius)[:, None])
    with np.errstate(divide="ignore"):
        out: Floats = np.where(radius == 0, 1, (unit**angular).sum(axis=1) ** (-1 / angular))
    return out


def write(name: str, file: Path, cells: int) -> None:
    """A file of Gmsh's format 2.2 with about so many cells, as many along and across as the program takes."""
    import meshio

    across = 2 * max(1, round(np.cbrt(cells / 22.5) / 2))
    along = max(4, round(cells / (3 * across * across)))
    points, hexahedra, faces = swept(name, across, along)
    blocks = [*(("quad", each) for each in faces.values()), ("hexahedron", hexahedra)]
    tags = [np.full(len(each), number) for number, each in enumerate(faces.values(), 1)]
    tags.append(np.full(len(hexahedra), len(faces) + 1))
    names = {each: np.array([number, 2]) for number, each in enumerate(faces, 1)}
    names["fluid"] = np.array([len(faces) + 1, 3])
    mesh = meshio.Mesh(points, blocks, cell_data={"gmsh:physical": tags, "gmsh:geometrical": tags}, field_data=names)
    meshio.write(file, mesh, file_format="gmsh22")


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SHAPES)
    parser.add_argument("file", type=Path, help="ends with .msh")
    parser.add_argument("--cells", type=int, default=20000)
    chosen = parser.parse_args()
    write(chosen.name, chosen.file, chosen.cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
