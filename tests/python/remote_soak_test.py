"""Clients that come, work and go, some of them by a kill: the server is afterwards as it was before.

WAYWISER_SOAK_CLIENTS: how many; `make test-long` takes 1,000.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from rank_jobs import runtime_folder
from remote_gpu import PATIENCE, Server, start_client

import waywiser as ww

__all__ = ["runtime_folder"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("runtime_folder")]
CLIENTS = int(os.environ.get("WAYWISER_SOAK_CLIENTS", "6"))
GROWTH = 16 << 20  # bytes of the server's process between a third of the clients and the end
KILLED = "x = gpu.array(np.ones(100000))\ngpu.run('scale', x)\ngpu.synchronize()\nprint('there', flush=True)\ninput()"


def one_client(server: Server, chance: random.Random) -> None:
    """Computes something, and ends: in order, after an error, or with calls under way."""
    with ww.remote(server.address, key=server.key, gpu=chance.randrange(2)) as gpu:
        a, b = np.arange(float(chance.randrange(1, 200000))), np.float64(chance.random())
        x = gpu.array(a)
        np.testing.assert_array_equal(gpu.run("scale", x, factor=b).get(), a * b)
        end = chance.choice(("order", "error", "under way"))
        if end == "error":
            gpu.run("nothing", x)
            with pytest.raises(ww.InputError, match="no function 'nothing'"):
                gpu.synchronize()
        elif end == "under way":
            for _ in range(20):
                x = gpu.run("add", x, x)


def killed_client(server: Server) -> None:
    client = start_client(KILLED, server)
    assert client.stdout is not None and client.stdout.readline() == "there\n"
    client.kill()
    client.communicate(timeout=PATIENCE)


def open_files(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/fd"))


def resident_bytes(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.timeout(60 + 20 * CLIENTS)
def test_many_clients_leave_nothing_behind(tmp_path: Path) -> None:
    server, chance = Server(tmp_path), random.Random(1)
    process = server.process.pid
    files, before = open_files(process), 0
    for number in range(CLIENTS):
        if number % 5 == 4:
            killed_client(server)
        else:
            one_client(server, chance)
        server.wait_for("left")
        if number == CLIENTS // 3:
            before = resident_bytes(process)
    state = server.wait_until(lambda state: state["clients"] == [])
    assert [gpu["memory"] for gpu in state["gpus"]] == [0, 0]
    assert Path(f"/proc/{process}/task/{process}/children").read_text() == ""
    # The last client's pipes are closed after its end is told, and so is the connection that has asked for the state.
    deadline = time.monotonic() + PATIENCE
    while open_files(process) > files:
        assert time.monotonic() < deadline, os.listdir(f"/proc/{process}/fd")
        time.sleep(0.01)
    assert resident_bytes(process) < before + GROWTH
    assert len([told for told in server.log if told["event"] == "left"]) == CLIENTS
    assert server.close() == (0, "")
