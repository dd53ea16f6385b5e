"""Mesh files with named boundaries, and case files, for tests of apps/navier_stokes."""

from __future__ import annotations

from pathlib import Path

import meshio
import numpy as np
from made_up_mesh import box

from waywiser.mesh import Mesh

SIDES = {"left": (0, 0), "right": (0, 1), "low": (1, 0), "high": (1, 1), "back": (2, 0), "front": (2, 1)}
# A hexahedron as five tetrahedra, of two kinds that fit beside each other; as two wedges; as six pyramids.
TETRAHEDRA = [
    [(0, 1, 3, 4), (1, 2, 3, 6), (1, 4, 5, 6), (3, 4, 6, 7), (1, 3, 4, 6)],
    [(0, 1, 2, 5), (0, 2, 3, 7), (0, 5, 7, 4), (2, 5, 6, 7), (0, 2, 7, 5)],
]
WEDGES = [(0, 1, 2, 4, 5, 6), (0, 2, 3, 4, 6, 7)]


def named(mesh: Mesh) -> Mesh:
    """A box whose sides have names."""
    corners, _ = mesh.surface()
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    found = {}
    for name, (axis, side) in list(SIDES.items())[: 2 * mesh.points.shape[1]]:
        at = (low, high)[side][axis]
        rows = np.isclose(mesh.points[corners][:, :, axis], at).all(axis=1)
        found[name] = corners[rows]
    return Mesh(mesh.points, mesh.blocks, found)


def channel(cells: tuple[int, ...], size: tuple[float, ...], kind: str = "") -> Mesh:
    """A box of this size, of quadrilaterals or hexahedra; `kind`: tetra, wedge."""
    mesh = box(cells)
    points = mesh.points / np.array(cells) * np.array(size)
    blocks = mesh.blocks
    if kind == "wedge":
        blocks = [("wedge", np.concatenate([blocks[0][1][:, each] for each in WEDGES]))]
    if kind == "tetra":
        odd = np.indices(cells).sum(axis=0).ravel() % 2
        parts = [blocks[0][1][odd == i][:, each] for i in (0, 1) for each in TETRAHEDRA[i]]
        blocks = [("tetra", np.concatenate(parts))]
    return named(Mesh(points, blocks))


def write_mesh(mesh: Mesh, file: Path) -> Path:
    """As Gmsh would, with physical groups; every other cell lists its corners backwards in two dimensions."""
    flat = mesh.is_flat
    points = np.pad(mesh.points, ((0, 0), (0, 3 - mesh.points.shape[1])))
    cells, tags, names = [], [], {}
    for number, (name, faces) in enumerate(mesh.boundaries.items(), 1):
        names[name] = np.array([number, 1 if flat else 2])
        triangles = faces[:, 2] == faces[:, 3]
        kinds = (
            [("line", faces[:, :2])] if flat else [("triangle", faces[triangles][:, :3]), ("quad", faces[~triangles])]
        )
        for kind, corners in kinds:
            if len(corners):
                cells.append((kind, corners))
                tags.append(np.full(len(corners), number))
    for kind, corners in mesh.blocks:
        turned = corners.copy()
        if flat:
            turned[::2] = turned[::2, ::-1]
        cells.append((kind, turned))
        tags.append(np.zeros(len(corners), int))
    data = {"gmsh:physical": tags, "gmsh:geometrical": tags}
    meshio.write(file, meshio.Mesh(points, cells, cell_data=data, field_data=names), file_format="gmsh22", binary=False)
    return file


def write_case(file: Path, mesh: str, boundaries: str, more: str = "", time: str = "end_s: 1\n  courant: 0.5") -> Path:
    """A case file of a fluid of density 2 and kinematic viscosity 0.1, unless `more` has another."""
    fluid = "" if "fluid:" in more else "fluid: {density_kg_per_m3: 2, viscosity_m2_per_s: 0.1}\n"
    lines = "".join(f"  {line}\n" for line in boundaries.strip().splitlines())
    file.write_text(f"mesh: {mesh}\n{fluid}boundaries:\n{lines}time:\n  {time}\n{more}")
    return file
