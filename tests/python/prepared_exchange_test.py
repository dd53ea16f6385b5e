"""What is prepared once: `group.prepare_exchange`, `group.prepare_collective`."""

from __future__ import annotations

import pytest
from rank_jobs import run, runtime_folder

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.slow


def test_prepared_on_hosts() -> None:
    code = """
    rank, size = group.rank, group.size
    right, left = (rank + 1) % 3, (rank + 2) % 3
    mine, ints = np.zeros(5), np.zeros(4, np.int32)
    from_left, from_right = np.empty(5), np.empty(4, np.int32)
    with_left = ww.Exchange(left, ints, from_left, give_tag=1, take_tag=2)
    prepared = group.prepare_exchange([with_left, ww.Exchange(right, mine, from_right, 2, 1)])
    for start in range(100):
        mine[:], ints[:] = rank + start, 10 * rank + start
        if start % 2:
            prepared()
        else:
            prepared.start()
            prepared.wait()
        assert (from_left == left + start).all() and (from_right == 10 * right + start).all()
    assert prepared.why_staged == ""
    try: prepared.start(stream=0)
    except Exception as error: print(error)
    """
    assert run(3, code) == (0, ["what is prepared for host arrays is started without stream="] * 3, "")


def test_prepared_on_gpus_and_streams() -> None:
    code = """
    gpus = ww.virtual_gpus(3)
    group = ww.join(gpus=gpus)
    rank, gpu = group.rank, group.rank
    right, left = (rank + 1) % 3, (rank + 2) % 3
    mine, out = gpus.array([rank + 1.0] * 6, gpu), [gpus.array([9.0] * 6, gpu) for _ in range(2)]
    stream = gpus.open_stream(gpu)
    prepared = group.prepare_exchange([ww.Exchange(left, mine, out[0]), ww.Exchange(right, mine, out[1])])
    assert prepared.why_staged == "", prepared.why_staged
    for start in range(20):
        for array in out: array.fill(9.0)
        if start % 2:
            prepared.start(stream=stream)
            group.synchronize(mine, stream=stream)
        else:
            prepared()
        assert out[0].numpy().tolist() == [left + 1.0] * 6 and out[1].numpy().tolist() == [right + 1.0] * 6
    group.barrier()
    """
    assert run(3, code, program="import numpy as np, waywiser as ww\n")[:2] == (0, [])


def test_what_does_not_fit_is_told_when_it_is_prepared() -> None:
    code = """
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    rank, gpu, other = group.rank, group.rank, 1 - group.rank
    mine, out = gpus.array([1.0] * (2 + rank), gpu), gpus.array([9.0] * 2, gpu)
    try: group.prepare_exchange([ww.Exchange(other, mine, out)])
    except Exception as error: print(error)
    """
    why = "rank 1 sends 1 messages of 24 bytes to rank 0, which takes 1 messages of 16 bytes"
    ended, lines, _ = run(2, code, program="import numpy as np, waywiser as ww\n")
    assert (ended, [line.split(": ", 1)[1] for line in lines]) == (0, [why] * 2)


def test_boxes_and_lists_on_hosts() -> None:
    code = """
    rank, size = group.rank, group.size
    right, left = (rank + 1) % 2, (rank + 1) % 2
    field = np.zeros((6, 5, 4, 3), np.float32)  # ghosts around two of the dimensions
    inner = np.arange(4 * 3 * 4 * 3, dtype=np.float32).reshape(4, 3, 4, 3)
    picked, apart = np.zeros(8, np.int16), np.zeros((4, 9), np.int16)
    prepared = group.prepare_exchange([
        ww.Exchange(right, field[1, 1:-1, 1:3, ::2], field[0, 1:-1, 1:3, ::2], 0, 0),
        ww.Exchange(left, field[1:-1, 1], field[1:-1, 0], 1, 1),
        ww.Exchange(left, apart.T[::3, :2], ww.Indexed(picked, [6, 0, 3], 2), 2, 2),
    ])
    for start in range(5):
        field[:] = -1
        field[1:-1, 1:-1] = inner + 1000 * rank + start
        apart[:] = np.arange(36).reshape(4, 9) + 100 * rank + start
        picked[:] = -1
        prepared()
        other = inner + 1000 * (1 - rank) + start
        assert (field[0, 1:-1, 1:3, ::2] == other[0, :, 1:3, ::2]).all()
        assert (field[1:-1, 0] == other[:, 0]).all()
        assert (field[0, 1:-1, 1:3, 1] == -1).all() and (field[-1] == -1).all() and (field[:, -1] == -1).all()
        theirs = (np.arange(36).reshape(4, 9) + 100 * (1 - rank) + start).T[::3, :2].reshape(-1)
        assert picked.tolist() == [*theirs[2:4], -1, *theirs[4:6], -1, *theirs[:2]], (picked, theirs)
    """
    assert run(2, code) == (0, [], "")


STRIDED = """
import numpy as np, waywiser as ww
gpus = ww.virtual_gpus(2)
group = ww.join(gpus=gpus)
rank, other = group.rank, 1 - group.rank

class View:  # as CuPy has them
    def __init__(self, base, of):
        whole = np.empty(base.shape, base.dtype)
        view = of(whole)
        offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        self.base = base
        self.__cuda = {"shape": view.shape, "strides": view.strides, "typestr": base.dtype.str, "version": 3,
                       "data": (base.__cuda_array_interface__["data"][0] + offset, False)}
    @property
    def __cuda_array_interface__(self): return self.__cuda

field = gpus.array(np.zeros((6, 7, 5)), rank)
taken, index = gpus.array(np.zeros(9, np.int32), rank), np.array([8, 2, 5], np.uint8)
stream = gpus.open_stream(rank)
prepared = group.prepare_exchange([
    ww.Exchange(other, View(field, lambda all: all[1:-1, 1:-1, 1]), View(field, lambda all: all[1:-1, 1:-1, 0]), 0, 0),
    ww.Exchange(other, ww.Indexed(taken, index), ww.Indexed(taken, range(1, 8, 3)), 1, 1)])
def values(rank, start): return np.arange(6 * 7 * 5.0).reshape(6, 7, 5) + 1000 * rank + start
for start in range(6):
    field.fill(values(rank, start))
    taken.fill(np.arange(9) + 10 * rank)
    if start % 2:
        prepared.start(stream=stream)
        group.synchronize(field, stream=stream)
    else:
        prepared()
    wanted = values(rank, start)
    wanted[1:-1, 1:-1, 0] = values(other, start)[1:-1, 1:-1, 1]
    assert (field.numpy() == wanted).all()
    listed = np.arange(9) + 10 * rank
    listed[1:8:3] = np.array([8, 2, 5]) + 10 * other
    assert (taken.numpy() == listed).all()
print(prepared.why_staged != "")
group.barrier()
"""


def test_boxes_and_lists_on_gpus() -> None:
    assert run(2, "", program=STRIDED)[:2] == (0, ["False"] * 2)


def test_boxes_and_lists_go_packed_where_no_kernel_serves() -> None:
    code = "import os; os.environ['WAYWISER_MACHINE'] = os.environ['WAYWISER_RANK']\n"
    assert run(2, "", program=code + STRIDED)[:2] == (0, ["True"] * 2)


def test_what_no_box_describes_is_refused() -> None:
    code = """
    other, array, few = 1 - group.rank, np.zeros((4, 4, 4, 4, 4)), np.zeros(4)
    few.flags.writeable = False
    def attempt(give, take):
        try: group.prepare_exchange([ww.Exchange(other, give, take)])
        except Exception as error:
            if group.rank == 0: print(type(error).__name__, error)
    attempt(array[0, 0, 0, 0, ::-1], few.copy())
    attempt(array[:2, :3, :2, :3, ::2], few.copy())
    attempt(ww.Indexed(array[..., 0], [0]), few.copy())
    attempt(ww.Indexed(array, [1024]), few.copy())
    attempt(ww.Indexed(array, [0.5]), few.copy())
    attempt(ww.Indexed(array, np.array([0.5])), few.copy())
    attempt(array[0, 0, 0, 0], few)
    attempt(array[0, 0, 0, :, 0], array[0, 0, 0, :, 0])
    attempt(array[0, 0, 0, 0], ww.Indexed(array, [4, 5, 6, 4]))
    """
    lines = [
        "InputError an array was expected, 'ndarray' cannot be written to",
        "InputError an array was expected, 'ndarray' has 1024 elements: there are not 1 from index 1024 on",
        "InputError an array was expected, 'ndarray' has 4 dimensions whose elements lie apart: there can be 3",
        "InputError an array was expected, 'ndarray' has a stride below zero",
        "InputError an array was expected, 'ndarray' is not contiguous (C order)",
        "InputError neighbor_exchange: the array taken from rank 1 overlaps the array given to rank 1",
        "InputError neighbor_exchange: the array taken from rank 1 overlaps the array taken from rank 1",
        "InputTypeError indices are integers, not float64",
        "InputTypeError indices are integers: 'float' object cannot be interpreted as an integer",
    ]
    assert run(2, code) == (0, lines, "")


def test_what_collectives_need_is_set_up_before_the_first_one() -> None:
    code = """
    gpus = ww.virtual_gpus(2)
    group = ww.join(gpus=gpus)
    array = gpus.array(np.ones(700_000), group.rank)
    group.prepare(array, array.nbytes)
    out = gpus.empty(array.shape, float, group.rank)
    group.all_reduce(array, out=out)
    assert out.numpy().tolist() == [2.0] * 700_000
    try: group.prepare(np.zeros(3), 100)
    except ww._core.Error as error: print(error)
    group.barrier()
    """
    ended, lines, _ = run(2, code, program="import numpy as np, waywiser as ww\n")
    assert (ended, lines) == (0, ["prepare: the array is in host memory, which needs nothing"] * 2)


def test_prepared_collectives() -> None:
    code = """
    rank, mine, most = group.rank, np.zeros(2), np.zeros(2)
    most_of_all = group.prepare_collective("all_reduce", mine, most, op="max")
    told = np.zeros(2, bool)
    tell = group.prepare_collective("broadcast", told, root=1)
    rows = np.zeros((3, 2)) if rank == 2 else None
    gather = group.prepare_collective("gather", mine, rows, root=2)
    any_of = group.prepare_collective("scan", told, told)
    for start in range(3):
        mine[:], told[:] = rank + start, rank == 1
        most_of_all()
        gather.start()
        gather.wait()
        tell()
        assert (most == 2 + start).all() and told.all()
        assert rows is None or rows[:, 1].tolist() == [start, start + 1, start + 2]
        told[:] = [rank == 0, False]
        any_of()
        assert told.tolist() == [True, False]
    print(most_of_all.explain())
    unlike = ("scan", mine, np.zeros(2 + rank // 2))
    for wrong in [("barrier", mine, mine), ("mean", mine, mine), unlike, ("scan", mine)]:
        try: group.prepare_collective(*wrong)
        except ww.InputError as error: print(error)
    """
    told = [
        "each start is the group's all_reduce",
        "rank 0: barrier is no collective of two arrays that can be prepared",
        "rank 0: 'mean' is no collective operation; there are all_reduce, reduce, reduce_scatter, broadcast, "
        "all_gather, gather, scatter, all_to_all, barrier, neighbor_exchange, scan, exscan",
        "rank 2: scan: the output has 3 elements, 2 are needed",
        "rank 0: scan: the output has 0 elements, 2 are needed",
    ]
    code_of_all, lines, problems = run(3, code)
    assert (code_of_all, sorted(lines), problems) == (0, sorted(told * 3), "")
