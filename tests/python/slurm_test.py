"""Jobs that a real srun starts, on one node."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from one_slurm import OneSlurm, slurm
from rank_jobs import COMMAND, PROGRAM

__all__ = ["slurm"]

TWO_RANKS = ("-n", "2", "-O", "-Q", "--label")  # also where there is one core


@pytest.fixture(autouse=True)
def away(slurm: OneSlurm, tmp_path: Path) -> None:
    """No plan of this machine, and a place of its own for each job to meet."""
    slurm.environment["WAYWISER_RUNTIME_DIR"] = str(tmp_path / "runtime")


def test_ranks_of_srun_are_a_group(slurm: OneSlurm) -> None:
    program = PROGRAM + "print(group.rank, group.size, group.all_reduce(np.ones(5))[0])"
    done = slurm.run("srun", *TWO_RANKS, sys.executable, "-c", program)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["0: 0 2 2.0", "1: 1 2 2.0"]), done.stderr


def test_each_rank_of_srun_is_bound_to_its_own_part_of_the_node(slurm: OneSlurm) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only")
    show = "import os; print(sorted(os.sched_getaffinity(0)))"
    done = slurm.run("srun", *TWO_RANKS, *COMMAND, "run", sys.executable, "-c", show)
    assert done.returncode == 0, done.stderr
    cores = [set(map(int, re.findall(r"\d+", line.partition(":")[2]))) for line in sorted(done.stdout.splitlines())]
    assert len(cores) == 2 and all(cores) and not cores[0] & cores[1], done.stdout


def test_a_code_of_one_rank_is_that_of_srun_and_known_to_the_other(slurm: OneSlurm) -> None:
    program = PROGRAM + "group.barrier()\nif group.rank == 1: sys.exit(7)\ngroup.barrier()"
    done = slurm.run("srun", *TWO_RANKS, sys.executable, "-c", program)
    assert done.returncode == 7, done.stderr
    assert re.search(r"0: .*Error: rank 1 \(process \d+ on .*\) ended with exit code 7", done.stderr), done.stderr
