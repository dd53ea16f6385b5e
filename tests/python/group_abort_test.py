"""A rank that gives up, who asks whether the group has failed, several futures, and the ranks of one machine."""

from __future__ import annotations

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
