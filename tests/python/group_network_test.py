"""A group over two "machines": network namespaces with addresses of their own, joined by a veth pair."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import made_up
import pytest
from two_machines import TwoMachines

pytestmark = pytest.mark.slow
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
    # The least number of bytes that ranks 0 and 1 send to 2 and 3.
    assert machines.bytes_over_the_link() > 4_000_000


@pytest.mark.faults("strangers C")
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
        assert re.search(rf"waywiser.TransferError: rank {1 - rank} \(process \d+ on .*\) is gone", err), err


def plan_of_two_rails(machines: TwoMachines, share: str) -> dict[str, Any]:
    """Long messages by both links; short ones by the first."""
    links = ["/".join(link) for link in machines.links]
    rows = []
    for sizes, parameters in (
        ((0, (1 << 17) - 1), {"device": links[0]}),
        ((1 << 17, 1 << 60), {"device": "+".join(links), "share": share}),
    ):
        way = made_up.label({"mechanism": "ucx", "parameters": {"transports": "network-tcp", **parameters}})
        rows.append(made_up.message_row(("host0", "other:host0"), 2, sizes, made_up.ways(way)))
    about = {"fingerprint": "a", "machine": "a", "backend": "host", "simulated": False, "other_nodes": []}
    return {"schema": "waywiser.plan", "version": 3, **about, "rows": rows}


@pytest.mark.parametrize(("share", "least", "most"), [("75+25", 2.5, 3.5), ("20+80", 0.2, 0.3)])
def test_long_messages_are_split_as_the_plan_says(tmp_path: Path, share: str, least: float, most: float) -> None:
    machines = TwoMachines(links=2)
    try:
        plan = tmp_path / "plan.json"
        plan.write_text(json.dumps(plan_of_two_rails(machines, share)))
        code = """
mine, theirs = np.full(8_000_000, group.rank, np.uint8), np.empty(8_000_000, np.uint8)
for _ in range(4):
    group.sendrecv(mine, 1 - group.rank, theirs, 1 - group.rank)
print(theirs.min(), theirs.max(), group.all_reduce(np.full(3_000_000, 2.0)).max())
"""
        environment = {"WAYWISER_PLAN": str(plan), "WAYWISER_RUNTIME_DIR": str(tmp_path / "runtime")}
        before = [machines.bytes_over_the_link(link) for link in (0, 1)]
        ranks = [machines.start(rank, 2, ["-c", BEFORE + code], **environment) for rank in range(2)]
        for rank, process in enumerate(ranks):
            out, err = process.communicate(timeout=100)
            assert (process.returncode, out) == (0, f"{1 - rank} {1 - rank} 4.0\n"), err
        first, second = (machines.bytes_over_the_link(link) - before[link] for link in (0, 1))
        assert first + second > 4 * 8_000_000
        assert least < first / second < most
    finally:
        machines.close()
