"""Meshes of files: VTK, Gmsh and what else meshio reads."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from made_up_mesh import box, mixed_solid

from waywiser.errors import InputError, UnavailableError
from waywiser.mesh import Mesh, read_mesh

meshio = pytest.importorskip("meshio")


def written(mesh: Mesh, file: Path) -> Path:
    """With lines and points beside the cells, as Gmsh's files have them."""
    points = np.pad(mesh.points, ((0, 0), (0, 3 - mesh.points.shape[1])))
    cells = [("line", np.array([[0, 1]])), *mesh.blocks]
    meshio.write(file, meshio.Mesh(points, cells), **({"file_format": "gmsh22"} if file.suffix == ".msh" else {}))
    return file


@pytest.mark.parametrize("ending", [".vtk", ".vtu", ".msh"])
@pytest.mark.parametrize("mesh", [box((3, 4)), mixed_solid()])
def test_a_file_is_read(mesh: Mesh, ending: str, tmp_path: Path) -> None:
    found = read_mesh(written(mesh, tmp_path / f"mesh{ending}"))
    assert (found.pairs == mesh.pairs).all() and np.allclose(found.centres, mesh.centres)
    assert [kind for kind, _ in found.blocks] == [kind for kind, _ in mesh.blocks]


def test_an_exodus_file_is_read(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    mesh = box((2, 2, 2))
    meshio.write(tmp_path / "mesh.e", meshio.Mesh(mesh.points, mesh.blocks))
    assert (read_mesh(tmp_path / "mesh.e").pairs == mesh.pairs).all()


def test_solid_cells_go_before_surfaces_and_corners_before_curves(tmp_path: Path) -> None:
    solid = mixed_solid()
    cells = [("quad", np.array([[0, 1, 2, 3]])), *solid.blocks]
    meshio.write(tmp_path / "both.vtk", meshio.Mesh(solid.points, cells))
    assert len(read_mesh(tmp_path / "both.vtk")) == 4
    points = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.5, 0, 0), (0.5, 0.5, 0), (0, 0.5, 0)], float)
    meshio.write(tmp_path / "curved.vtk", meshio.Mesh(points, [("triangle6", np.arange(6)[None])]))
    curved = read_mesh(tmp_path / "curved.vtk")
    assert curved.blocks[0][1].tolist() == [[0, 1, 2]] and curved.points.shape == (6, 2)


def test_a_file_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "broken.vtk").write_text("no mesh\n")
    (tmp_path / "broken.msh").write_text("$MeshFormat\n4.1 0 8\n")
    (tmp_path / "strange.xyz").write_text("")
    meshio.write(tmp_path / "lines.vtk", meshio.Mesh(np.zeros((2, 3)), [("line", np.array([[0, 1]]))]))
    for name, why in [
        ("none.vtk", "there is no such file"),
        ("broken.vtk", "meshio cannot read it: "),
        ("broken.msh", "meshio cannot read it: "),
        ("strange.xyz", "meshes are read from files that end with .vtk, .vtu, .msh, "),
        ("lines.vtk", "it has no cells of a mesh"),
    ]:
        with pytest.raises(InputError, match=f"{name}: {why}") as raised:
            read_mesh(tmp_path / name)
        assert "\n" not in str(raised.value)


def test_without_meshio_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "meshio", None)
    with pytest.raises(UnavailableError, match=r"mesh\.vtk: not installed: meshio"):
        read_mesh("mesh.vtk")
