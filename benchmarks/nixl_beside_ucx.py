"""Writes between memories of two processes of this machine through NIXL: by our back end and by its own of UCX, in
turns, verified byte for byte.

`python benchmarks/nixl_beside_ucx.py [--rounds 9] [--memory gpu0-gpu1] > rows.json`, by a Python that has NIXL
(`pip install nixl numpy`; for GPUs PyTorch too) and this package; with WAYWISER_PLAN our back end follows that plan.
Memories are `host` and `gpuN`: `--memory SOURCE-DESTINATION`. With a GPU each row has one copy of as many bytes by
PyTorch too, within a process, from or into page-locked host memory. Figures for people go to standard error.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import platform
import re
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
GPU_CASES = (
    ("4 KiB", 1, 4 << 10, 0, 1000),
    ("64 KiB", 1, 64 << 10, 0, 500),
    ("1 MiB", 1, 1 << 20, 0, 200),
    ("16 MiB", 1, 16 << 20, 0, 20),
    ("256 MiB", 1, 256 << 20, 0, 5),
    ("1,000 ranges of 4 KiB", 1000, 4 << 10, 8 << 10, 5),
)
ROOM = 256 << 20


class HostMemory:
    kind, device = "DRAM", 0

    def __init__(self, room: int) -> None:
        self._bytes = np.zeros(room, dtype=np.uint8)
        self.address, self.size = self._bytes.ctypes.data, room

    def set(self, data: np.ndarray) -> None:
        self._bytes[: len(data)] = data

    def get(self, count: int) -> np.ndarray:
        return self._bytes[:count]


class GpuMemory:
    kind = "VRAM"

    def __init__(self, room: int, device: int) -> None:
        import torch

        self._torch, self.device, self.size = torch, device, room
        torch.cuda.set_device(device)
        self._bytes = torch.zeros(room, dtype=torch.uint8, device=f"cuda:{device}")
        self.address = self._bytes.data_ptr()
        torch.cuda.synchronize()

    def set(self, data: np.ndarray) -> None:
        self._bytes[: len(data)] = self._torch.from_numpy(data).to(self._bytes.device)
        self._torch.cuda.synchronize()

    def get(self, count: int) -> np.ndarray:
        return np.asarray(self._bytes[:count].cpu().numpy())


def memory_of(place: str, room: int) -> HostMemory | GpuMemory:
    return GpuMemory(room, int(place.removeprefix("gpu"))) if place.startswith("gpu") else HostMemory(room)


def agent_of(name: str, back_end: str, memory: HostMemory | GpuMemory) -> Any:
    from nixl_cu13 import nixl_agent, nixl_agent_config

    agent = nixl_agent(name, nixl_agent_config(backends=[back_end]))
    agent.register_memory([(memory.address, memory.size, memory.device, "")], memory.kind)
    return agent


def target(pipe: Connection, back_end: str, place: str, room: int) -> None:
    memory = memory_of(place, room)
    agent = agent_of("target", back_end, memory)
    pipe.send((agent.get_agent_metadata(), memory.address, memory.device, memory.kind))
    while (asked := pipe.recv()) is not None:
        ranges, size, stride, seed = asked
        used = used_by(ranges, size, stride)
        expected, given = np.zeros(used, dtype=np.uint8), pattern(seed, used)  # also between the ranges
        for at in range(0, max(1, ranges * stride), max(1, stride)):
            expected[at : at + size] = given[at : at + size]
        right = np.array_equal(memory.get(used), expected)
        memory.set(np.zeros(used, dtype=np.uint8))
        pipe.send(right)
    pipe.send(not memory.get(room).any())  # nothing was written beyond the ranges


@functools.cache
def random_bytes() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, ROOM, dtype=np.uint8)


def pattern(seed: int, count: int) -> np.ndarray:
    return random_bytes()[:count] + np.uint8(seed % 256)


def used_by(ranges: int, size: int, stride: int) -> int:
    """Bytes of memory from a case's first range to its last one."""
    return (ranges - 1) * stride + size


def initiator(pipe: Connection, back_end: str, place: str, room: int, metadata: bytes, *there: Any) -> None:
    address, device, kind = there
    memory = memory_of(place, room)
    agent = agent_of("initiator", back_end, memory)
    agent.add_remote_agent(metadata)
    requests = {}
    for name, ranges, size, stride, _ in cases_of(room):
        local, remote = (
            agent.get_xfer_descs([(first + i * stride, size, on) for i in range(ranges)], kind_of)
            for first, on, kind_of in ((memory.address, memory.device, memory.kind), (address, device, kind))
        )
        requests[name] = agent.initialize_xfer("WRITE", local, remote, "target")
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        name, times, seed, used = asked
        memory.set(pattern(seed, used))
        run(agent, requests[name])  # after the pause: as copy_engine(), this does not count a link that wakes
        begin = time.perf_counter()
        for _ in range(times):
            run(agent, requests[name])
        pipe.send((time.perf_counter() - begin) / times)


def run(agent: Any, request: Any) -> None:
    state = agent.transfer(request)
    while state == "PROC":
        state = agent.check_xfer_state(request)
    if state != "DONE":
        raise RuntimeError(f"a transfer has ended as {state}")


def copy_engine(places: list[str], size: int, times: int) -> float:
    """Seconds of one copy by PyTorch within this process, begun and waited for one by one."""
    import torch

    where = [f"cuda:{place.removeprefix('gpu')}" if place.startswith("gpu") else "cpu" for place in places]
    one, other = (torch.zeros(size, dtype=torch.uint8, device=at, pin_memory=at == "cpu") for at in where)
    gpu = next(at for at in where if at != "cpu")
    other.copy_(one, non_blocking=True)
    torch.cuda.synchronize(gpu)
    begin = time.perf_counter()
    for _ in range(times):
        other.copy_(one, non_blocking=True)
        torch.cuda.synchronize(gpu)
    return (time.perf_counter() - begin) / times


def cases_of(room: int) -> tuple[tuple[str, int, int, int, int], ...]:
    return GPU_CASES if room == ROOM else CASES


class Pair:
    """An agent that writes and one that is written to, each in a process of its own."""

    def __init__(self, back_end: str, places: list[str], room: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        (self.target, its), (self.initiator, other) = spawn.Pipe(), spawn.Pipe()
        spawn.Process(target=target, args=(its, back_end, places[1], room), daemon=True).start()
        its.close()
        about = self.target.recv()
        spawn.Process(target=initiator, args=(other, back_end, places[0], room, *about), daemon=True).start()
        other.close()
        self.initiator.recv()

    def time(self, name: str, ranges: int, size: int, stride: int, times: int, seed: int) -> float:
        self.initiator.send((name, times, seed, used_by(ranges, size, stride)))
        seconds = float(self.initiator.recv())
        self.target.send((ranges, size, stride, seed))
        if not self.target.recv():
            raise RuntimeError(f"{name}: wrong bytes")
        return seconds


def measure(rounds: int, places: list[str]) -> list[dict[str, Any]]:
    on_gpus = any(place != "host" for place in places)
    room = ROOM if on_gpus else 64 << 20
    cases = cases_of(room)
    pairs = {name: Pair(name, places, room) for name in BACK_ENDS}
    times: dict[str, dict[str, list[float]]] = {case[0]: {name: [] for name in BACK_ENDS} for case in cases}
    copies: dict[str, list[float]] = {case[0]: [] for case in cases if on_gpus and case[1] == 1}
    for turn in range(-1, rounds):  # the first one, unmeasured, touches all pages
        for name, ranges, size, stride, repeats in cases:
            if name in copies and turn >= 0:
                copies[name].append(copy_engine(places, size, repeats))
            for back_end in BACK_ENDS if turn % 2 else BACK_ENDS[::-1]:
                seconds = pairs[back_end].time(name, ranges, size, stride, repeats, turn + 1)
                if turn >= 0:
                    times[name][back_end].append(seconds)
    for name, pair in pairs.items():
        pair.initiator.send(None)
        pair.target.send(None)
        if not pair.target.recv():
            raise RuntimeError(f"{name}: bytes beyond the ranges")
    rows = []
    for name, ranges, size, _, repeats in cases:
        ours, its = (times[name][back_end] for back_end in BACK_ENDS)
        ratio = statistics.median(one / other for one, other in zip(ours, its, strict=True))
        row = {"case": name, "ranges": ranges, "bytes": size, "repeats": repeats}
        row |= {"us": round(statistics.median(ours) * 1e6, 3), "ucx_us": round(statistics.median(its) * 1e6, 3)}
        if name in copies:
            row["copy_us"] = round(statistics.median(copies[name]) * 1e6, 3)
        rows.append(row | {"ratio": round(ratio, 3), "rounds_us": [round(one * 1e6, 3) for one in ours],
                           "rounds_ucx_us": [round(one * 1e6, 3) for one in its]})  # fmt: skip
        print(
            f"{name:24} {row['us']:12} us, UCX {row['ucx_us']:12} us, ratio {ratio:.3f}, "
            f"one copy {row.get('copy_us', '-')} us",
            file=sys.stderr,
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memory", default="host-host", metavar="SOURCE-DESTINATION")
    told = parser.parse_args()
    places = told.memory.split("-")
    if told.rounds < 1:
        parser.error("--rounds is at least 1")
    if len(places) != 2 or not all(re.fullmatch(r"host|gpu\d+", place) for place in places):
        parser.error("--memory is like gpu0-gpu1, gpu0-host or host-host")
    os.environ.setdefault("NIXL_LOG_LEVEL", "WARN")  # it logs to standard output
    from importlib.metadata import version

    with tempfile.TemporaryDirectory() as folder:
        os.environ[SWITCH] = str(make_folder(Path(folder), nixl_libraries()))
        before = os.getloadavg()
        rows = measure(told.rounds, places)
    about = {
        "benchmark": "nixl_beside_ucx", "nixl": version("nixl_cu13"), "cpus": os.cpu_count(),
        "processor": next((line.split(": ")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                           if line.startswith("model name")), platform.machine()),
        "load": " ".join(f"{one:.2f}" for one in before), "plan": bool(os.environ.get("WAYWISER_PLAN")),
        "memory": told.memory,
        "rounds": told.rounds, "verified": True, "rows": rows,
    }  # fmt: skip
    json.dump(about, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
