"""A server of virtual GPUs, for tests."""

from __future__ import annotations

import json
import queue
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rank_jobs import COMMAND

from waywiser import _core
from waywiser.offload.connect import state_of
from waywiser.offload.handshake import Connection
from waywiser.offload.keys import read_key

PATIENCE = 60.0
# What a client says first: a hello of src/waywiser/comm/bootstrap/handshake.hpp with a nonce of zeros.
_GREETING = Path(__file__).parents[2] / "src/waywiser/comm/bootstrap/handshake.hpp"
PROTOCOL = int(re.findall(r"protocol_version = (\d+);", _GREETING.read_text())[0])
HELLO = struct.pack("<IBIII", 0x31475757, 1, 40, PROTOCOL, 0) + bytes(32)
CHALLENGE = 9 + 32  # bytes that the server answers
FUNCTIONS = """
import os, time

def never_ends(a):
    while True:
        time.sleep(1)

def dies(a):
    os._exit(5)

def raises(a):
    raise ValueError("not\\n  this one")

functions = {"never_ends": never_ends, "dies": dies, "raises": raises}
"""


class Server:
    """`waywiser serve`, at a free port of this machine; `log` is what it has said so far."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        before: tuple[str, ...] = (),
        at: str = "127.0.0.1:0",
        gpus: tuple[str, ...] = ("--virtual", "2"),
    ) -> None:
        self.key = folder / "key"
        if not self.key.exists():
            options = ("--new-key", *options)
        words = ["serve", "--listen", at, *gpus, "--key", str(self.key), "--json"]
        self.process = subprocess.Popen(
            [*before, *COMMAND, *words, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.log: list[dict[str, Any]] = []
        self._lines: queue.Queue[Any] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.address = str(self.wait_for("listening")["address"])

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next event of this name."""
        while True:
            told = self._lines.get(timeout=PATIENCE)
            assert told is not None, "the server has ended"
            self.log.append(told)
            if told["event"] == event:
                return told

    def log_of(self, event: str) -> list[dict[str, Any]]:
        """Those events of this name that wait_for has seen."""
        return [each for each in self.log if each["event"] == event]

    def rest_of_log(self, event: str) -> list[dict[str, Any]]:
        """The events of this name that wait_for has not seen, of a server that has ended."""
        self._reader.join(PATIENCE)
        return [each for each in iter(self._lines.get, None) if each["event"] == event]

    def wait_until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The state of the server, once `holds` is true for it."""
        deadline = time.monotonic() + PATIENCE
        while not holds(state := state_of(self.address, key=self.key)):
            assert time.monotonic() < deadline, state
        return state

    def close(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Exit code and errors."""
        self.process.send_signal(number)
        assert self.process.stderr is not None
        errors = self.process.stderr.read()
        return self.process.wait(PATIENCE), errors


def connected(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), PATIENCE)


def proved(server: Server) -> Connection:
    """The client's end of a connection, by hand."""
    line = _core.ServeLine(connected(server.address).detach())
    line.greet_server(read_key(server.key), PATIENCE)
    return Connection(line)


def greeted_as_server(sock: socket.socket, key: Path) -> Connection:
    """The server's end of one."""
    line = _core.ServeLine(sock.detach())
    while not line.hear_client(lambda: read_key(key)):
        assert select.select([line], [], [], PATIENCE)[0]
    return Connection(line)


def start_client(code: str, server: Server, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A program with `gpu`, a GPU of the server."""
    program = "import numpy as np, waywiser as ww\n" + f"gpu = ww.remote({server.address!r}, key={str(server.key)!r})\n"
    words = [*before, sys.executable, "-c", program + code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, text=True, **pipes)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "more.py").write_text(FUNCTIONS)
    made = Server(tmp_path, "--functions", str(tmp_path / "more.py"), "--memory", "64M", "--clients", "3")
    yield made
    code, errors = made.close()
    assert (code, errors) == (0, "")
