"""A group over two "machines": network namespaces with addresses of their own, joined by a veth pair."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORT = 23456
BEFORE = "import os, subprocess, sys, time, numpy as np, waywiser as ww\ngroup = ww.join()\n"


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


class TwoMachines:
    """Namespaces a (10.99.7.1) and b (10.99.7.2)."""

    def __init__(self) -> None:
        self.names = [f"waywiser-{end}-{os.getpid()}" for end in "ab"]
        self.links = [f"ww{end}{os.getpid()}"[:15] for end in "ab"]
        for name in self.names:
            ip("netns", "add", name)
        a, b = self.names
        ip("link", "add", self.links[0], "netns", a, "type", "veth", "peer", "name", self.links[1], "netns", b)
        for number, (name, link) in enumerate(zip(self.names, self.links, strict=True), 1):
            ip("-n", name, "address", "add", f"10.99.7.{number}/24", "dev", link)
            ip("-n", name, "link", "set", link, "up")
            ip("-n", name, "link", "set", "lo", "up")
        for name, link in zip(self.names, self.links, strict=True):
            self.await_carrier(name, link)

    @staticmethod
    def await_carrier(name: str, link: str) -> None:
        """UCX leaves out a link that is not running yet."""
        deadline = time.monotonic() + 20
        while "state UP" not in ip("-n", name, "link", "show", link).stdout:
            assert time.monotonic() < deadline, f"{link} does not come up"

    def close(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def bytes_over_the_link(self) -> int:
        statistics = ip("netns", "exec", self.names[0], "cat", f"/sys/class/net/{self.links[0]}/statistics/tx_bytes")
        return int(statistics.stdout)

    def cut(self) -> None:
        ip("-n", self.names[0], "link", "set", self.links[0], "down")

    def start(self, rank: int, size: int, code: str) -> subprocess.Popen[str]:
        """Ranks of the lower half run on a, the others on b; UCX has TCP only, as between machines without RDMA."""
        variables = {
            "WAYWISER_RANK": str(rank),
            "WAYWISER_SIZE": str(size),
            "WAYWISER_LOCAL_SIZE": str(size // 2),
            "WAYWISER_ROOT": f"10.99.7.1:{PORT}",
            "WAYWISER_SECRET": "a secret of this very test",
            "WAYWISER_UCX_TLS": "tcp,self",
            "PYTHONPATH": str(ROOT / "python"),
        }
        name = self.names[0 if rank < size // 2 else 1]
        return subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, "-c", BEFORE + code],
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TwoMachines]:
    if os.geteuid() != 0:
        pytest.skip("only root can make network namespaces")
    if shutil.which("ip") is None:
        pytest.skip("no `ip` command here")
    monkeypatch.setenv("WAYWISER_RUNTIME_DIR", str(tmp_path / "runtime"))
    try:
        made = TwoMachines()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
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
    ranks = [machines.start(rank, 4, code) for rank in range(4)]
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
    ranks = [machines.start(rank, 2, code) for rank in range(2)]
    for process in ranks:
        assert process.stdout is not None
        assert process.stdout.readline() == "joined\n"
    machines.cut()
    for rank, process in enumerate(ranks):
        _, err = process.communicate(timeout=50)  # the deadline of a call is 60 s
        assert process.returncode == 1
        assert re.search(rf"waywiser._core.Error: rank {1 - rank} \(process \d+ on .*\) is gone", err), err
