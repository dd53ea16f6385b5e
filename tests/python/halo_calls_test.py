"""The three calls for grids: `waywiser.halo.init_grid`, `update_halo`, `finalize`."""

from __future__ import annotations

from halo_domain import DOMAIN
from rank_jobs import NO_PLAN, run, runtime_folder

__all__ = ["runtime_folder"]

COUNTED = (
    DOMAIN
    + """
from waywiser.halo import current_grid, init_grid, update_halo
prepared = []
class Counted(ww.HaloExchange):
    def __init__(self, *given):
        prepared.append(given)
        super().__init__(*given)
current_grid.HaloExchange = Counted
"""
)


def test_the_three_calls() -> None:
    code = """
    from waywiser import halo
    grid = halo.init_grid((6, 5), periodic=(True, False), parts=(2, 1))
    wanted = taken(whole(grid, 3), grid)
    field, other = owned_only(wanted, grid), owned_only(wanted, grid).astype(np.float32)[None]
    for _ in range(2):
        halo.update_halo(field, ww.ComponentsFirst(other))
        assert (field == wanted).all() and (other == wanted).all()
    for _ in range(40):  # more than are kept
        more = owned_only(wanted, grid)
        halo.update_halo(more)
        assert (more == wanted).all()
    print(grid)
    halo.finalize()
    try: halo.update_halo(field)
    except ww.InputError as error: print(error)
    """
    assert run(2, code, program=DOMAIN) == (
        0,
        [
            "<waywiser.GridPartition: (3, 5) cells from (0, 0) of (6, 5)>",
            "<waywiser.GridPartition: (3, 5) cells from (3, 0) of (6, 5)>",
            "update_halo: call init_grid first",
            "update_halo: call init_grid first",
        ],
        "",
    )


def test_the_same_memory_is_prepared_once() -> None:
    code = """
    grid = init_grid((6, 5), periodic=True)
    wanted = taken(whole(grid, 3), grid).astype(float)
    u = np.stack([owned_only(wanted, grid)] * 3)
    for turn in range(3):
        u[:] = owned_only(wanted, grid)
        update_halo(u[0], u[1])
        assert (u[0] == wanted).all() and (u[1] == wanted).all() and not (u[2] == wanted).all()
    assert len(prepared) == 1
    update_halo(u[1], u[0])  # other fields
    update_halo(u[0], u[1].view(np.int64))
    update_halo(ww.ComponentsFirst(u[:1]), u[1])
    update_halo(u[0][..., None], u[1])
    assert len(prepared) == 5
    frozen = u[0].view()
    frozen.flags.writeable = False
    try: update_halo(frozen, u[1])
    except ww.InputError as error: print(error)
    """
    said = "an array was expected, 'ndarray' cannot be written to"
    assert run(2, code, program=COUNTED) == (0, [f"rank 0: {said}"] * 2, "")


def test_memory_of_gpus_is_known_again() -> None:
    code = """
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    grid = init_grid((6, 5), group=group)
    class Interface:
        def __init__(self, array): self.array = array
        @property
        def __cuda_array_interface__(self): return self.array.__cuda_array_interface__
    values = owned_only(taken(whole(grid, 3), grid), grid).astype(float)
    memory = gpus.array(values, group.rank)
    for _ in range(2):
        update_halo(memory)
        update_halo(Interface(memory))
    assert len(prepared) == 1
    group.barrier()
    """
    assert run(2, code, program=COUNTED) in [(0, [], ""), (0, [], NO_PLAN)]


def test_arrays_without_elements_are_known_by_their_objects_at_all_ranks() -> None:
    code = """
    grid = init_grid((2, 5), ghost=0, parts=(3, 1))
    u = np.zeros((2, *grid.local_shape))
    for _ in range(2): update_halo(u[0])
    a, b = u[0], u[1]
    for _ in range(2): update_halo(a); update_halo(b); update_halo(a)
    assert len(prepared) == 4, len(prepared)
    """
    assert run(3, code, program=COUNTED) == (0, [], "")


def test_an_array_of_one_rank_that_does_not_tell_its_address() -> None:
    code = """
    grid = init_grid((6,))
    from array import array
    u = np.zeros((2, *grid.local_shape))
    of = (lambda: memoryview(u[0])) if grid.group.rank == 1 else (lambda: u[0])
    for _ in range(3): update_halo(of())
    same = of()
    for _ in range(3): update_halo(same)
    assert len(prepared) == 4, len(prepared)
    """
    assert run(2, code, program=COUNTED) == (0, [], "")


def test_the_group_of_a_grid_and_its_whole_fields() -> None:
    code = """
    grid = init_grid((7, 5, 3), periodic=(True, False, False), ghost=(2, 1, 0), parts=(2, 2, 1))
    assert grid.group.size == 4 and grid.group.all_reduce(1) == 4
    for seed, (more, kind) in enumerate([((), np.float64), ((2,), np.int8), ((1,), np.complex64), ((2, ), bool)]):
        wanted = whole(grid, seed, more).astype(kind)
        field = owned_only(taken(whole(grid, seed, more), grid), grid).astype(kind)
        for root in (0, 3):
            made = grid.gather(field, root)
            assert (made is None) == (grid.group.rank != root)
            assert made is None or (made.dtype == kind and (made == wanted).all())
        if more:
            made = grid.gather(ww.ComponentsFirst(np.moveaxis(field, -1, 0)))
            assert made is None or (made == np.moveaxis(wanted, -1, 0)).all()
    """
    assert run(4, code, program=COUNTED) == (0, [], "")


def test_whole_fields_from_gpus_and_from_ranks_without_cells() -> None:
    code = """
    from array import array
    gpus = ww.virtual_gpus(3)
    group = ww.join(gpus=gpus)
    buffer = array("d", range(7)) if group.rank < 2 else array("d")
    grid = ww.GridPartition(group, (2, 5), ghost=(0, 1), parts=(3, 1))
    made = grid.gather(buffer)  # it has no shape
    assert made is None or (made == np.tile(np.arange(1, 6), (2, 1))).all(), made
    for shape in [(2, 5), (7, 5)]:
        grid = ww.GridPartition(group, shape, parts=(3, 1))
        wanted = whole(grid, 1)
        field = gpus.array(owned_only(taken(wanted, grid), grid), group.rank)
        made = grid.gather(field)
        assert made is None or (made == wanted).all()
    group.barrier()
    """
    assert run(3, code, program=COUNTED) in [(0, [], ""), (0, [], NO_PLAN)]


def test_gathering_what_does_not_fit_is_refused_at_all_ranks() -> None:
    code = """
    grid = init_grid((6, 5))
    field, rank = np.zeros(grid.local_shape), grid.group.rank
    def attempt(call):
        try: call()
        except ww.Error as error: print(f"{rank}: {type(error).__name__} {error}")
    attempt(lambda: grid.gather(np.zeros((9, 9)) if rank == 1 else field))
    attempt(lambda: grid.gather(field.astype(np.float32) if rank == 1 else field))
    attempt(lambda: grid.gather(field[..., None] if rank == 1 else field))
    attempt(lambda: grid.gather(ww.ComponentsFirst(field[None]) if rank == 1 else field[..., None]))
    assert grid.gather(field) is None or rank == 0
    """
    ended, lines, errors = run(2, code, program=COUNTED)
    assert (ended, errors) == (0, "")
    refused = [
        "another number of components than that of rank 0",
        "another place of components than that of rank 0",
        "another type than that of rank 0",
    ]
    shape = "a field of shape (9, 9): (5, 7) was expected, or that with components last"
    reasons = ([*refused, "its array does not fit the grid"], [shape, *refused])
    assert lines == [f"{rank}: InputError rank 1: gather: {why}" for rank in (0, 1) for why in reasons[rank]]
