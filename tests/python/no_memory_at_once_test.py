"""A rank that has no memory left before its thread of the life-line has run for the first time: it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
JOBS = 8
# Rank 1 has one core and a priority that keeps its own threads waiting until it waits itself.
PROGRAM = """
import os
from fault_jobs import out_of_memory
import waywiser as ww

def rank_main(rank, job):
    told = {"RANK": rank, "SIZE": 2, "LOCAL_RANK": rank, "LOCAL_SIZE": 2, "JOB": job}
    os.environ.update({f"WAYWISER_{key}": str(value) for key, value in told.items()})
    if rank == 1:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    with ww.join(timeout=30) as group:
        if rank == 1:
            out_of_memory(group.barrier)
        else:
            group.barrier()

def start(rank, job):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            rank_main(rank, job)
            code = 0
        finally:
            os._exit(code)
    return pid

for _ in range(JOBS):
    job = os.urandom(8).hex()
    pids = [start(rank, job) for rank in range(2)]
    print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""


def may_have_priority() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


def test_a_thread_that_has_not_run_yet_needs_no_memory() -> None:
    if not may_have_priority():
        pytest.skip("this user may not give a process the priority that makes the threads of a rank wait")
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("JOBS", str(JOBS))],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.stdout == "[0, 0]\n" * JOBS, ended.stderr
