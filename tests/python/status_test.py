"""`waywiser status`: what the ranks of a job wait for."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from rank_jobs import PROGRAM, finish, runtime_folder, start, wait_for_status

__all__ = ["runtime_folder"]


@pytest.mark.faults("forming I")
def test_status_shows_what_ranks_wait_for_and_ctrl_c_ends_them() -> None:
    program = PROGRAM + "if group.rank == 1: group.recv(np.empty(3), 0, tag=4)\nsignal.pause()"
    job = start("run", "-n", "2", sys.executable, "-c", program)
    ranks = wait_for_status(job.pid, "recv #1")
    assert [rank["call"] for rank in ranks] == [None, "recv #1 of 3 float64 from rank 0"]
    code, lines, _ = finish(start("status", str(ranks[0]["process"])))
    assert code == 0 and len(lines) == 3 and any("recv #1 of 3 float64 from rank 0" in line for line in lines)
    job.send_signal(signal.SIGINT)
    code, _, errors = finish(job)
    assert code in (1, 130)
    assert "KeyboardInterrupt" in errors


def test_status_of_no_job() -> None:
    code, _, errors = finish(start("status", str(os.getpid())))
    assert (code, errors) == (
        2,
        f"waywiser: process {os.getpid()} is not in a running group of yours on this machine\n",
    )
