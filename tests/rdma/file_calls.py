"""Executes the commands on its standard input with files of waywiser. What each came to is a line that begins with
`answer`: done, what it found, or the error.

make FILE                the bytes of seed 0 in a file that is there
read WAY FILE            all of them, from the device: intact or other
open WAY FILE            begins a new file in the place of FILE
write SEED, close        with bytes of this seed; on the device under its name
whole FILE               of which seed all bytes of FILE are; else mixed
watch FILE               the way that keeps one piece under way, which a made-up plan calls the best, and its seconds
look                     a cold read of the watched file: the way that it took, and its seconds
leave                    closes the watched file
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import waywiser as ww
from waywiser import _core

BYTES = 4 << 20
WATCHED = 1 << 20
SLOW, DEEP = "direct(chunk=64K,threads=1)", "io_uring(chunk=64K,depth=16)"


def noise(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, BYTES, np.uint8)


def made_up_plan(path: str, seconds: float) -> str:
    """The way that keeps one piece under way is the best one, and the one that keeps 16 little slower."""
    ways = [{"way": SLOW, "ratio": 1.0}, {"way": DEEP, "ratio": 1.1}]
    row = {"operation": "file_read", "memory": "host", "ranks": 1, "from_bytes": 0, "to_bytes": 2**62, "ways": ways}
    row |= {"partner": _core.storage_of(path), "expected": [{"bytes": WATCHED, "seconds": seconds}], "why": "made up"}
    head = {"schema": "waywiser.plan", "version": 3, "fingerprint": "x", "machine": "m", "backend": "host"}
    plan = Path("/tmp/plan.json")
    plan.write_text(json.dumps({**head, "simulated": False, "other_nodes": [], "rows": [row]}))
    return str(plan)


def cold_read(file: ww.File) -> float:
    file._core.drop_cache()
    begin = time.perf_counter()
    file.read_into(np.empty(WATCHED, np.uint8))
    return time.perf_counter() - begin


class Calls:
    """The files that are open from one command to another."""

    written: ww.File
    watched: ww.File

    def answer(self, verb: str, *words: str) -> str:
        return str(getattr(self, verb)(*words) or "done")

    def make(self, path: str) -> None:
        with open(path, "r+b") as file:
            file.write(noise(0))
            os.fsync(file.fileno())

    def read(self, way: str, path: str) -> str:
        into = np.zeros(BYTES, np.uint8)
        with ww.File(path, way=way) as file:
            file._core.drop_cache()
            file.read_into(into)
        return "intact" if np.array_equal(into, noise(0)) else "other"

    def open(self, way: str, path: str) -> None:
        self.written = ww.File(path, "w", way=way)

    def write(self, seed: str) -> None:
        self.written.write(noise(int(seed)))

    def close(self) -> None:
        self.written.close()

    def whole(self, path: str) -> str:
        found = np.fromfile(path, np.uint8)
        return next((str(seed) for seed in range(10) if np.array_equal(found, noise(seed))), "mixed")

    def watch(self, path: str) -> str:
        with ww.File(path, way=SLOW) as file:
            seconds = min(cold_read(file) for _ in range(5))
        self.watched = ww.File(path, plan=made_up_plan(path, seconds))
        return f"{self.watched.way(WATCHED)} {seconds:.6f}"

    def look(self) -> str:
        return f"{self.watched.way(WATCHED)} {cold_read(self.watched):.6f}"

    def leave(self) -> None:
        self.watched.close()


calls = Calls()
print("ready", flush=True)
for line in sys.stdin:
    try:
        print("answer", calls.answer(*line.split()), flush=True)
    except ww.TransferError as error:
        print("answer", error, flush=True)
