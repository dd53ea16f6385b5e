"""Two "machines" for tests: network namespaces with addresses of their own, joined by veth pairs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PORT = 23456


def ip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


class TwoMachines:
    """Namespaces a and b; link i has 10.99.(7 + i).1 in a and .2 in b."""

    def __init__(self, links: int = 1) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can make network namespaces")
        if shutil.which("ip") is None:
            pytest.skip("no `ip` command here")
        self.names = [f"waywiser-{end}-{os.getpid()}" for end in "ab"]
        self.links = [[f"w{end}{i}x{os.getpid()}"[:15] for end in "ab"] for i in range(links)]
        try:
            self.make()
        except subprocess.CalledProcessError as error:
            self.close()
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")

    def make(self) -> None:
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        a, b = self.names
        for i, (here, there) in enumerate(self.links):
            ip("link", "add", here, "netns", a, "type", "veth", "peer", "name", there, "netns", b)
            for number, (name, link) in enumerate(((a, here), (b, there)), 1):
                ip("-n", name, "address", "add", f"10.99.{7 + i}.{number}/24", "dev", link)
                ip("-n", name, "link", "set", link, "up")
        for here, there in self.links:
            self.await_carrier(a, here)
            self.await_carrier(b, there)

    @staticmethod
    def await_carrier(name: str, link: str) -> None:
        """UCX leaves out a link that is not running yet."""
        deadline = time.monotonic() + 20
        while "state UP" not in ip("-n", name, "link", "show", link).stdout:
            assert time.monotonic() < deadline, f"{link} does not come up"

    def close(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def bytes_over_the_link(self, link: int = 0) -> int:
        """What has left a."""
        file = f"/sys/class/net/{self.links[link][0]}/statistics/tx_bytes"
        return int(ip("netns", "exec", self.names[0], "cat", file).stdout)

    def cut(self) -> None:
        ip("-n", self.names[0], "link", "set", self.links[0][0], "down")

    def hosts_and_ssh(self, folder: Path) -> tuple[Path, Path]:
        """A file of hosts and a program in place of ssh, for `waywiser run`."""
        hosts, ssh = folder / "hosts", folder / "ssh"
        hosts.write_text("10.99.7.1\n10.99.7.2\n")
        a, b = self.names
        ssh.write_text(
            f'#!/bin/sh\ncase $1 in 10.99.7.1) on={a};; *) on={b};; esac\nshift\nexec ip netns exec $on sh -c "$*"\n'
        )
        ssh.chmod(0o700)
        return hosts, ssh

    def start(self, rank: int, size: int, words: list[str], **more: str) -> subprocess.Popen[str]:
        """Ranks of the lower half run on a, the others on b."""
        variables = {
            "WAYWISER_RANK": str(rank),
            "WAYWISER_SIZE": str(size),
            "WAYWISER_LOCAL_SIZE": str(size // 2),
            "WAYWISER_ROOT": f"10.99.7.1:{PORT}",
            "WAYWISER_SECRET": "a secret of this very test",
            "PYTHONPATH": str(ROOT / "python"),
        }
        name = self.names[0 if rank < size // 2 else 1]
        return subprocess.Popen(
            ["ip", "netns", "exec", name, sys.executable, *words],
            env=os.environ | variables | more,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
