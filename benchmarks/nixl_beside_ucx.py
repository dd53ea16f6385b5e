"""Writes of host memory between two processes of this machine through NIXL: by our back end and by its own of UCX, in
turns, verified byte for byte.

`python benchmarks/nixl_beside_ucx.py [--rounds 9] > rows.json`, by a Python that has NIXL (`pip install nixl numpy`)
and this package; with WAYWISER_PLAN our back end follows that plan. Figures for people go to standard error.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from waywiser.nixl_folder import SWITCH, make_folder, nixl_libraries

BACK_ENDS = ("WAYWISER", "UCX")
# Name, ranges, bytes of each, bytes from one to the next, transfers that are timed together.
CASES = (
    ("4 KiB", 1, 4 << 10, 0, 2000),
    ("64 KiB", 1, 64 << 10, 0, 500),
    ("1 MiB", 1, 1 << 20, 0, 100),
    ("64 MiB", 1, 64 << 20, 0, 3),
    ("1,000 ranges of 4 KiB", 1000, 4 << 10, 8 << 10, 20),
    ("100,000 ranges of 64 B", 100_000, 64, 128, 1),
)
ROOM = 64 << 20


def agent_of(name: str, back_end: str, memory: np.ndarray) -> Any:
    from nixl_cu13 import nixl_agent, nixl_agent_config

    agent = nixl_agent(name, nixl_agent_config(backends=[back_end]))
    agent.register_memory([(memory.ctypes.data, memory.nbytes, 0, "")], "DRAM")
    return agent


def target(pipe: Connection, back_end: str) -> None:
    memory = np.zeros(ROOM, dtype=np.uint8)
    agent = agent_of("target", back_end, memory)
    pipe.send((agent.get_agent_metadata(), memory.ctypes.data))
    while (asked := pipe.recv()) is not None:
        ranges, size, stride, seed = asked
        expected = np.zeros(ROOM, dtype=np.uint8)  # also between the ranges
        for at in range(0, max(1, ranges * stride), max(1, stride)):
            expected[at : at + size] = pattern(seed)[at : at + size]
        right = np.array_equal(memory, expected)
        memory[:] = 0
        pipe.send(right)


@functools.lru_cache(maxsize=1)
def pattern(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, ROOM, dtype=np.uint8)


def initiator(pipe: Connection, back_end: str, metadata: bytes, address: int) -> None:
    memory = np.zeros(ROOM, dtype=np.uint8)
    agent = agent_of("initiator", back_end, memory)
    agent.add_remote_agent(metadata)
    requests = {}
    for name, ranges, size, stride, _ in CASES:
        local, remote = (
            agent.get_xfer_descs([(first + i * stride, size, 0) for i in range(ranges)], "DRAM")
            for first in (memory.ctypes.data, address)
        )
        requests[name] = agent.initialize_xfer("WRITE", local, remote, "target")
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        name, times, seed = asked
        memory[:] = pattern(seed)
        request = requests[name]
        begin = time.perf_counter()
        for _ in range(times):
            state = agent.transfer(request)
            while state == "PROC":
                state = agent.check_xfer_state(request)
            if state != "DONE":
                raise RuntimeError(f"{back_end}: {name}: {state}")
        pipe.send((time.perf_counter() - begin) / times)


class Pair:
    """An agent that writes and one that is written to, each in a process of its own."""

    def __init__(self, back_end: str) -> None:
        spawn = multiprocessing.get_context("spawn")
        (self.target, its), (self.initiator, other) = spawn.Pipe(), spawn.Pipe()
        spawn.Process(target=target, args=(its, back_end), daemon=True).start()
        about = self.target.recv()
        spawn.Process(target=initiator, args=(other, back_end, *about), daemon=True).start()
        self.initiator.recv()

    def time(self, name: str, ranges: int, size: int, stride: int, times: int, seed: int) -> float:
        self.initiator.send((name, times, seed))
        seconds = float(self.initiator.recv())
        self.target.send((ranges, size, stride, seed))
        if not self.target.recv():
            raise RuntimeError(f"{name}: wrong bytes")
        return seconds


def measure(rounds: int) -> list[dict[str, Any]]:
    pairs = {name: Pair(name) for name in BACK_ENDS}
    times: dict[str, dict[str, list[float]]] = {case[0]: {name: [] for name in BACK_ENDS} for case in CASES}
    for turn in range(-1, rounds):  # the first one, unmeasured, touches all pages
        for name, ranges, size, stride, repeats in CASES:
            for back_end in BACK_ENDS if turn % 2 else BACK_ENDS[::-1]:
                seconds = pairs[back_end].time(name, ranges, size, stride, repeats, turn + 1)
                if turn >= 0:
                    times[name][back_end].append(seconds)
    for pair in pairs.values():
        pair.initiator.send(None)
        pair.target.send(None)
    rows = []
    for name, ranges, size, _, repeats in CASES:
        ours, its = (times[name][back_end] for back_end in BACK_ENDS)
        ratio = statistics.median(one / other for one, other in zip(ours, its, strict=True))
        row = {"case": name, "ranges": ranges, "bytes": size, "repeats": repeats}
        row |= {"us": round(statistics.median(ours) * 1e6, 3), "ucx_us": round(statistics.median(its) * 1e6, 3)}
        rows.append(row | {"ratio": round(ratio, 3), "rounds_us": [round(one * 1e6, 3) for one in ours],
                           "rounds_ucx_us": [round(one * 1e6, 3) for one in its]})  # fmt: skip
        print(f"{name:24} {row['us']:12} us, UCX {row['ucx_us']:12} us, ratio {ratio:.3f}", file=sys.stderr)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    told = parser.parse_args()
    if told.rounds < 1:
        parser.error("--rounds is at least 1")
    from importlib.metadata import version

    with tempfile.TemporaryDirectory() as folder:
        os.environ[SWITCH] = str(make_folder(Path(folder), nixl_libraries()))
        before = os.getloadavg()
        rows = measure(told.rounds)
    about = {
        "benchmark": "nixl_beside_ucx", "nixl": version("nixl_cu13"), "cpus": os.cpu_count(),
        "processor": next((line.split(": ")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                           if line.startswith("model name")), platform.machine()),
        "load": " ".join(f"{one:.2f}" for one in before), "plan": bool(os.environ.get("WAYWISER_PLAN")),
        "rounds": told.rounds, "verified": True, "rows": rows,
    }  # fmt: skip
    json.dump(about, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
