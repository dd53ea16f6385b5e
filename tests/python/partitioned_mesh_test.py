"""Meshes over ranks: `PartitionedMesh`, and a halo exchange over it against the whole mesh."""

from __future__ import annotations

from pathlib import Path

import pytest
from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow

PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np, waywiser as ww
from made_up_mesh import box, mixed_solid, triangles
from waywiser.mesh import MeshParts, PartitionedMesh, partition
group = ww.join()

def within(mesh, cells, layers):
    '''The cells at most so many faces away, cell by cell.'''
    near = set(cells)
    for _ in range(layers):
        near |= {{int(b) for a, b in [*mesh.pairs, *mesh.pairs[:, ::-1]] if int(a) in near}}
    return near - set(cells)

def check(mesh, parts, layers=1):
    part = PartitionedMesh(group, mesh, parts, layers=layers)
    mine = np.flatnonzero(parts.of_cell == group.rank)
    assert part.cells[: part.owned].tolist() == mine.tolist()
    ghosts = part.cells[part.owned :]
    assert set(ghosts.tolist()) == within(mesh, mine.tolist(), layers) and len(set(ghosts.tolist())) == len(ghosts)
    assert (part.owners == parts.of_cell[part.cells]).all()
    assert part.local_shape == (len(part.cells),)
    scalar, vector = np.random.default_rng(1).random(len(mesh)), np.random.default_rng(2).random((len(mesh), 3))
    fields = [np.zeros(part.local_shape), np.zeros((*part.local_shape, 3), np.float32)]
    fields[0][: part.owned], fields[1][: part.owned] = scalar[mine], vector[mine]
    halo = ww.HaloExchange(group, part, fields)
    for variant in ["whole_field", "per_neighbor", "packed"]:
        for field in fields: field[part.owned :] = -1
        halo.use(variant)
        halo.exchange()
        assert (fields[0] == scalar[part.cells]).all() and (fields[1] == vector[part.cells].astype(np.float32)).all()
    return part
"""


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_ghosts_get_the_values_of_the_whole_mesh(ranks: int) -> None:
    code = """
    random = np.random.default_rng(3)
    for mesh in [box((7, 9)), box((3, 4, 5)), triangles((6, 6), random), mixed_solid()]:
        for method in ["bisection", "auto"]:
            check(mesh, partition(mesh, group.size, method))
        by_chance = MeshParts(mesh, random.integers(0, group.size, len(mesh)), group.size)  # disconnected
        check(mesh, by_chance, layers=2)
    empty = MeshParts(box((4, 4)), np.zeros(16, np.int64), group.size)  # all ranks but the first own nothing
    check(empty.mesh, empty)
    group.barrier()
    """
    assert run(ranks, code, program=PROGRAM) == (0, [], "")


def test_neighbours_and_layers() -> None:
    code = """
    mesh = box((12, 2))
    part = check(mesh, partition(mesh, 3, "bisection"))
    assert part.neighbors == [[1], [0, 2], [1]][group.rank]
    print(part)
    two = check(mesh, partition(mesh, 3, "bisection"), layers=2)
    assert len(two.cells) - two.owned == 2 * (len(part.cells) - part.owned)
    group.barrier()
    """
    assert run(3, code, program=PROGRAM) == (
        0,
        [
            "<waywiser.mesh.PartitionedMesh: 8 cells and 2 ghosts, neighbours [0]>".replace("[0]", "[1]"),
            "<waywiser.mesh.PartitionedMesh: 8 cells and 2 ghosts, neighbours [1]>",
            "<waywiser.mesh.PartitionedMesh: 8 cells and 4 ghosts, neighbours [0, 2]>",
        ],
        "",
    )


def test_all_ranks_take_the_parts_of_rank_0() -> None:
    code = """
    mesh = box((4, 4))
    others = np.arange(16) % 2 if group.rank == 0 else np.zeros(16, np.int64)
    part = PartitionedMesh(group, mesh, MeshParts(mesh, others, 2))
    assert part.cells[: part.owned].tolist() == list(range(group.rank, 16, 2))
    group.barrier()
    """
    assert run(2, code, program=PROGRAM) == (0, [], "")


def test_what_does_not_fit_is_refused_at_all_ranks() -> None:
    code = """
    odd = group.rank == 1
    def refused(*arguments, **others):
        try: PartitionedMesh(group, *arguments, **others)
        except ww.InputError as error: return str(error)
    mesh, other = box((4, 4)), box((4, 3))
    cut, of_other, three = (partition(m, n, "bisection") for m, n in [(mesh, 2), (other, 2), (mesh, 3)])
    assert refused(mesh, three if odd else cut) == "rank 1: 3 parts of a mesh for 2 ranks"
    assert refused(*((other, of_other) if odd else (mesh, cut))) == "rank 1 has a mesh of 12 cells, rank 0 of 16"
    assert refused(mesh, of_other if odd else cut) == "rank 1: a mesh of 16 cells, and parts of one of 12"
    assert refused(mesh, cut, layers=2 if odd else 1) == "rank 1 has layers=2, rank 0 layers=1"
    assert refused(mesh, cut, layers=0) == "layers=0: there is at least one layer of ghosts"
    group.barrier()
    """
    assert run(2, code, program=PROGRAM) == (0, [], "")


def test_ranks_whose_program_ends_by_it_have_the_same_error() -> None:
    """None ends while others still wait for what they forward to each other."""
    code = "mesh = box((4, 4 + group.rank // 4)); PartitionedMesh(group, mesh, partition(mesh, 5, 'bisection'))"
    for _ in range(5):
        _, _, err = run(5, code, program=PROGRAM)
        assert err.count("InputError: rank ") == 5 and "TransferError" not in err
