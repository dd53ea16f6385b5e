"""Heaps: one-sided communication by the calls of the host, in host memory and on virtual GPUs."""

from __future__ import annotations

import pytest
from rank_jobs import run, runtime_folder  # noqa: F401

pytestmark = pytest.mark.slow
# A rank of a job with a heap; `place` is "host" or "gpu".
PROGRAM = """
import sys, numpy as np, waywiser as ww
place = sys.argv[1]
gpus = ww.virtual_gpus(4) if place == "gpu" else None
group = ww.join(gpus=gpus, timeout=20)
rank, size = group.rank, group.size
right, left = (rank + 1) % size, (rank - 1) % size
gpu = rank if place == "gpu" else None
heap = ww.Heap(group, "ghosts", 4096, gpu=gpu)
def array(values):
    return gpus.array(values, rank) if place == "gpu" else np.asarray(values)
def there(shape, dtype, offset):
    found = heap.array(shape, dtype, offset)
    return found.numpy() if place == "gpu" else found
def refused(kind, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except kind as error:
        assert "\\n" not in str(error), str(error)
        return str(error)
    raise AssertionError(f"{call} was not refused")
"""
PLACES = pytest.mark.parametrize("place", ["host", "gpu"])


def in_ranks(ranks: int, place: str, code: str) -> tuple[int, list[str], str]:
    return run(ranks, code, program=PROGRAM.replace("sys.argv[1]", repr(place)))


@PLACES
@pytest.mark.parametrize("ranks", [1, 3])
def test_puts_are_seen_behind_their_signal(place: str, ranks: int) -> None:
    code = """
        team = heap.world()
        assert (team.rank, team.size) == (rank, size) and heap.name == "ghosts" and heap.nbytes == 4096
        assert not there(512, float, 0).any(), "zeros"
        heap.barrier(team)
        for turn in range(1, 6):
            heap.put(array(np.full(100, 10.0 * turn + rank)), right, 64)
            heap.signal(right, 0, turn)
            heap.wait(0, turn, "==", source=left)
            assert (there(100, float, 64) == 10 * turn + left).all()
            heap.barrier(team)
        group.barrier()
        print("right")
        """
    assert in_ranks(ranks, place, code) == (0, ["right"] * ranks, "")


@PLACES
def test_two_machines_put_by_the_proxy(place: str) -> None:
    code = """
        why = heap.why_proxied(right)
        assert why.startswith("it is on another machine") and "\\n" not in why and heap.why_proxied(rank) == ""
        assert why in refused(ww.UnavailableError, heap.address, right)
        assert heap.why_no_lines() == "stores do not reach all ranks"
        team = heap.world()
        for turn in range(1, 4):
            heap.put(array(np.full(100, 10.0 * turn + rank)), right, 64)
            heap.signal(right, 0, turn)
            heap.wait(0, turn, "==", source=left)
            assert (there(100, float, 64) == 10 * turn + left).all()
            heap.barrier(team)
        group.barrier()
        print("right")
        """
    apart = "import os; os.environ['WAYWISER_MACHINE'] = os.environ['WAYWISER_RANK']\n"
    program = apart + PROGRAM.replace("sys.argv[1]", repr(place))
    assert run(2, code, program=program) == (0, ["right"] * 2, "")


def test_calls_in_a_stream_are_in_its_order() -> None:
    code = """
        team, stream = heap.world(), gpus.open_stream(rank)
        for turn in range(1, 6):
            given = array(np.full(100, 10 * turn + rank))
            heap.put(given, right, 64, stream=stream)
            heap.signal(right, 8, 2, "add", stream=stream)
            heap.wait_and_take(8, 2, source=left, stream=stream)
            taken = gpus.empty(100, int, rank)
            stream.copy(taken, heap.array(100, int, 64))
            heap.barrier(team, stream=stream)
            heap.synchronize(stream)
            assert (taken.numpy() == 10 * turn + left).all()
        assert there(1, np.uint64, 8)[0] == 0, "all signals are taken"
        group.barrier()
        print("right")
        """
    assert in_ranks(2, "gpu", code) == (0, ["right"] * 2, "")


@PLACES
def test_teams(place: str) -> None:
    code = """
        odd = heap.split(rank % 2, key=-rank)
        assert (odd.rank, odd.size) == (0 if rank > 1 else 1, 2)
        assert (heap.split(-1 if rank else 0) is None) == (rank != 0)
        some = heap.split_strided(1, 2, 2)
        assert (some is None) == (rank % 2 == 0)
        row, column = heap.split_2d(2)
        assert (row.rank, column.rank, row.size, column.size) == (rank % 2, rank // 2, 2, 2)
        if some is not None:
            heap.put(array(np.full(4, rank)), 4 - rank, 128)
            heap.barrier(some)
            assert (there(4, int, 128) == 4 - rank).all()
        group.barrier()
        print("right")
        """
    assert in_ranks(4, place, code) == (0, ["right"] * 4, "")


@PLACES
def test_an_array_keeps_its_heap(place: str) -> None:
    code = """
        kept = heap.array((2, 3), np.float32, 256)
        assert kept.shape == (2, 3) and kept.dtype == np.float32
        heap.put(array(np.full(6, 7, np.float32)), rank, 256)
        del heap
        import gc
        gc.collect()
        assert ((kept.numpy() if place == "gpu" else kept) == 7).all()
        print("right")
        """
    assert in_ranks(1, place, code) == (0, ["right"], "")


@PLACES
def test_bad_calls_are_refused_in_one_line(place: str) -> None:
    code = """
        team = heap.world()
        for call in (
            lambda: heap.put(array(np.zeros(8)), 0, 4090),
            lambda: heap.put(array(np.zeros(8)), 5, 0),
            lambda: heap.array(10, float, 4090),
            lambda: heap.signal(0, 4, 1),
            lambda: heap.signal(0, 4096, 1),
            lambda: heap.signal(0, 0, -1),
            lambda: heap.signal(0, 0, 1, "sub"),
            lambda: heap.wait(0, 1, "=>"),
            lambda: heap.wait(0, 1, source=3),
            lambda: heap.set_deadline(0),
            lambda: heap.why_proxied(3),
            lambda: heap.inbox_bytes(-1),
            lambda: heap.barrier(None),
            lambda: heap.split_strided(0, 1, 9),
            lambda: ww.Heap(group, "", 100, gpu=gpu),
            lambda: ww.Heap(group, "x", 0, gpu=gpu),
        ):
            refused(ww.InputError, call)
        print(refused(ww.InputError, heap.put, array(np.zeros(8)), 0, 4090))
        if place == "gpu":
            print(refused(ww.InputError, heap.put, np.zeros(8), 0, 0))
        else:
            print(refused(ww.InputError, heap.signal, 0, 0, 1, stream=7))
        """
    more = "it is on gpu0, what is put is on host0" if place == "gpu" else "is in host memory: it has no streams"
    code, lines, errors = in_ranks(1, place, code)
    assert (code, errors) == (0, "")
    assert "heap 'ghosts': 64 bytes at offset 4090 of 4096" in lines
    assert any(more in line for line in lines)


@PLACES
def test_a_wait_that_nobody_ends_is_an_error(place: str) -> None:
    code = """
        heap.set_deadline(0.05)
        if rank == 0:
            print(refused(ww.DeadlineError, heap.wait, 8, 1, source=1))
        group.barrier()
        """
    code, lines, _ = in_ranks(2, place, code)
    words = "rank 0, heap 'ghosts': rank 1 did not change the word at offset 8 within 50.0 ms: it is 0"
    assert lines and words in lines[0]


def test_heaps_that_differ_are_refused_at_all_ranks() -> None:
    code = """
        print(refused(ww.InputError, ww.Heap, group, "one", 100 + rank))
        """
    assert in_ranks(2, "host", code) == (
        0,
        ["heap: rank 1 allocates 101 bytes on the host as 'one', rank 0 100 bytes on the host as 'one'"] * 2,
        "",
    )
