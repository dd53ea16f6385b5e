"""A group over two "machines": network namespaces with addresses of their own, joined by a veth pair."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from two_machines import TwoMachines

BEFORE = "import os, subprocess, sys, time, numpy as np, waywiser as ww\ngroup = ww.join()\n"


def start(machines: TwoMachines, rank: int, size: int, code: str) -> subprocess.Popen[str]:
    """UCX has TCP only, as between machines without RDMA."""
    return machines.start(rank, size, ["-c", BEFORE + code], WAYWISER_UCX_TLS="tcp,self")


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoMachines]:
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(tmp_path / "runtime"))
    made = TwoMachines()
    yield made
    made.close()


def test_a_group_over_two_machines(machines: TwoMachines) -> None:
    code = """
mine = np.full(250_000, group.rank + 1.0)
total = group.all_reduce(mine)
other = (group.rank + 2) % 4
theirs = group.sendrecv(mine, other, np.empty_like(mine), other)
half = group.split(group.rank // 2)
print(total[-1], theirs[0], half.all_gather(np.array([group.rank])).ravel().tolist())
"""
    ranks = [start(machines, rank, 4, code) for rank in range(4)]
    for rank, process in enumerate(ranks):
        out, err = process.communicate(timeout=100)
        half = [0, 1] if rank < 2 else [2, 3]
        assert (process.returncode, out) == (0, f"10.0 {(rank + 2) % 4 + 1.0} {half}\n"), err
    # What ranks 0 and 1 have sent to 2 and 3 at least.
    assert machines.bytes_over_the_link() > 4_000_000


def test_a_link_that_is_cut_is_an_error_on_both_sides(machines: TwoMachines) -> None:
    code = """
print("joined", flush=True)
group.recv(np.empty(10), 1 - group.rank)
"""
    ranks = [start(machines, rank, 2, code) for rank in range(2)]
    for process in ranks:
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n"
    machines.cut()
    for rank, process in enumerate(ranks):
        _, err = process.communicate(timeout=50)  # the deadline of a call is 60 s
        assert process.returncode == 1
        assert re.search(rf"waywiser._core.Error: rank {1 - rank} \(process \d+ on .*\) is gone", err), err
