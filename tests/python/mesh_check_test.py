"""What check_mesh finds: each fault in a mesh that has it and nothing else, and none in a good one."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_mesh import box, mixed_solid, triangles

from waywiser.mesh import Mesh, MeshCheck, check_mesh

RANDOM = np.random.default_rng(11)


def found(mesh: Mesh) -> dict[str, tuple[int, ...]]:
    return {each.name: each.cells for each in check_mesh(mesh).findings}


@pytest.mark.parametrize("mesh", [box((3, 4)), box((2, 3, 4)), triangles((4, 3), RANDOM)])
def test_a_good_mesh_has_nothing(mesh: Mesh) -> None:
    check = check_mesh(mesh)
    assert check.findings == () and check.good and check.parts == 1
    assert check.volume == pytest.approx(np.prod(np.ptp(mesh.points, axis=0)))
    assert check.smallest == pytest.approx(check.largest) and check.angle < 45.1
    assert check.unnamed == len(mesh.surface()[0])


def test_volumes_are_those_of_the_shapes() -> None:
    check = check_mesh(mixed_solid())
    # the cube 1, the wedge 1/2, the pyramid 1/3, the tetrahedron of 6, 7, 10, 11: 1/4
    assert check.volume == pytest.approx(1 + 1 / 2 + 1 / 3 + 1 / 4) and check.good


def test_skewness_and_angle_are_openfoams() -> None:
    """A square and a parallelogram: the line of centres crosses the side a sixth above its middle."""
    points = np.array([(0, 0), (1, 0), (3, 1), (0, 1), (1, 1), (3, 2)], float)
    check = check_mesh(Mesh(points, [("quad", [[0, 1, 4, 3], [1, 2, 5, 4]])]))
    assert check.angle == pytest.approx(np.degrees(np.arctan(1 / 3)))
    assert check.skewness == pytest.approx((1 / 6) / np.hypot(1.5, 0.5))


def test_an_inverted_cell_is_named_and_its_neighbours_are_not() -> None:
    mesh = triangles((4, 4), np.random.default_rng(3))
    points = mesh.points.copy()
    corner = int(np.flatnonzero((points == (0, 0)).all(axis=1))[0])
    cells = np.flatnonzero((mesh.blocks[0][1] == corner).any(axis=1))
    points[corner] = (1.4, 1.3)  # past the opposite side
    names = found(Mesh(points, mesh.blocks))
    assert set(names["inverted"]) <= set(cells.tolist()) and names["inverted"]
    assert not check_mesh(Mesh(points, mesh.blocks)).good


def test_twisted_and_tangled_cells_are_named() -> None:
    mesh = box((3, 3, 3))
    corners = mesh.blocks[0][1].copy()
    corners[5] = corners[5][[0, 1, 2, 3, 6, 7, 4, 5]]
    assert found(Mesh(mesh.points, [("hexahedron", corners)])) == {"crossed": (5,)}
    points = mesh.points.copy()
    place = int(np.flatnonzero((points == points[corners[13]][0]).all(axis=1))[0])
    points[place, 2] += 1.6 * np.ptp(points[:, 2]) / 3  # past the next point
    tangled = set(found(Mesh(points, mesh.blocks))["crossed"])
    assert tangled and tangled <= set(np.flatnonzero((mesh.blocks[0][1] == place).any(axis=1)).tolist())
    flat = box((3, 3))
    turned = flat.blocks[0][1].copy()
    turned[4] = turned[4][[0, 1, 3, 2]]
    assert "crossed" in found(Mesh(flat.points, [("quad", turned)]))


def test_a_hollow_cell_is_no_error() -> None:
    points = np.array([(0, 0), (3, 0), (1, 1), (0, 3)], float)
    assert found(Mesh(points, [("quad", [[0, 1, 2, 3]])])) == {}
    assert found(Mesh(points * (1, -1), [("quad", [[3, 0, 1, 2]])])).keys() <= {"reversed"}


def test_cells_that_list_their_corners_backwards_are_no_error() -> None:
    mesh = triangles((4, 4), RANDOM)
    corners = mesh.blocks[0][1].copy()
    corners[[2, 9]] = corners[[2, 9], ::-1]
    turned = Mesh(mesh.points, [("triangle", corners)])
    assert found(turned) == {"reversed": (2, 9)} and check_mesh(turned).good
    assert check_mesh(turned).volume == check_mesh(mesh).volume


def test_a_cell_without_area_is_named() -> None:
    points = np.array([(0, 0), (1, 0), (2, 0), (1, 1)], float)
    mesh = Mesh(points, [("triangle", [[0, 1, 3], [1, 2, 3], [0, 2, 1]])])
    assert found(mesh)["flat"] == (2,)


def test_cells_and_faces_with_points_of_their_own_are_doubled_and_cracked() -> None:
    mesh = box((2, 2))
    points, corners = np.concatenate([mesh.points, mesh.points]), mesh.blocks[0][1]
    cracked = np.concatenate([corners[:2], corners[2:] + 9])
    assert found(Mesh(points, [("quad", cracked)])) == {
        "cracks": (0, 1, 2, 3), "apart": (2, 3), "unused": (6, 7, 8, 9, 10),
    }  # fmt: skip
    twice = Mesh(points, [("quad", np.concatenate([corners, corners[:1] + 9]))])
    assert found(twice)["doubled"] == (4,)


def test_a_face_of_three_cells_is_crowded() -> None:
    points = np.array([(0, 0), (0, 1), (1, 0), (-1, 0), (2, 1)], float)
    assert found(Mesh(points, [("triangle", [[0, 1, 2], [0, 1, 3], [0, 1, 4]])]))["crowded"] == (0, 1, 2)


def test_parts_and_collapsed_cells_are_notes() -> None:
    points = np.concatenate([box((1, 1, 1)).points, [(3, 0, 0), (4, 0, 0), (3, 1, 0), (3, 0, 1), (4, 0, 1), (3, 1, 1)]])
    cells = np.array([[0, 4, 6, 2, 1, 5, 7, 3], [8, 9, 10, 10, 11, 12, 13, 13]])
    check = check_mesh(Mesh(points, [("hexahedron", cells)]))
    assert {each.name for each in check.findings} == {"collapsed", "apart"} and check.parts == 2 and check.good
    assert check.volume == pytest.approx(1.5)


def test_the_text_names_the_first_cells_and_how_many() -> None:
    corners = box((4, 4)).blocks[0][1]
    mesh = Mesh(box((4, 4)).points * (1, 0), [("quad", corners)], {"low": [[0, 5]]})
    lines = str(check_mesh(mesh)).splitlines()
    assert "error: 16 cells without volume: 0, 1, 2, 3, 4, ..." in lines
    assert "faces of boundaries: low 1; without a name 15" in lines


def test_a_mesh_without_cells_has_nothing() -> None:
    check: MeshCheck = check_mesh(Mesh(np.zeros((0, 3)), []))
    assert check.cells == 0 and check.parts == 0 and check.findings == ()
