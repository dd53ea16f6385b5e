"""Grids whose boxes the program chooses, and staggered ones, against the whole domain in NumPy."""

from __future__ import annotations

import pytest
from halo_domain import DOMAIN
from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]


@pytest.mark.parametrize("periodic", [False, True])
def test_boxes_of_the_program(periodic: bool) -> None:
    code = f"""
    group = ww.join()
    boxes = [((0, 0), (3, 7)), ((3, 0), (4, 2)), ((3, 2), (4, 5)), ((0, 0), (0, 0))]
    grid = ww.GridPartition(group, (7, 7), box=boxes[group.rank], periodic={periodic})
    assert (grid.first, grid.count, grid.parts) == (*boxes[group.rank], ())
    wanted = taken(whole(grid, 1), grid)
    field = owned_only(wanted, grid)
    ww.HaloExchange(group, grid, [field]).exchange()
    assert (field == (wanted if group.rank < 3 else -1)).all(), field
    made = grid.gather(field)
    assert made is None or (made == whole(grid, 1)).all()
    group.barrier()
    """
    assert run(4, code, program=DOMAIN) == (0, [], "")


@pytest.mark.parametrize("ranks", [1, 2, 6])
def test_staggered_fields_are_cut_where_the_cells_are(ranks: int) -> None:
    code = """
    group = ww.join()
    for shape in [(40, 6, 5), (41, 8, 3), (5, 2, 2), (1, 9, 4)]:
        grid = ww.GridPartition(group, shape, periodic=(False, True, False))
        for axes in [(0,), (1,), (2,), (0, 2), (-1, 0)]:
            faces = grid.staggered(*axes)
            longer = [axis in axes or axis - 3 in axes for axis in range(3)]
            longer[1] = False  # it repeats itself
            assert faces.shape == tuple(n + more for n, more in zip(shape, longer))
            assert faces.first == grid.first
            last = [f + c == n and 0 not in grid.count for f, c, n in zip(grid.first, grid.count, shape)]
            assert faces.count == tuple(c + (a and b) for c, a, b in zip(grid.count, longer, last))
            assert faces is grid.staggered(*axes[::-1], *axes)
            wanted = taken(whole(faces, 1, (2,)), faces)
            field = owned_only(wanted, faces)
            ww.HaloExchange(group, faces, [field]).exchange()
            assert 0 in faces.count or (field == wanted).all()
            made = faces.gather(field, root=group.size - 1)
            assert made is None or (made == whole(faces, 1, (2,))).all()
    group.barrier()
    """
    assert run(ranks, code, program=DOMAIN) == (0, [], "")


def test_a_marker_and_cell_step_by_the_three_calls() -> None:
    code = """
    from waywiser.halo import finalize, init_grid, update_halo
    grid = init_grid((10, 7), parts=(3, 1))
    faces = grid.staggered(0)
    whole_u = np.random.default_rng(1).random(faces.shape)
    u, p = np.zeros(faces.local_shape), np.zeros(grid.local_shape)
    u[faces.interior] = whole_u[tuple(slice(f, f + c) for f, c in zip(faces.first, faces.count))]
    update_halo(u, grid=faces)
    inside, (at, _) = grid.interior, grid.interior
    p[inside] = u[at.start + 1 : at.stop + 1, inside[1]] - u[at, inside[1]]
    update_halo(p)
    made = grid.gather(p)
    assert made is None or np.array_equal(made, np.diff(whole_u, axis=0))
    finalize()
    """
    assert run(3, code, program=DOMAIN) == (0, [], "")


def test_boxes_that_are_none_are_refused_at_all_ranks() -> None:
    code = """
    group = ww.join()
    def attempt(of_0, of_1, shape=(4, 4), **more):
        try: ww.GridPartition(group, shape, box=of_0 if group.rank == 0 else of_1, **more)
        except ww.Error as error: print(group.rank, type(error).__name__, error)
    lower, upper = ((0, 0), (2, 4)), ((2, 0), (2, 4))
    attempt(lower, ((2, 0), (1, 4)))
    attempt(lower, ((1, 0), (2, 4)))
    attempt(lower, ((2,), (2,)))
    attempt(lower, 5)
    attempt(lower, ((2, 0), (2, 4.5)))
    attempt(lower, upper, parts=(2, 1))
    attempt(lower, upper, shape=(4 + group.rank, 4))
    attempt(lower, upper, ghost=group.rank)
    attempt(lower, upper, periodic=group.rank)
    attempt(lower, upper, shape=(4, 4) if group.rank == 0 else (4, -4))
    try: ww.GridPartition(group, (4, 4)).staggered(2)
    except ww.InputError as error: print(group.rank, "InputError", error)
    assert ww.GridPartition(group, (4, 4), box=lower if group.rank == 0 else upper).count == (2, 4)
    """
    ended, lines, errors = run(2, code, program=DOMAIN)
    assert (ended, errors) == (0, "")
    both = [
        "a grid: the boxes leave cells out",
        "a grid: the box of rank 1 overlaps that of rank 0",
        "rank 1: a grid: the box of this rank has other dimensions",
        "rank 1 has another shape of the whole grid than rank 0",
        "rank 1 has another width of ghosts than rank 0",
        "rank 1 has another choice of periodic dimensions than rank 0",
        "staggered: axes are whole numbers below 2, not (2,)",
    ]
    for rank in (0, 1):
        said = [line.partition(" ")[2] for line in lines if line.startswith(str(rank))]
        assert len(said) == 11 and {f"InputError {each}" for each in both} <= set(said), said
    own = [line for line in lines if line.startswith("1 ")]
    for each in [
        "box= is a pair",
        "box= is a whole number, not float",
        "give parts= or box=",
        "shape=-4 is out of range",
    ]:
        assert any(each in line for line in own), own
