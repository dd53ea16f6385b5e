"""Meshes: which cells share a face, and cutting them into parts."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_mesh import box, mixed_solid, triangles

from waywiser.errors import InputError, InputTypeError, UnavailableError
from waywiser.mesh import Mesh, MeshParts, partition, parts
from waywiser.mesh.metis import LibMetis

RANDOM = np.random.default_rng(5)


def faces_by_hand(mesh: Mesh) -> set[tuple[int, int]]:
    """Pairs of cells with as many corners in common as a face has."""
    cells = [set(row) for _, corners in mesh.blocks for row in corners.tolist()]
    least = 2 if mesh.is_flat else 3
    return {(i, j) for i in range(len(cells)) for j in range(i + 1, len(cells)) if len(cells[i] & cells[j]) >= least}


@pytest.mark.parametrize("mesh", [box((4, 3)), box((3, 2, 4)), triangles((4, 5), RANDOM), mixed_solid()])
def test_neighbours_share_a_face(mesh: Mesh) -> None:
    pairs = {(int(a), int(b)) for a, b in mesh.pairs}
    assert pairs == faces_by_hand(mesh) and len(pairs) == len(mesh.pairs)
    starts, neighbors = mesh.graph
    assert len(starts) == len(mesh) + 1
    assert {(i, int(j)) for i in range(len(mesh)) for j in neighbors[starts[i] : starts[i + 1]]} == pairs | {
        (b, a) for a, b in pairs
    }


def test_a_mesh_of_all_kinds() -> None:
    mesh = mixed_solid()
    assert mesh.pairs.tolist() == [[0, 1], [0, 2], [2, 3]] and not mesh.is_flat
    assert mesh.centres[0].tolist() == [0.5, 0.5, 0.5]
    corners, cells = mesh.surface()
    assert np.bincount(cells).tolist() == [4, 4, 3, 3] and corners.shape == (14, 4)
    assert repr(mesh) == "<waywiser.mesh.Mesh: 4 cells (1 hexahedron, 1 wedge, 1 pyramid, 1 tetra), 12 points>"


def test_what_is_no_mesh_is_refused() -> None:
    points = np.zeros((4, 2))
    cases: list[tuple[tuple[Any, Any], str]] = [
        ((np.zeros(4), []), "points have shape"),
        ((np.full((1, 2), np.nan), []), "a point is not finite"),
        ((points, [("polygon", [[0, 1, 2]])]), "cells of kind 'polygon': there are triangle, quad, "),
        ((points, [("triangle", [[0, 1, 4]])]), "a corner of a triangle is not one of the 4 points"),
        ((points, [("triangle", [[0, 1, -1]])]), "a corner of a triangle is not one of the 4 points"),
        ((points, [("quad", [[0, 1, 2]])]), "a quad has 4 corners"),
        ((points, [("triangle", [[0, 1, 0.5]])]), "given as numbers of points"),
        ((np.zeros((4, 3)), [("triangle", [[0, 1, 2]]), ("tetra", [[0, 1, 2, 3]])]), "cells of two dimensions"),
    ]
    for arguments, why in cases:
        with pytest.raises(InputError, match=why.replace("[", r"\[")):
            Mesh(*arguments)
    fan = Mesh(np.zeros((5, 2)), [("triangle", [[0, 1, 2], [0, 1, 3], [0, 1, 4]])])
    with pytest.raises(InputError, match="more than two cells share a face"):
        partition(fan, 2, "bisection").quality()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 16, 60, 64])
def test_bisection_cuts_evenly(count: int) -> None:
    mesh = box((5, 12))
    cut = partition(mesh, count, "bisection")
    sizes = np.bincount(cut.of_cell, minlength=count)
    assert sizes.max() - sizes.min() <= 1 and cut.method == "recursive coordinate bisection"
    assert (cut.of_cell == partition(mesh, count, "bisection").of_cell).all()


def test_bisection_cuts_across_the_longest_extent() -> None:
    assert partition(box((8, 4)), 2, "bisection").of_cell.reshape(8, 4).tolist() == [[0] * 4] * 4 + [[1] * 4] * 4
    assert partition(box((4, 8)), 2, "bisection").of_cell.reshape(4, 8).tolist() == [[0] * 4 + [1] * 4] * 4
    assert partition(box((4, 8), 9.0), 4, "bisection").quality().edge_cut == 24
    assert len(partition(Mesh(np.zeros((0, 2)), []), 3, "bisection").of_cell) == 0


def test_quality_is_that_of_the_definitions() -> None:
    mesh = box((2, 4))  # cells 0 to 3 in one row, 4 to 7 in the other
    quality = MeshParts(mesh, [0, 0, 1, 1, 0, 0, 0, 2], 4).quality()
    assert (quality.edge_cut, quality.imbalance, quality.empty) == (4, 2.5, 1)
    assert (quality.most_neighbors, quality.mean_neighbors) == (2, 1.5)
    assert str(quality) == (
        "8 cells in 4 parts: 4 faces cut, imbalance 2.500, 1.5 neighbours in the mean, 2 at most, 1 parts are empty"
    )


def test_parts_that_are_none_are_refused() -> None:
    mesh = box((2, 2))
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: MeshParts(mesh, [0, 1, 2], 3), "one whole number for each of 4 cells"),
        (lambda: MeshParts(mesh, [0, 1, 2, 3], 3), "a part is not one of 0 to 2"),
        (lambda: MeshParts(mesh, [0.0] * 4, 3), "one whole number for each of 4 cells"),
        (lambda: partition(mesh, 0), "0 parts: there can be 1 to"),
        (lambda: partition(mesh, 2, "best"), "method='best': write auto, metis or bisection"),  # type: ignore[arg-type]
    ]
    for call, why in calls:
        with pytest.raises(InputError, match=why):
            call()
    with pytest.raises(InputTypeError, match="parts is a whole number, not float"):
        partition(mesh, 2.5)  # type: ignore[arg-type]


def test_metis_cuts_better_than_by_chance() -> None:
    pytest.importorskip("pymetis")
    mesh = triangles((12, 12), RANDOM)
    cut = partition(mesh, 4)
    assert cut.method.startswith("METIS (pymetis ") and cut.why == ""
    quality = cut.quality()
    assert quality.empty == 0 and quality.imbalance < 1.1 and quality.edge_cut < len(mesh.pairs) / 4
    assert (cut.of_cell == partition(mesh, 4, "metis").of_cell).all()
    assert np.bincount(partition(mesh, 400, "metis").of_cell, minlength=400).max() == 1
    assert set(partition(mesh, 1, "metis").of_cell.tolist()) == {0}


@pytest.mark.parametrize(("shape", "parts"), [((1, 3), 2), ((1, 6), 5), ((2, 4), 7), ((4, 4), 9), ((5, 6), 29)])
def test_no_part_of_a_small_mesh_is_empty(shape: tuple[int, int], parts: int) -> None:
    pytest.importorskip("pymetis")
    mesh = box(shape)
    cut = partition(mesh, parts, "metis")
    assert cut.quality().empty == 0 and set(cut.of_cell.tolist()) == set(range(parts))
    assert (cut.of_cell == partition(mesh, parts, "metis").of_cell).all()


def test_without_metis_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    mesh = box((2, 4))
    with pytest.raises(UnavailableError, match=r"METIS: not installed: pymetis .* or libmetis"):
        partition(mesh, 2, "metis")
    cut = partition(mesh, 2)
    assert cut.method == parts.BISECTION and "not installed: pymetis" in cut.why
    monkeypatch.setattr("ctypes.util.find_library", lambda _: "libc.so.6")
    assert "METIS_PartGraphKway" in partition(mesh, 2).why


# A library with METIS's functions: cell i goes to part i % parts, plus the seed.
FAKE = """
#include <stdint.h>
typedef int%d_t idx;
int METIS_SetDefaultOptions(idx* options) { for (int i = 0; i < 40; ++i) options[i] = -1; return 1; }
int METIS_PartGraphKway(idx* n, idx* constraints, idx* starts, idx* ends, idx* w, idx* s, idx* e, idx* parts, void* t,
                        void* u, idx* options, idx* cut, idx* part) {
  if (*constraints != 1 || w || s || e || t || u || options[8] != 1 || options[0] != -1 || starts[*n] != 20) return -2;
  for (idx i = 0; i < *n; ++i) part[i] = (ends[starts[i]] + i) %% *parts;
  *cut = 3;
  return 1;
}
"""


@pytest.mark.parametrize("bits", [32, 64])
def test_the_c_library_of_either_width(bits: int, tmp_path: Path) -> None:
    source, library = tmp_path / "metis.c", tmp_path / "libmetis.so"
    source.write_text(FAKE % bits)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    mesh = box((2, 4))
    starts, neighbors = mesh.graph
    cut = LibMetis(ctypes.CDLL(str(library))).cut(starts, neighbors, 3)
    assert cut.tolist() == [(int(neighbors[starts[i]]) + i) % 3 for i in range(8)] and cut.dtype == np.int64


def bent() -> Mesh:
    """A plate in space."""
    flat = box((6, 5))
    points = np.column_stack([flat.points, np.sin(flat.points[:, 0])])
    return Mesh(points, flat.blocks)


@pytest.mark.parametrize("mesh", [box((6, 5)), mixed_solid(), bent()])
def test_parts_are_drawn(mesh: Mesh, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotly")
    cut = partition(mesh, 3, "bisection")
    cut.plot(tmp_path / "parts.png")
    assert (tmp_path / "parts.png").read_bytes().startswith(b"\x89PNG")
    cut.plot(tmp_path / "parts.svg")
    assert (tmp_path / "parts.svg").read_text().startswith("<?xml")
    with pytest.raises(InputError, match=r"write a name that ends with \.png"):
        cut.plot(tmp_path / "parts.txt")
    with pytest.raises(InputError, match="a mesh without cells is not drawn"):
        partition(Mesh(np.zeros((0, 2)), []), 3).plot(tmp_path / "none.png")
