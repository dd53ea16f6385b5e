"""A rank that gives up, who asks whether the group has failed, several futures, and the ranks of one machine."""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest
from rank_jobs import NO_PLAN, run, runtime_folder

import waywiser as ww

__all__ = ["runtime_folder"]
PROGRAM = "import threading, numpy as np, waywiser as ww\n"


def test_abort_ends_the_calls_of_all_ranks() -> None:
    code = """
    group = ww.join()
    try:
        part = group.split(group.rank % 2)
        if group.rank == 0:
            assert part.failure() is None
            threading.Thread(target=part.abort, args=("out of fuel",)).start()
        group.recv(np.empty(3), (group.rank + 1) % 3)
    except ww.TransferError as error:
        assert str(error).startswith("rank 0: out of fuel"), error
    assert group.failure() == "rank 0: out of fuel"
    group.close()  # waits for nobody
    """
    code, lines, errors = run(3, code, program=PROGRAM)
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN), errors


def test_parts_made_apart_outlive_each_other() -> None:
    code = """
    import os, signal, time
    whole = ww.join()
    part = whole.split_apart(whole.rank // 2)
    assert (part.rank, part.size, part.all_reduce(part.rank)) == (whole.rank % 2, 2, 1)
    if whole.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    end = time.monotonic() + 20
    while whole.failure() is None:
        assert time.monotonic() < end
    if whole.rank == 0:
        try:
            part.recv(np.empty(3), 1)
        except ww.TransferError as error:
            assert str(error).startswith("rank 1 (process"), error
    else:
        assert part.failure() is None
        part.all_reduce(np.ones(100_000))
        part.close()
        print("goes on")
    """
    code, lines, errors = run(4, code, "--keep-going", program=PROGRAM)
    assert (code, lines) == (137, ["goes on", "goes on"]), errors


def test_several_futures() -> None:
    code = """
    group = ww.join()
    other, came = 1 - group.rank, [np.empty(2), np.empty(2)]
    futures = [group.start_recv(came[tag], other, tag) for tag in (0, 1)]
    group.send(np.full(2, 1.0), other, 1)
    assert ww.wait_any(futures) == 1 and came[1][0] == 1
    group.barrier()
    group.send(np.full(2, 7.0), other, 0)
    assert ww.wait_any(futures[:1]) == 0
    assert ww.wait_all(futures)[0] is came[0] and came[0][1] == 7
    assert ww.wait_any([group.start_recv(came[0], ww.PROC_NULL)]) == 0
    """
    code, lines, errors = run(2, code, program=PROGRAM)
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN), errors


def test_one_rank_alone() -> None:
    with ww.join() as group:
        assert (group.local_rank, group.local_size, group.split_by_machine().size) == (0, 1, 1)
        with pytest.raises(ww.InputError, match="wait_any: there is no future"):
            ww.wait_any([])
        begun = group.start_all_reduce(np.ones(2))
        assert ww.wait_any([begun]) == 0 and begun.done()
        assert group.failure() is None


def test_the_ranks_of_one_machine() -> None:
    code = """
    group = ww.join()
    assert (group.local_rank, group.local_size) == (group.rank, 2)
    here = group.split_by_machine(-group.rank)
    assert (here.rank, here.size) == (1 - group.rank, 2)
    """
    code, lines, errors = run(2, code, program=PROGRAM)
    assert (code, lines) == (0, []) and errors in ("", NO_PLAN), errors


def test_asking_whether_a_future_is_done_lets_other_threads_run() -> None:
    ticks, over = [0], threading.Event()

    def work() -> None:
        while not over.is_set():
            ticks[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=work)
    interval = sys.getswitchinterval()
    with ww.join() as group:
        into = np.empty(3)
        future = group.start_recv(into, 0)
        thread.start()
        try:
            sys.setswitchinterval(1000)  # a thread runs only where another one lets it
            before, end = ticks[0], time.monotonic() + 20
            while ticks[0] < before + 2:  # it waits no more as it did before
                time.sleep(0)
            before = ticks[0]
            while ticks[0] == before and time.monotonic() < end:
                before = ticks[0]
                assert not future.done()
            assert ticks[0] != before, "no other thread has run"
        finally:
            sys.setswitchinterval(interval)
            over.set()
            thread.join()
        group.send(np.ones(3), 0)
        assert future.wait() is into
