"""Faces of cells with repeated corners, as programs write prisms, pyramids and tetrahedra, and cells that are twice."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from made_up_mesh import box

from waywiser.errors import InputError
from waywiser.mesh import Mesh, partition
from waywiser.mesh.faces import FACES, first_equals

RANDOM = np.random.default_rng(7)
# A prism of the corners 0 to 5, a pyramid of 0 to 4 and a tetrahedron of 0 to 3, as kinds with more corners have them.
PRISMS = [("hexahedron", [0, 1, 2, 2, 3, 4, 5, 5]), ("hexahedron", [0, 0, 1, 2, 3, 3, 4, 5])]
PYRAMIDS = [("hexahedron", [0, 1, 2, 3, 4, 4, 4, 4]), ("wedge", [0, 1, 4, 3, 2, 4])]
TETRAHEDRA = [
    ("hexahedron", [0, 1, 2, 2, 3, 3, 3, 3]),
    ("hexahedron", [0, 1, 2, 3, 3, 3, 3, 3]),
    ("wedge", [0, 1, 2, 3, 3, 3]),
    ("wedge", [0, 1, 2, 0, 1, 3]),
    ("pyramid", [0, 1, 2, 2, 3]),
    ("pyramid", [0, 1, 2, 3, 3]),
]
SHAPES = [
    *(("wedge", 6, kind, corners) for kind, corners in PRISMS),
    *(("pyramid", 5, kind, corners) for kind, corners in PYRAMIDS),
    *(("tetra", 4, kind, corners) for kind, corners in TETRAHEDRA),
    *(("triangle", 3, "quad", corners) for corners in ([0, 1, 2, 2], [0, 0, 1, 2], [0, 1, 1, 2], [0, 1, 2, 0])),
]


def on_each_face(kind: str, corners: list[int], shape: str, count: int) -> tuple[Mesh, list[set[int]]]:
    """Cell 0, and behind each face that its shape has a cell of the simplest kind; the corners of these faces."""
    faces = [set(face) for face in FACES[shape]]
    outside = "triangle" if shape == "triangle" else "tetra" if all(len(f) == 3 for f in faces) else ""
    others = []
    for number, face in enumerate(faces):
        far = count + number
        kind_of = outside or ("tetra" if len(face) == 3 else "pyramid")
        others.append((kind_of, [[*next(f for f in FACES[shape] if set(f) == face), far]]))
    points = np.random.default_rng(3).random((count + len(faces), 2 if shape == "triangle" else 3))
    return Mesh(points, [(kind, [corners]), *others]), faces


@pytest.mark.parametrize(("shape", "count", "kind", "corners"), SHAPES)
def test_a_collapsed_cell_has_the_neighbours_of_what_it_is(
    shape: str, count: int, kind: str, corners: list[int]
) -> None:
    mesh, faces = on_each_face(kind, corners, shape, count)
    assert {tuple(pair) for pair in mesh.pairs.tolist()} >= {(0, i + 1) for i in range(len(faces))}
    whole, _ = on_each_face(shape, list(range(count)), shape, count)
    assert mesh.pairs.tolist() == whole.pairs.tolist()
    assert np.allclose(mesh.centres, whole.centres)
    sides = [sorted({tuple(sorted(set(face))) for face in each.surface()[0].tolist()}) for each in (mesh, whole)]
    assert sides[0] == sides[1]
    alone = Mesh(RANDOM.random((count, mesh.points.shape[1])), [(kind, [corners])])
    assert sorted(map(sorted, map(set, alone.surface()[0].tolist()))) == sorted(map(sorted, faces))


def test_prisms_beside_and_on_each_other() -> None:
    ring = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    points = [(0, 0, 0), (0, 0, 1)] + [(x, y, z) for z in (0, 1) for x, y in ring]
    prisms = [[0, 2 + i, 2 + (i + 1) % 4, 0, 1, 6 + i, 6 + (i + 1) % 4, 1] for i in range(4)]
    assert Mesh(points, [("hexahedron", prisms[:2])]).pairs.tolist() == [[0, 1]]
    assert Mesh(points, [("hexahedron", prisms)]).pairs.tolist() == [[0, 1], [0, 3], [1, 2], [2, 3]]
    below, above = [0, 3, 6, 6, 1, 4, 7, 7], [1, 4, 7, 2, 5, 8]
    column = [(x, y, z) for x, y in ((0, 0), (1, 0), (0, 1)) for z in (0, 1, 2)]
    stack = Mesh(column, [("hexahedron", [below]), ("wedge", [above])])
    assert stack.pairs.tolist() == [[0, 1]]
    assert partition(stack, 2, "bisection").quality().edge_cut == 1


def test_a_fan_of_quads_is_one_of_triangles() -> None:
    """Edges that have become points are no faces: more than two cells meet in the middle."""
    points = [(0, 0), *((np.cos(t), np.sin(t)) for t in np.arange(6))]
    fan = [[0, 0, 1 + i, 1 + (i + 1) % 6] for i in range(6)]
    mesh = Mesh(points, [("quad", fan)])
    assert mesh.pairs.tolist() == Mesh(points, [("triangle", [row[1:] for row in fan])]).pairs.tolist()
    assert len(mesh.pairs) == 6 and len(mesh.surface()[0]) == 6


def test_a_mesh_of_collapsed_hexahedra_equals_one_of_wedges() -> None:
    """Each hexahedron of a box is cut into two prisms, written in either way, with the corners turned."""
    whole = box((4, 3, 3)).blocks[0][1]
    points = box((4, 3, 3)).points
    wedges = np.concatenate([whole[:, [0, 1, 2, 4, 5, 6]], whole[:, [0, 2, 3, 4, 6, 7]]])
    turns = [[0, 1, 2, 2, 3, 4, 5, 5], [0, 0, 1, 2, 3, 3, 4, 5], [2, 0, 0, 1, 5, 3, 3, 4]]
    hexahedra = np.stack([row[turns[i % 3]] for i, row in enumerate(wedges)])
    one, other = Mesh(points, [("hexahedron", hexahedra)]), Mesh(points, [("wedge", wedges)])
    assert (one.pairs == other.pairs).all() and len(one.pairs) > 100
    assert np.allclose(one.centres, other.centres) and len(one.surface()[0]) == len(other.surface()[0])


@pytest.mark.parametrize(
    ("kind", "corners", "what"),
    [
        ("triangle", [0, 1, 1], "area"),
        ("quad", [0, 1, 1, 0], "area"),
        ("quad", [0, 1, 0, 2], "area"),
        ("tetra", [0, 1, 2, 2], "volume"),
        ("pyramid", [0, 1, 2, 2, 2], "volume"),
        ("wedge", [0, 1, 2, 0, 1, 2], "volume"),
        ("hexahedron", [0, 1, 2, 3, 0, 1, 2, 3], "volume"),
        ("hexahedron", [0] * 8, "volume"),
    ],
)
def test_a_cell_without_an_extent_is_named(kind: str, corners: list[int], what: str) -> None:
    points = RANDOM.random((20, 2 if what == "area" else 3))
    sound = list(range(8, 8 + len(corners)))
    with pytest.raises(InputError, match=f"cell 1, a {kind} with the corners .*, has no {what}$"):
        Mesh(points, [(kind, [sound, corners])])


def test_a_cell_that_is_there_twice_is_named() -> None:
    points: Any = RANDOM.random((9, 3))
    cases = [
        [("hexahedron", [list(range(8)), [4, 5, 6, 7, 0, 1, 2, 3]])],
        [("wedge", [list(range(6))]), ("hexahedron", [[0, 1, 2, 2, 3, 4, 5, 5]])],
        [("tetra", [[3, 2, 1, 0]]), ("hexahedron", [[0, 1, 2, 3, 3, 3, 3, 3]])],
    ]
    for blocks in cases:
        with pytest.raises(InputError, match="cells 0 and 1 have the same corners"):
            Mesh(points, blocks)
    assert len(Mesh(points, [("tetra", [[0, 1, 2, 3], [0, 1, 2, 4]])])) == 2


def test_first_equals_finds_every_repetition() -> None:
    sets = list(itertools.combinations(range(12), 4))
    chosen = [sets[i] for i in RANDOM.integers(0, len(sets), 400)]
    first = {one: chosen.index(one) for one in set(chosen)}
    mixed = np.array([RANDOM.permutation(one) for one in chosen])
    blocks = [("tetra", mixed[:150]), ("quad", mixed[150:])]
    assert first_equals(blocks).tolist() == [first[one] for one in chosen]
    assert first_equals([]).tolist() == []
