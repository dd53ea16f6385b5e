"""Scans, bits and locations in Python, compared with NumPy's results."""

from __future__ import annotations

import numpy as np
import pytest
from rank_jobs import NO_PLAN, run, runtime_folder

import waywiser as ww

__all__ = ["runtime_folder"]


def test_bits_are_those_of_numpy() -> None:
    """On GPUs too, where hosts carry them out."""
    code = """
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    values = np.random.default_rng(7).integers(0, 256, (2, 64), np.uint8)
    values[:, :16] &= 1
    values[:, :8] = 0
    folds = dict(band=np.bitwise_and, bor=np.bitwise_or, bxor=np.bitwise_xor, land=np.logical_and,
                 lor=np.logical_or, lxor=np.logical_xor)
    stream = gpus.open_stream(group.rank)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        mine = values.view(name)[group.rank]
        for op, fold in folds.items():
            wanted = fold(*values.view(name)).astype(name)
            assert (group.all_reduce(mine.copy(), op=op) == wanted).all(), (name, op)
            on_gpu = gpus.array(mine, group.rank)
            assert (group.all_reduce(on_gpu, op=op).numpy() == wanted).all(), (name, op)
            summed = group.all_reduce(on_gpu, op=op, stream=stream)
            group.synchronize(summed, stream=stream)
            assert (summed.numpy() == wanted).all(), (name, op)
    bools = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], bool)
    for op, fold in folds.items():
        assert (group.all_reduce(bools[group.rank], op=op) == fold(*bools)).all(), op
    assert group.all_reduce(6 - 2 * group.rank, op="band") == 4 and group.all_reduce(True, op="lxor") is False
    """
    code, lines, errors = run(2, code, program="import numpy as np, waywiser as ww\n")
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN), errors


def test_scans_and_locations() -> None:
    code = """
    group = ww.join()
    rank, size = group.rank, group.size
    x = np.full((2, 3), rank + 1)
    assert (group.scan(x) == (rank + 1) * (rank + 2) // 2).all() and group.scan(2.0, op="prod") == 2.0 ** (rank + 1)
    lower = group.exscan(x, op="max")
    assert lower is None if rank == 0 else (lower == rank).all()
    assert group.exscan(1) == (None if rank == 0 else rank)
    begun, below = group.start_scan(x), group.start_exscan(x, op="max")
    assert (begun.wait() == (rank + 1) * (rank + 2) // 2).all()
    lower = below.wait()
    assert lower is None if rank == 0 else (lower == rank).all()
    out = np.full((2, 3), 7)
    assert group.start_exscan(x, out).wait() is (None if rank == 0 else out)
    out = np.full((2, 3), 7)
    assert group.exscan(x, out) is (None if rank == 0 else out)
    assert (out == (7 if rank == 0 else rank * (rank + 1) // 2)).all()
    values, ranks = group.minloc(np.array([rank, -rank, 5.0]))
    assert values.tolist() == [0, 1 - size, 5] and ranks.tolist() == [0, size - 1, 0]
    values, places = group.maxloc(np.array([[rank]], np.int8), np.array([[100 + rank]]))
    assert values.tolist() == [[size - 1]] and places.tolist() == [[99 + size]] and values.dtype == np.int8
    assert group.minloc(10 - rank) == (11 - size, size - 1) and group.maxloc(2.5, 40 - rank) == (2.5, 41 - size)
    """
    code, lines, errors = run(3, code, program="import numpy as np, waywiser as ww\n")
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN), errors


def test_what_is_refused() -> None:
    gpus = ww.virtual_gpus(1)
    with ww.join(gpus=gpus) as group:
        with pytest.raises(ww.InputError, match="there is no band of float64, which is no integer"):
            group.all_reduce(np.ones(2), op="band")
        with pytest.raises(ww.InputError, match="scan: there is no avg"):
            group.scan(np.ones(2), op="avg")
        with pytest.raises(ww.InputError, match="locations are int64, not float64"):
            group.minloc(np.ones(2), np.ones(2))  # type: ignore[call-overload]
        with pytest.raises(ww.UnavailableError, match="for arrays in host memory"):
            group.maxloc(gpus.array(np.ones(2)), np.arange(2))  # type: ignore[call-overload]
