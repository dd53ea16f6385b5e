"""Halo exchanges: `waywiser.HaloExchange` against the whole domain in NumPy."""

from __future__ import annotations

import pytest
from halo_domain import DOMAIN
from rank_jobs import NO_PLAN, run, runtime_folder

__all__ = ["runtime_folder"]


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_grids_on_hosts(ranks: int) -> None:
    code = """
    group = ww.join()
    for seed, shape in enumerate([(9,), (8, 7), (6, 5, 4), (4, 4, 4, 5)]):
        periodic = [i % 2 == seed % 2 for i in range(len(shape))]
        grid = ww.GridPartition(group, shape, ghost=1 + seed % 2, periodic=periodic)
        wanted = [taken(whole(grid, seed + i, more), grid).astype(kind)
                  for i, (more, kind) in enumerate([((), np.float64), ((), np.int8), ((3,), np.float32)])]
        wanted.append(np.moveaxis(wanted[2], -1, 0).astype(np.float16))
        fields = [owned_only(each, grid) for each in wanted[:3]]
        fields.append(np.ascontiguousarray(np.moveaxis(fields[2], -1, 0)).astype(np.float16))
        assert fields[0].shape == grid.local_shape
        halo = ww.HaloExchange(group, grid, [*fields[:3], ww.ComponentsFirst(fields[3])])
        for variant in ["whole_field", "per_neighbor", "packed"]:
            halo.use(variant)
            before = [each.copy() for each in fields]
            halo()
            for field, want, old in zip(fields, wanted, before):
                assert (field == want).all(), (variant, shape)
                field[:] = old
    group.barrier()
    """
    assert run(ranks, code, program=DOMAIN) == (0, [], "")


def test_grids_on_gpus() -> None:
    code = """
    gpus = ww.virtual_gpus(3)
    group = ww.join(gpus=gpus)
    grid = ww.GridPartition(group, (7, 8), ghost=(1, 2), periodic=True)
    wanted = [taken(whole(grid, 1), grid).astype(np.float32), taken(whole(grid, 2, (2,)), grid).astype(np.int16)]
    fields = [gpus.array(owned_only(each, grid), group.rank) for each in wanted]
    halo = ww.HaloExchange(group, grid, fields)
    assert halo.variant == "direct", halo.explain()
    stream = gpus.open_stream(group.rank)
    every = ["whole_field", "per_neighbor", "packed", "direct", "strided", "gpu_aware"]
    for variant in every:
        halo.use(variant)
        for on in [None, stream]:
            for field, want in zip(fields, wanted): field.fill(owned_only(want, grid))
            halo.start(stream=on)
            halo.finish()
            if on is not None: group.synchronize(fields[0], stream=on)
            for field, want in zip(fields, wanted): assert (field.numpy() == want).all(), (variant, on)
    assert halo.counts("packed")["bus_copies"] == 4 and halo.counts("direct")["bus_copies"] == 0
    assert halo.counts("gpu_aware")["exchanges"] == 2 and halo.counts("gpu_aware")["bus_copies"] == 0
    times = halo.tune(0.01)
    mixed = "mixed" in times  # sides differ in their fastest: then the mix and the best are compared again
    assert set(times) - {"mixed"} == set(every)
    assert halo.variant in times and (mixed or times[halo.variant] == min(times.values()))
    assert halo.explain().startswith(halo.variant + ": ")
    assert "\\ntimes of virtual GPUs, which say nothing about GPUs" in halo.explain()
    halo.use("direct")
    assert halo.explain().splitlines()[1].startswith("one kernel of "), halo.explain()
    assert " by LL" in halo.explain()
    halo.use("packed")
    assert "kernel" not in halo.explain()
    group.barrier()
    """
    assert run(3, code, program=DOMAIN) in [(0, [], ""), (0, [], NO_PLAN)]


def test_meshes() -> None:
    code = """
    group = ww.join()
    rank, size = group.rank, group.size
    # 12 cells of a ring in strips of 4; ghosts come first: that on the left, that on the right
    left, right = (rank - 1) % size, (rank + 1) % size
    mesh = ww.MeshPartition(group, 6, [(left, [2], np.array([0])), (right, np.array([5], np.uint8), [1])])
    assert mesh.neighbors == sorted({left, right})
    value, vector = np.full(6, -1.0), np.full((6, 3), -1, np.int32)
    halo = ww.HaloExchange(group, mesh, [value])
    halo.add(vector)
    assert halo.fields[1] is vector
    value[2:] = 4 * rank + np.arange(4)
    vector[2:] = value[2:, None] * [1, 10, 100]
    halo.start()
    halo.finish()
    ghosts = np.array([(4 * rank - 1) % (4 * size), (4 * rank + 4) % (4 * size)])
    assert (value[:2] == ghosts).all() and (vector[:2] == ghosts[:, None] * [1, 10, 100]).all()
    halo.remove(value)
    value[:2], vector[:2] = -1, -1
    halo.exchange()
    assert (value[:2] == -1).all() and (vector[:2, 0] == ghosts).all()
    times = halo.tune(0.001)
    assert times["direct"] is None and times[halo.variant] is not None
    assert "direct unavailable: the fields are in host memory, which no kernel serves" in halo.explain()
    group.barrier()
    """
    assert run(3, code, program=DOMAIN) == (0, [], "")


def test_sides_have_their_own_variants() -> None:
    code = """
    gpus = ww.virtual_gpus(4)
    group = ww.join(gpus=gpus)
    grid = ww.GridPartition(group, (6, 8), parts=(2, 2))
    wanted = taken(whole(grid, 1), grid).astype(np.float32)
    field = gpus.array(owned_only(wanted, grid), group.rank)
    halo = ww.HaloExchange(group, grid, [field])
    def right():
        field.fill(owned_only(wanted, grid))
        halo.exchange()
        return (field.numpy() == wanted).all()
    def refused(variant):
        try: halo.use(variant)
        except ww.InputError as error: return str(error)
    assert [each.variant for each in halo.sides] == ["direct"] * 3
    across, along = group.rank ^ 2, group.rank ^ 1
    assert {each.neighbor: each.face for each in halo.sides}[across] == (1 if group.rank < 2 else -1, 0)
    halo.use(["packed" if each.face[0] == 0 else "direct" for each in halo.sides])
    assert halo.variant == "mixed" and right()
    halo.use({along: "per_neighbor"})
    assert {each.neighbor: each.variant for each in halo.sides} == {
        along: "per_neighbor", across: "direct", 3 - group.rank: "direct"}
    assert right() and halo.counts("mixed")["exchanges"] == 2
    assert f"to rank {along} at (0, " in halo.explain(), halo.explain()
    assert refused({9: "packed"}) == "rank 0: use: rank 9 is no neighbour that is given cells"
    assert refused(["packed"]) == "rank 0: 1 variants of a halo exchange for 3 sides of the partition"
    assert "is no variant" in refused({across: "best"})
    assert right()
    group.barrier()
    """
    assert run(4, code, program=DOMAIN) == (0, [], "")


def test_what_does_not_fit_is_refused() -> None:
    code = """
    group = ww.join()
    grid = ww.GridPartition(group, (6, 5))
    field = np.zeros(grid.local_shape)
    def attempt(call):
        try: call()
        except ww.Error as error: print(type(error).__name__, error)
    attempt(lambda: ww.GridPartition(group, (6, 5), parts=(2, 2)))
    attempt(lambda: ww.GridPartition(group, (6, 5), ghost=(1,)))
    attempt(lambda: ww.GridPartition(group, (6, -5)))
    attempt(lambda: ww.GridPartition(group, (6, 5.5)))
    attempt(lambda: ww.GridPartition(group, ()))
    attempt(lambda: ww.GridPartition(group, (2,) * 5))
    attempt(lambda: ww.MeshPartition(group, 4, [(0, [1], [4])]))
    attempt(lambda: ww.MeshPartition(group, 4, [(0, [1.5], [2])]))
    attempt(lambda: ww.MeshPartition(group, 4, [(0, [1])]))
    attempt(lambda: ww.MeshPartition(group, 4, [(3, [1], [2])]))
    attempt(lambda: ww.HaloExchange(group, (6, 5), [field]))
    attempt(lambda: ww.HaloExchange(group, grid, [field[1:]]))
    attempt(lambda: ww.HaloExchange(group, grid, [ww.ComponentsFirst(field)]))
    attempt(lambda: ww.HaloExchange(group, grid, [field, field]))
    halo = ww.HaloExchange(group, grid, [field])
    attempt(lambda: halo.use("best"))
    attempt(lambda: halo.use("direct"))
    attempt(lambda: halo.tune(-1))
    attempt(lambda: halo.tune("long"))
    attempt(lambda: halo.remove(field[:]))
    attempt(lambda: halo.start(stream=0))
    attempt(halo.finish)
    attempt(ww.halo.finalize)
    """
    lines = [
        "InputError a grid: 5 dimensions: there can be 1 to 4",
        "InputError a halo exchange of host arrays is started without stream=",
        "InputError a halo exchange: finish() without start()",
        "InputError a partition: a neighbour is rank 3: there are 1 ranks",
        "InputError a partition: cell 4 in a list of rank 0: there are 4",
        "InputError finalize: call init_grid first",
        "InputError ghost= has 1 entries for 2 dimensions",
        "InputError parts=(2, 2) are 4 boxes for 1 ranks",
        "InputError rank 0: a field of shape (7, 7): (8, 7) was expected, or that with components last",
        "InputError rank 0: a field of shape (8, 7): (8, 7) was expected, or that with components first",
        "InputError rank 0: a halo exchange is tuned for a time above 0",
        "InputError rank 0: a halo exchange: fields 0 and 1 overlap",
        "InputError rank 0: best: is no variant of a halo exchange: whole_field, per_neighbor, packed, direct, "
        "strided, gpu_aware",
        "InputError remove: an array that is not exchanged",
        "InputError shape= has no dimensions",
        "InputError shape=-5 is out of range",
        "InputTypeError cells are integers: 'float' object cannot be interpreted as an integer",
        "InputTypeError neighbors are tuples: rank, cells given, cells taken",
        "InputTypeError partition is a GridPartition or a MeshPartition, not tuple",
        "InputTypeError seconds is a number, not 'long' of type str",
        "InputTypeError shape= is a whole number, not float",
        "UnavailableError the fields are in host memory, which no kernel serves",
    ]
    assert run(1, code, program=DOMAIN) == (0, lines, "")
