"""Named boundaries of mesh files: physical groups of Gmsh, side sets of Exodus, surface cells of VTK, Abaqus' sets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from made_up_mesh import box, mixed_solid

from waywiser.errors import InputError
from waywiser.mesh import Mesh, read_mesh
from waywiser.mesh.boundaries import boundaries_of

meshio = pytest.importorskip("meshio")
SQUARE = box((2, 2))
LEFT, RIGHT = np.array([[0, 1], [1, 2]]), np.array([[6, 7], [7, 8]])


def sides(mesh: Mesh) -> dict[str, list[list[int]]]:
    """The corners of the faces of each boundary, ascending, of those on the surface."""
    corners = mesh.surface()[0]
    return {
        name: sorted(sorted(set(corners[row].tolist())) for row in rows) for name, rows in mesh.named_faces().items()
    }


def gmsh(file: Path) -> Path:
    cells = [("line", np.concatenate([LEFT, RIGHT])), *SQUARE.blocks]
    tags = [np.array([7, 7, 8, 8]), np.full(4, 7)]  # the plate has the number of the inlet, in its own dimension
    mesh = meshio.Mesh(
        np.pad(SQUARE.points, ((0, 0), (0, 1))), cells, cell_data={"gmsh:physical": tags, "gmsh:geometrical": tags},
        field_data={"inlet": np.array([7, 1]), "plate": np.array([7, 2])},
    )  # fmt: skip
    meshio.write(file, mesh, file_format="gmsh22", binary=False)
    return file


def test_physical_groups_of_gmsh_have_names_and_those_without_have_numbers(tmp_path: Path) -> None:
    mesh = read_mesh(gmsh(tmp_path / "plate.msh"))
    assert sides(mesh) == {"inlet": LEFT.tolist(), "8": RIGHT.tolist()}


def test_a_face_of_two_groups_has_both(tmp_path: Path) -> None:
    text = gmsh(tmp_path / "plate.msh").read_text()
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line == "$Elements")
    lines[first + 1] = "9"
    lines.insert(first + 2, "9 1 2 8 8 1 2")
    (tmp_path / "plate.msh").write_text("\n".join(lines) + "\n")
    mesh = read_mesh(tmp_path / "plate.msh")
    assert sides(mesh) == {"8": [[0, 1], *RIGHT.tolist()], "inlet": LEFT.tolist()}


@pytest.mark.parametrize(("ending", "name"), [(".vtu", "CellEntityIds"), (".vtk", "patch")])
def test_surface_cells_of_vtk_have_numbers(ending: str, name: str, tmp_path: Path) -> None:
    solid = box((1, 1, 2))
    cells = [("quad", np.array([[0, 3, 9, 6], [2, 8, 11, 5]])), *solid.blocks]
    marks = {name: [np.array([3, 4], np.int32), np.zeros(2, np.int32)]}
    meshio.write(tmp_path / f"duct{ending}", meshio.Mesh(solid.points, cells, cell_data=marks))
    assert sides(read_mesh(tmp_path / f"duct{ending}")) == {"3": [[0, 3, 6, 9]], "4": [[2, 5, 8, 11]]}


def test_sets_of_abaqus_are_boundaries(tmp_path: Path) -> None:
    text = "*NODE\n" + "".join(f"{i}, {x}, {y}, 0\n" for i, (x, y) in enumerate(SQUARE.points, 1))
    text += "*ELEMENT, TYPE=T3D2, ELSET=IN\n1, 1, 2\n2, 2, 3\n*ELEMENT, TYPE=CPS4, ELSET=ALL\n"
    rows = [", ".join(str(corner + 1) for corner in each) for each in SQUARE.blocks[0][1]]
    (tmp_path / "part.inp").write_text(text + "".join(f"{i}, {row}\n" for i, row in enumerate(rows, 3)))
    assert sides(read_mesh(tmp_path / "part.inp")) == {"IN": LEFT.tolist()}


def test_side_sets_of_exodus_are_boundaries(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    solid = box((1, 1, 2))
    meshio.write(tmp_path / "duct.e", meshio.Mesh(solid.points, solid.blocks))
    with netcdf.Dataset(tmp_path / "duct.e", "a") as data:
        for name, size in [("num_side_sets", 2), ("num_side_ss1", 1), ("num_side_ss2", 1), ("len_name", 33)]:
            data.createDimension(name, size)
        data.createVariable("ss_prop1", "i4", ("num_side_sets",))[:] = [5, 6]
        words = data.createVariable("ss_names", "S1", ("num_side_sets", "len_name"))
        words[0] = netcdf.stringtochar(np.array([b"low\x1b"], "S33"))[0]
        for i, (element, side) in enumerate([(1, 5), (2, 6)], 1):
            data.createVariable(f"elem_ss{i}", "i4", (f"num_side_ss{i}",))[:] = [element]
            data.createVariable(f"side_ss{i}", "i4", (f"num_side_ss{i}",))[:] = [side]
    assert sides(read_mesh(tmp_path / "duct.e")) == {"low?": [[0, 3, 6, 9]], "6": [[2, 5, 8, 11]]}


def test_sides_of_elements_are_faces_of_cells() -> None:
    """Those of every kind, all of them."""
    solid = mixed_solid()
    counts = {"hexahedron": 6, "wedge": 5, "pyramid": 5, "tetra": 4}
    pairs = [(i, side) for i, (kind, _) in enumerate(solid.blocks, 1) for side in range(1, counts[kind] + 1)]
    found = boundaries_of(solid.blocks, {}, {"all": np.array(pairs)}, True)
    mesh = Mesh(solid.points, solid.blocks, found)
    assert mesh.named_faces()["all"].tolist() == list(range(len(mesh.surface()[0])))


@pytest.mark.parametrize(
    ("groups", "sets", "why"),
    [
        ({"in": [(0, 9)]}, {}, "its group 'in' has a cell that there is not"),
        ({}, {"in": [(9, 1)]}, "its side set 'in' has an element that there is not"),
        ({}, {"in": [(3, 9)]}, "its side set 'in' has side 9 of a quad"),
    ],
)
def test_faces_that_there_are_not_are_refused(
    groups: dict[str, list[tuple[int, int]]], sets: dict[str, list[tuple[int, int]]], why: str
) -> None:
    blocks = [("line", LEFT), ("quad", SQUARE.blocks[0][1])]
    with pytest.raises(InputError, match=why):
        boundaries_of(
            blocks,
            {name: np.array(pairs) for name, pairs in groups.items()},
            {name: np.array(pairs) for name, pairs in sets.items()},
            False,
        )


def test_named_faces_inside_are_none_of_the_surface() -> None:
    mesh = Mesh(SQUARE.points, SQUARE.blocks, {"middle": [[3, 4], [4, 5]], "left": LEFT, "none": []})
    assert sides(mesh) == {"middle": [], "left": LEFT.tolist(), "none": []}
    for faces, why in [([[0, 9]], "'bad' is not one of the 9 points"), ([0, 1], "rows of 2 to 4 numbers")]:
        with pytest.raises(InputError, match=why):
            Mesh(SQUARE.points, SQUARE.blocks, {"bad": faces})
