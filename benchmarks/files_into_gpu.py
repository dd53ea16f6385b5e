#!/usr/bin/env python3
"""Files into one GPU by the plan of `tune --storage`, beside cuFile, kvikio, NIXL and many threads that read, in turns:
from the device and cached, 64 KiB to 1 GiB, all bytes compared; and the two halves of the way, file to pinned memory
and pinned memory to the GPU. `files_into_gpu.py FOLDER [--tune S | --plan FILE] [--seconds S] [--json FILE]`, by a
Python that has PyTorch and this package; kvikio and NIXL take part where they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

import waywiser as ww
from waywiser import _core
from waywiser.plan import read_plan
from waywiser.tune.storage_tuning import StorageTimes, keep, measured

MIB = 1 << 20
SIZES = (64 << 10, 256 << 10, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, 1024 * MIB)
FILE_BYTES, THREADS, SHARE = 2048 * MIB, 16, 4 * MIB
ROUNDS, LOOKS, SLOW = 21, 2, 2.0  # turns of a case at most; until it is clear who is that much slower than the fastest
CUFILE = ("cufile", "cufile(chunk=1M,threads=16)", "cufile(chunk=4M,threads=8)", "cufile(chunk=1G,threads=1)")
HALVES = (
    "io_uring",
    "io_uring(chunk=1M,depth=16)",
    "buffered(threads=4)",
    "buffered(threads=8)",
    "buffered(threads=16)",
    "direct(chunk=1M,threads=16)",
)
THREADS_HALF, COPY_HALF = "half: threads to pinned", "half: pinned to GPU"
MANY_THREADS = (THREADS_HALF, "half: to pinned buffered(threads=8)", "half: to pinned buffered(threads=16)")
Read = Callable[[int, int], None]  # of so many bytes from an offset, complete when it returns


class Memory:
    """Where the bytes come to, and those of the file to compare them with."""

    def __init__(self, path: Path) -> None:
        self.path = path
        torch.manual_seed(0)
        self.wanted = torch.randint(0, 256, (FILE_BYTES,), dtype=torch.uint8, device="cuda")
        whole = self.wanted.cpu().numpy()
        with ww.File(path, "w", way="buffered") as file:
            file.write(whole)
        self.gpu = torch.zeros(max(SIZES), dtype=torch.uint8, device="cuda")
        self.pinned = torch.zeros(max(SIZES), dtype=torch.uint8, pin_memory=True)
        self.descriptor = os.open(path, os.O_RDONLY)
        self.watcher = ww.File(path, way="buffered")

    def is_there(self, size: int, offset: int, into: torch.Tensor) -> bool:
        return bool(torch.equal(into[:size].cuda(), self.wanted[offset : offset + size]))


def by_file(memory: Memory, into: torch.Tensor, **how: Any) -> Read:
    gpus = ww.cuda_gpus() if into.is_cuda else None
    file = ww.File(memory.path, gpus=gpus, **how)

    def read(size: int, offset: int) -> None:
        file.read_into(into[:size], offset)

    return read


def by_threads(memory: Memory, to_gpu: bool) -> Read:
    """Threads that read pieces into pinned memory; the copies of those that are there go at once."""
    pool, view = ThreadPoolExecutor(THREADS), memoryview(memory.pinned.numpy())

    def piece(offset: int, begin: int, end: int) -> tuple[int, int]:
        at = begin
        while at < end:
            at += os.preadv(memory.descriptor, [view[at:end]], offset + at)
        return begin, end

    def read(size: int, offset: int) -> None:
        share = max(64 << 10, min(SHARE, -(-size // THREADS)))
        begins = range(0, size, share)
        ends = [min(begin + share, size) for begin in begins]
        for begin, end in pool.map(lambda each: piece(offset, *each), zip(begins, ends, strict=True)):
            if to_gpu:
                memory.gpu[begin:end].copy_(memory.pinned[begin:end], non_blocking=True)
        if to_gpu:
            torch.cuda.synchronize()

    return read


def by_copy(memory: Memory) -> Read:
    def read(size: int, offset: int) -> None:
        memory.gpu[:size].copy_(memory.pinned[:size], non_blocking=True)
        torch.cuda.synchronize()

    return read


def by_kvikio(memory: Memory, threads: int, compatible: bool, direct: bool = False) -> Read:
    import kvikio
    import kvikio.defaults

    mode = kvikio.CompatMode.ON if compatible else kvikio.CompatMode.OFF
    file = None

    def read(size: int, offset: int) -> None:
        nonlocal file
        kvikio.defaults.set({"num_threads": threads, "compat_mode": mode, "auto_direct_io_read": direct})
        if file is None:
            file = kvikio.CuFile(memory.path, "r")
        moved = file.pread(memory.gpu[:size], size, offset).get()
        if moved != size:
            raise OSError(f"{moved} of {size} bytes")

    return read


def by_nixl(memory: Memory, back_end: str, direct: bool) -> Read:
    """POSIX knows host memory alone: the copy follows. Requests are prepared before they are timed."""
    from nixl_cu13 import nixl_agent, nixl_agent_config

    agent = nixl_agent(f"files {back_end} {direct}", nixl_agent_config(backends=[]))
    agent.create_backend(back_end, {"use_uring": "true"} if back_end == "POSIX" else {})
    number = os.open(memory.path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    into, kind = (memory.pinned, "DRAM") if back_end == "POSIX" else (memory.gpu, "VRAM")
    agent.register_memory([(into.data_ptr(), into.numel(), 0, "")], kind)
    agent.register_memory([(0, FILE_BYTES, number, "")], "FILE")
    made: dict[tuple[int, int], Any] = {}

    def request(size: int, offset: int) -> Any:
        begins = range(0, size, MIB)
        here = [(into.data_ptr() + at, min(MIB, size - at), 0) for at in begins]
        there = [(offset + at, min(MIB, size - at), number) for at in begins]
        return agent.initialize_xfer(
            "READ", agent.get_xfer_descs(here, kind), agent.get_xfer_descs(there, "FILE"), agent.name
        )

    def read(size: int, offset: int) -> None:
        if (size, offset) not in made:
            made[size, offset] = request(size, offset)
        state = agent.transfer(made[size, offset])
        while state == "PROC":
            state = agent.check_xfer_state(made[size, offset])
        if state != "DONE":
            raise OSError(state)
        if kind == "DRAM":
            by_copy(memory)(size, 0)

    return read


def contestants(memory: Memory, plan: Path) -> Iterator[tuple[str, Callable[[], Read], torch.Tensor | None]]:
    """Their names, what makes them, and where the bytes come to: nowhere that tells what the file had."""
    gpu, pinned = memory.gpu, memory.pinned
    yield "waywiser", lambda: by_file(memory, gpu, plan=plan), gpu
    for way in CUFILE:
        yield f"cuFile {way}", lambda way=way: by_file(memory, gpu, way=way), gpu
    for threads in (1, 8, 16):
        yield f"kvikio compatibility {threads} threads", lambda threads=threads: by_kvikio(memory, threads, True), gpu
    yield "kvikio compatibility direct 16 threads", lambda: by_kvikio(memory, 16, True, True), gpu
    yield "kvikio by cuFile 8 threads", lambda: by_kvikio(memory, 8, False), gpu
    yield "NIXL POSIX", lambda: by_nixl(memory, "POSIX", False), gpu
    yield "NIXL POSIX direct", lambda: by_nixl(memory, "POSIX", True), gpu
    yield "NIXL GDS_MT", lambda: by_nixl(memory, "GDS_MT", True), gpu
    yield "threads to GPU", lambda: by_threads(memory, True), gpu
    yield THREADS_HALF, lambda: by_threads(memory, False), pinned
    for way in HALVES:
        yield f"half: to pinned {way}", lambda way=way: by_file(memory, pinned, way=way), pinned
    yield COPY_HALF, lambda: by_copy(memory), None


class Race:
    def __init__(self, memory: Memory, plan: Path) -> None:
        self.memory, self.refused = memory, {}  # type: Memory, dict[str, str]
        self.ours = ww.File(memory.path, plan=plan, gpus=ww.cuda_gpus())
        self.into: dict[str, torch.Tensor | None] = {}
        self.reads: dict[str, Read] = {}
        for name, make, into in contestants(memory, plan):
            try:
                self.reads[name], self.into[name] = make(), into
                self.one(name, MIB, 0, True)
            except Exception as error:  # whatever a library raises, the others go on
                self.refused[name] = f"{type(error).__name__}: {error}"
                self.reads.pop(name, None)

    def one(self, name: str, size: int, offset: int, cached: bool) -> float:
        if cached:
            os.posix_fadvise(self.memory.descriptor, offset, size, os.POSIX_FADV_WILLNEED)
            by_threads_once(self.memory, size, offset)
        else:
            self.memory.watcher._core.drop_cache()
        into = self.into[name]
        if into is not None:
            into[:size].zero_()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.reads[name](size, offset)
        seconds = time.perf_counter() - begin
        if into is not None and not self.memory.is_there(size, offset, into):
            raise RuntimeError(f"{name}: other bytes")
        return seconds


def by_threads_once(memory: Memory, size: int, offset: int) -> None:
    """All pages are in the cache then."""
    for at in range(offset, offset + size, 64 * MIB):
        os.pread(memory.descriptor, min(64 * MIB, offset + size - at), at)


def still_in(times: dict[str, list[float]], turn: int) -> list[str]:
    """Those that are not clearly slow; what the answer is about stays."""
    best = min(min(of) for name, of in times.items() if of and " pinned" not in name) if turn >= LOOKS else 0.0
    return [
        name
        for name, of in times.items()
        if turn < LOOKS or name in ("waywiser", THREADS_HALF, COPY_HALF) or min(of, default=0.0) <= SLOW * best
    ]


def case(race: Race, size: int, cached: bool, until: float) -> dict[str, Any]:
    draw = np.random.default_rng(size)
    offsets = [int(block) * 4096 for block in draw.integers(0, (FILE_BYTES - size) // 4096 + 1, ROUNDS)]
    times: dict[str, list[float]] = {name: [] for name in race.reads}
    for turn, offset in enumerate(offsets):
        if turn and time.monotonic() > until:
            break
        names = [name for name in still_in(times, turn) if name in race.reads]
        for name in draw.permutation(names).tolist():
            try:
                times[name].append(race.one(name, size, offset, cached))
            except (RuntimeError, OSError) as error:
                race.refused[name] = f"{size}, {'cached' if cached else 'cold'}: {error}"
                del race.reads[name]
    medians = {name: statistics.median(of) for name, of in times.items() if of and name in race.reads}
    ours = medians["waywiser"]
    half = min(of for name, of in medians.items() if name.startswith("half: ") and name != COPY_HALF)
    others = {name: of for name, of in medians.items() if name != "waywiser" and not name.startswith("half: ")}
    best = min(others, key=lambda name: others[name])
    return {
        "bytes": size, "cached": cached, "rounds": len(times["waywiser"]), "seconds": medians,
        "way": race.ours.way(size, 0, True) if cached else "", "of_bound": max(half, medians[COPY_HALF]) / ours,
        "of_both_halves": (half + medians[COPY_HALF]) / ours, "best_other": best, "of_best_other": others[best] / ours,
        "of_threads_to_pinned": min(of for name, of in medians.items() if name in MANY_THREADS) / ours,
    }  # fmt: skip


def effort(size: int) -> float:
    """In proportion to the time that a case has."""
    return float(max(1.0, size / (64 * MIB)) ** 0.75)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tune", type=float, default=60, help="seconds of tune --storage")
    parser.add_argument("--plan", type=Path, help="of an earlier tune --storage, in place of one of this run")
    parser.add_argument("--seconds", type=float, default=100, help="of the comparison")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = StorageTimes(asked.plan.name) if asked.plan else None
    if found is None:
        found = measured(asked.folder, asked.tune, lambda *_: None, gpus=ww.cuda_gpus())
    with tempfile.TemporaryDirectory(prefix="waywiser-gpu-files-", dir=asked.folder) as inside:
        plan = asked.plan or Path(inside) / "plan.json"
        rows = list(read_plan(plan.read_bytes(), str(plan)).rows) if asked.plan else keep(plan, found)
        race = Race(Memory(Path(inside) / "file"), plan)
        cases = [(size, cached) for cached in (True, False) for size in SIZES]
        begin, results = time.monotonic(), []
        for done, (size, cached) in enumerate(cases, 1):
            share = sum(effort(size) for size, _ in cases[:done]) / sum(effort(size) for size, _ in cases)
            results.append(case(race, size, cached, begin + asked.seconds * share))
            one = results[-1]
            print(
                f"{'cached' if cached else 'cold':<7}{size >> 10:>8} KiB {1e3 * one['seconds']['waywiser']:9.3f} ms  "
                f"of the bound {one['of_bound']:.3f}, of both {one['of_both_halves']:.3f}  "
                f"of {one['best_other']} {one['of_best_other']:.3f}  "
                f"of threads to pinned {one['of_threads_to_pinned']:.3f}  ({one['rounds']} rounds)",
                flush=True,
            )
            if asked.json:  # row by row, so that an end from outside loses nothing
                about = {"gpu": torch.cuda.get_device_name(), "cpus": os.cpu_count(), "storage": found.storage}
                about |= {"cufile": _core.cufile_state()[1], "notes": found.notes, "refused": race.refused}
                chosen = [[row.memory, row.operation, row.from_bytes, row.way] for row in rows]
                timed = [
                    [one["operation"], one["way"], *([point["bytes"], point["seconds"]] for point in one["points"])]
                    for one in found.series
                    if one["memory"] == "gpu"
                ]
                text = json.dumps({**about, "plan": chosen, "timed": timed, "cases": results}, indent=1)
                asked.json.write_text(text + "\n")
    for name, why in race.refused.items():
        print(f"{name}: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
