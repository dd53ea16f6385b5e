#!/usr/bin/env python3
"""Reads of a file past the page cache beside `fio --ioengine=io_uring --direct=1`, in turns: one transfer at a time of
1 to 64 MiB, and 4 KiB with 32 under way. `files_beside_fio.py FOLDER [--rounds N] [--seconds S] [--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import mmap
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import waywiser as ww

MIB = 1 << 20
SIZES = tuple(MIB << bits for bits in range(7))
FILE_BYTES = 512 * MIB
SMALL, UNDER_WAY, PARTS = 4096, 32, 2048
ONE_WAYS = (
    "io_uring",
    "io_uring(chunk=1M,depth=16)",
    "io_uring(chunk=128K,depth=64)",
    "io_uring(chunk=64M,depth=1)",
    "direct",
)
SMALL_WAY = f"io_uring(depth={UNDER_WAY})"


def aligned(nbytes: int) -> np.ndarray:
    """As fio's own memory is: whole pages."""
    return np.frombuffer(mmap.mmap(-1, nbytes), np.uint8)


def by_fio(path: Path, size: int, depth: int, seconds: float) -> float:
    """Bytes a second."""
    words = ["fio", "--name=read", f"--filename={path}", "--rw=randread", f"--bs={size}", f"--iodepth={depth}"]
    words += ["--ioengine=io_uring", "--direct=1", "--time_based", f"--runtime={seconds}", "--output-format=json"]
    words += [f"--size={FILE_BYTES}", "--readonly", "--norandommap"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60 + 10 * seconds)
    return float(json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"])


def ours(path: Path, size: int, way: str, count: int, seconds: float) -> float:
    """Bytes a second; `count` parts in each call."""
    draw = np.random.default_rng(1)
    memory = aligned(size * count).reshape(count, size)
    calls = [
        list(zip((draw.integers(0, (FILE_BYTES - size) // 4096 + 1, count) * 4096).tolist(), memory, strict=True))
        for _ in range(64)
    ]
    moved = 0
    with ww.File(path, way=way) as file:
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            file.read_many(calls[moved // (size * count) % len(calls)])
            moved += size * count
    return moved / (time.perf_counter() - begin)


def rounds(path: Path, size: int, count: int, seconds: float, turns: int) -> dict[str, object]:
    """Medians of both, and the median of the ratios of each round."""
    ways, depth = (ONE_WAYS, 1) if count == 1 else ((SMALL_WAY,), UNDER_WAY)
    found: dict[str, list[float]] = {way: [] for way in ways}
    fio = []
    for _ in range(turns):
        fio.append(by_fio(path, size, depth, seconds))
        for way in ways:
            found[way].append(ours(path, size, way, count, seconds))
    best = max(ways, key=lambda way: statistics.median(found[way]))
    ratios = [mine / theirs for mine, theirs in zip(found[best], fio, strict=True)]
    return {
        "bytes": size,
        "way": best,
        "ours": statistics.median(found[best]),
        "fio": statistics.median(fio),
        "ratio": statistics.median(ratios),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if shutil.which("fio") is None:
        print("files_beside_fio: fio is not installed: apt install fio", file=sys.stderr)
        return 2
    if shutil.disk_usage(asked.folder).free < 4 * FILE_BYTES:
        print(f"files_beside_fio: {asked.folder}: less than 2 GiB are free", file=sys.stderr)
        return 2
    path = asked.folder / "waywiser-beside-fio"
    try:
        with ww.File(path, "w") as file:
            file.write(np.random.default_rng(0).integers(0, 256, FILE_BYTES, np.uint8))
        cases = [(SMALL, PARTS), *((size, 1) for size in SIZES)]
        rows = [rounds(path, size, count, asked.seconds, asked.rounds) for size, count in cases]
    finally:
        path.unlink(missing_ok=True)
    for row in rows:
        mine, theirs = float(row["ours"]), float(row["fio"])
        print(f"{row['bytes']:>9} {mine / 1e6:9.1f} {theirs / 1e6:9.1f} MB/s  {row['ratio']:.3f}  {row['way']}")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
