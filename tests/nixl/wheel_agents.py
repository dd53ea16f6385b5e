"""Two agents of NIXL's own in two processes, by a Python that has NIXL: `wheel_agents.py CASE` ends with "right"."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

OURS, UCX = "WAYWISER", "UCX"
ROOM = 8 << 20
PATIENCE = 60.0
OTHER_MACHINE = b"12345678-1234-1234-1234-123456789abc"


def agent_of(name: str, back_ends: list[str], memory: np.ndarray) -> Any:
    from nixl_cu13 import nixl_agent, nixl_agent_config

    agent = nixl_agent(name, nixl_agent_config(backends=back_ends))
    agent.register_memory([(memory.ctypes.data, memory.nbytes, 0, "")], "DRAM")
    return agent


def until(ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if found := ask():
            return found
    raise TimeoutError


def finish(agent: Any, request: Any) -> str:
    state = agent.transfer(request)
    deadline = time.monotonic() + PATIENCE
    while state == "PROC" and time.monotonic() < deadline:
        state = agent.check_xfer_state(request)
    return str(state)


def descriptors(agent: Any, first: int, size: int, count: int = 1, stride: int = 0) -> Any:
    return agent.get_xfer_descs([(first + i * stride, size, 0) for i in range(count)], "DRAM")


def random_bytes(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, ROOM, dtype=np.uint8)


def target(pipe: Connection, back_ends: list[str]) -> None:
    memory = random_bytes(1)
    agent = agent_of("target", back_ends, memory)
    pipe.send((agent.get_agent_metadata(), memory.ctypes.data))
    agent.add_remote_agent(pipe.recv())
    try:
        while True:
            pipe.send(memory.tobytes() if pipe.recv() == "memory" else until(agent.get_new_notifs))
    except EOFError:
        leave()


def leave() -> None:
    """Without the end of libraries: on some machines those of NIXL's UCX crash there, without our back end too."""
    sys.stdout.flush()
    os._exit(0)


class Job:
    def __init__(self, back_ends: list[str], other_machine: bool = False) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.pipe, its = spawn.Pipe()
        self.process = spawn.Process(target=target, args=(its, back_ends), daemon=True)
        self.process.start()
        self.memory = random_bytes(2)
        self.agent = agent_of("initiator", back_ends, self.memory)
        metadata, self.far = self.pipe.recv()
        machine = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        assert machine in metadata
        self.agent.add_remote_agent(metadata.replace(machine, OTHER_MACHINE) if other_machine else metadata)
        self.pipe.send(self.agent.get_agent_metadata())

    def far_memory(self) -> np.ndarray:
        self.pipe.send("memory")
        return np.frombuffer(self.pipe.recv(), dtype=np.uint8)

    def notifications(self) -> Any:
        self.pipe.send("notifications")
        return self.pipe.recv()


def between_processes() -> None:
    job = Job([OURS])
    agent, near = job.agent, job.memory.ctypes.data
    for size in (1, 4096, 1 << 20, 5_000_001):
        local, remote = descriptors(agent, near + 3, size), descriptors(agent, job.far + 7, size)
        request = agent.initialize_xfer("WRITE", local, remote, "target", b"wrote")
        for turn in range(3):
            job.memory[:] = random_bytes(10 + turn)
            assert finish(agent, request) == "DONE"
            assert job.notifications() == {"initiator": [b"wrote"]}
            assert np.array_equal(job.far_memory()[7 : 7 + size], job.memory[3 : 3 + size])
        agent.release_xfer_handle(request)
        request = agent.initialize_xfer("READ", local, remote, "target")
        job.memory[:] = 0
        assert finish(agent, request) == "DONE"
        assert np.array_equal(job.far_memory()[7 : 7 + size], job.memory[3 : 3 + size])
        agent.release_xfer_handle(request)
    agent.send_notif("target", b"alone")
    assert job.notifications() == {"initiator": [b"alone"]}


def prepared_lists() -> None:
    job = Job([OURS])
    agent, count, size, stride = job.agent, 20_000, 100, 256
    local = agent.prep_xfer_dlist("", descriptors(agent, job.memory.ctypes.data, size, count, stride), "DRAM")
    remote = agent.prep_xfer_dlist("target", descriptors(agent, job.far, size, count, stride), "DRAM")
    order = np.random.default_rng(5).permutation(count)
    indices = [int(one) for one in order]
    request = agent.make_prepped_xfer("WRITE", local, indices, remote, indices[::-1], b"all")
    assert finish(agent, request) == "DONE"
    assert job.notifications() == {"initiator": [b"all"]}
    there = job.far_memory()[: count * stride].reshape(count, stride)
    here = job.memory[: count * stride].reshape(count, stride)
    assert np.array_equal(there[order[::-1], :size], here[order, :size])
    assert np.array_equal(there[:, size:], random_bytes(1)[: count * stride].reshape(count, stride)[:, size:])


def within_an_agent() -> None:
    memory = random_bytes(3)
    agent = agent_of("alone", [OURS], memory)
    local, remote = (descriptors(agent, memory.ctypes.data + at, 3 << 20) for at in (0, 4 << 20))
    assert finish(agent, agent.initialize_xfer("WRITE", local, remote, "alone", b"own")) == "DONE"
    assert np.array_equal(memory[: 3 << 20], memory[4 << 20 : 7 << 20])
    assert until(agent.get_new_notifs) == {"alone": [b"own"]}


def other_machine() -> None:
    """NIXL takes UCX where ours cannot reach the other agent, in whatever order they were made."""
    for back_ends in ([OURS, UCX], [UCX, OURS]):
        job = Job(back_ends, other_machine=True)
        local, remote = descriptors(job.agent, job.memory.ctypes.data, 4096), descriptors(job.agent, job.far, 4096)
        request = job.agent.initialize_xfer("WRITE", local, remote, "target", b"ucx")
        assert job.agent.query_xfer_backend(request) == UCX
        assert finish(job.agent, request) == "DONE"
        assert job.notifications() == {"initiator": [b"ucx"]}
        assert np.array_equal(job.far_memory()[:4096], job.memory[:4096])


def both_back_ends() -> None:
    """Within the machine the one that the request names carries it."""
    job = Job([OURS, UCX])
    for name in (OURS, UCX):
        local, remote = descriptors(job.agent, job.memory.ctypes.data, 4096), descriptors(job.agent, job.far, 4096)
        request = job.agent.initialize_xfer("WRITE", local, remote, "target", name.encode(), [name])
        assert job.agent.query_xfer_backend(request) == name
        assert finish(job.agent, request) == "DONE"
        assert job.notifications() == {"initiator": [name.encode()]}


def death() -> None:
    job = Job([OURS])
    local, remote = descriptors(job.agent, job.memory.ctypes.data, 4096), descriptors(job.agent, job.far, 4096)
    request = job.agent.initialize_xfer("WRITE", local, remote, "target", b"gone")
    job.process.kill()
    job.process.join()
    try:
        state = finish(job.agent, request)
    except Exception as error:
        state = str(error)
    assert state == "NIXL_ERR_REMOTE_DISCONNECT", state


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print("right")
    leave()
