"""Reads meshes of other programs by meshio, an optional package."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from waywiser.errors import InputError, UnavailableError
from waywiser.mesh.mesh import CORNERS, FLAT, Mesh

# Cells with more nodes than corners: the corners come first.
_ORDERS = {"triangle": (6, 7, 10), "quad": (8, 9), "tetra": (10,), "pyramid": (13, 14), "wedge": (15, 18),
           "hexahedron": (20, 24, 27)}  # fmt: skip
KINDS = {name: name for name in CORNERS} | {f"{name}{nodes}": name for name, all_ in _ORDERS.items() for nodes in all_}
_LOWER = ("vertex", "line")  # what files have beside the cells


def read_mesh(file: str | os.PathLike[str]) -> Mesh:
    """The mesh of a file in one of meshio's formats: VTK (.vtk, .vtu), Gmsh (.msh), Exodus (.e, .exo) and more.

    The cells of the highest dimension are taken: if there are solid ones, surfaces are left out. Of curved cells only
    the corners count. Raises UnavailableError without meshio, and InputError for a file that cannot be read or has no
    such cells.
    """
    try:
        import meshio
    except ImportError as error:
        raise UnavailableError(f"{file}: not installed: meshio (pip install 'waywiser[mesh]')") from error
    if not Path(file).is_file():
        raise InputError(f"{file}: there is no such file")
    told = io.StringIO()
    try:
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            found: Any = meshio.read(str(file))
    except (Exception, SystemExit) as error:  # a reader of a foreign format raises anything
        words = " ".join(f"{error} {told.getvalue()}".split())
        raise InputError(f"{file}: meshio cannot read it: {words[:200] or type(error).__name__}") from error
    return _mesh_of(found, str(file))


def _mesh_of(found: Any, name: str) -> Mesh:
    blocks = [(str(block.type), np.asarray(block.data)) for block in found.cells if len(block.data)]
    strange = sorted(kind for kind, _ in blocks if kind not in KINDS and not kind.startswith(_LOWER))
    if strange:
        raise InputError(f"{name}: cells of kind {strange[0]!r}: there are {', '.join(CORNERS)}")
    named = [(KINDS[kind], corners[:, : CORNERS[KINDS[kind]]]) for kind, corners in blocks if kind in KINDS]
    solid = [each for each in named if each[0] not in FLAT]
    if not named:
        raise InputError(f"{name}: it has no cells of a mesh")
    points = np.asarray(found.points, dtype=np.float64)
    flat = not solid and (points.shape[1] == 2 or (points[:, 2] == points[0, 2]).all())
    try:
        return Mesh(points[:, :2] if flat else points, solid or named)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
