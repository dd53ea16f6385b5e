"""Nodes for tests: network namespaces on one switch, each with a name and a /sys of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from doctor_machines import Files, build

_ENTER = 'if [ -n "$1" ]; then mount --bind "$1" /sys; fi; hostname "$2"; shift 2; exec "$@"'


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


@dataclass(frozen=True)
class Node:
    """`system`: the folder that stands for /sys; "" is this machine's."""

    name: str
    address: str
    namespace: str
    system: str

    def command(self, words: list[str]) -> list[str]:
        """The command that runs `words` on this node."""
        within = ["ip", "netns", "exec", self.namespace, "unshare", "--mount", "--uts"]
        return [*within, "sh", "-c", _ENTER, "sh", self.system, self.name, *words]


class Nodes:
    """A node for each of `kinds`, with its files of /sys, and `head`, which starts the jobs."""

    def __init__(self, folder: Path, kinds: Mapping[str, Files]) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can make namespaces")
        for program in ("ip", "unshare"):
            if shutil.which(program) is None:
                pytest.skip(f"no `{program}` command here")
        self._folder = folder
        names = ["head", *kinds]
        addresses = [f"10.97.7.{number}" for number in range(1, len(names) + 1)]
        self._nodes = {}
        for name, address in zip(names, addresses, strict=True):
            if name in kinds:
                build(folder / name, kinds[name])
            system = str(folder / name / "sys") if name in kinds else ""
            self._nodes[name] = Node(name, address, f"waywiser-{name}-{os.getpid()}", system)
        self.head = self._nodes.pop("head")
        try:
            self._connect()
            subprocess.run(self.head.command(["true"]), capture_output=True, text=True, check=True)
        except subprocess.CalledProcessError as error:
            self.close()
            pytest.skip(f"no namespaces here: {error.stderr.strip()}")

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __getitem__(self, name: str) -> Node:
        return self._nodes[name]

    def _connect(self) -> None:
        """A switch in the head's namespace, and a cable from it to each node."""
        for one in (self.head, *self):
            ip("netns", "add", one.namespace)
            ip("-n", one.namespace, "link", "set", "lo", "up")
        ip("-n", self.head.namespace, "link", "add", "switch", "type", "bridge")
        for number, one in enumerate(self):
            plug = f"port{number}"
            ip("link", "add", plug, "netns", self.head.namespace, "type", "veth",
               "peer", "name", "eth0", "netns", one.namespace)  # fmt: skip
            ip("-n", self.head.namespace, "link", "set", plug, "master", "switch", "up")
        for one, link in [(self.head, "switch"), *((one, "eth0") for one in self)]:
            ip("-n", one.namespace, "address", "add", f"{one.address}/24", "dev", link)
            ip("-n", one.namespace, "link", "set", link, "up")

    def agent(self) -> Path:
        """A program in place of ssh: `agent [OPTION]... ADDRESS COMMAND...`."""
        file = self._folder / "agent"
        cases = "\n".join(f'{one.address}) shift; exec {shlex.join(one.command(["sh", "-c"]))} "$*" ;;' for one in self)
        file.write_text(
            f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\ncase $1 in\n{cases}\nesac\nexit 255\n'
        )
        file.chmod(0o700)
        return file

    def close(self) -> None:
        for one in (self.head, *self):
            subprocess.run(["ip", "netns", "delete", one.namespace], capture_output=True, check=False)
