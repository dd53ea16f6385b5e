#!/usr/bin/env python3
"""Reads of a file past the page cache beside `fio --ioengine=io_uring --direct=1`, in turns: one transfer at a time of
1 to 64 MiB, and 4 KiB with 32 under way; and what a tail that is no whole block costs, in the same turns.
`files_beside_fio.py FOLDER [--rounds N] [--seconds S] [--json FILE]`.
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
ONE_WAYS = ("io_uring", "io_uring(chunk=1M,depth=16)", "direct(chunk=64M,threads=1)")
SMALL_WAYS = (f"io_uring(depth={UNDER_WAY})", f"io_uring(depth={UNDER_WAY},registered=1)")
TAIL = 1001  # bytes more than whole blocks


def aligned(nbytes: int) -> np.ndarray:
    """As fio's own memory is: whole pages that are there."""
    memory = np.frombuffer(mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    memory[:] = 1
    return memory


def by_fio(path: Path, size: int, depth: int, seconds: float) -> float:
    """Bytes a second."""
    words = ["fio", "--name=read", f"--filename={path}", "--rw=randread", f"--bs={size}", f"--iodepth={depth}"]
    words += [
        "--ioengine=io_uring",
        "--direct=1",
        "--time_based",
        f"--runtime={round(1000 * seconds)}ms",
        "--output-format=json",
    ]
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


def written_tail(path: Path, size: int, turns: int) -> float:
    """Time of a file with a tail, until it is on the device under its name, over that of one without."""
    memory = aligned(size + TAIL)
    memory[:] = 1
    spent: dict[int, list[float]] = {size: [], size + TAIL: []}
    for turn in range(turns):
        for nbytes in sorted(spent, reverse=turn % 2 == 1):
            begin = time.perf_counter()
            with ww.File(path, "w", way=ONE_WAYS[0]) as file:
                file.write(memory[:nbytes])
            spent[nbytes].append(time.perf_counter() - begin)
    path.unlink()
    return statistics.median(tailed / whole for whole, tailed in zip(*spent.values(), strict=True))


def rounds(path: Path, size: int, count: int, seconds: float, turns: int) -> dict[str, object]:
    """Medians of both, and the median of the ratios of each round."""
    ways, depth = (ONE_WAYS, 1) if count == 1 else (SMALL_WAYS, UNDER_WAY)
    found: dict[str, list[float]] = {way: [] for way in ("fio", *ways, "tail")}
    for turn in range(turns):
        for at in range(len(found)):  # each turn in another order
            which = list(found)[(at + turn) % len(found)]
            if which == "fio":
                found[which].append(by_fio(path, size, depth, seconds))
            elif which != "tail":
                found[which].append(ours(path, size, which, count, seconds))
            elif count == 1:
                found[which].append(ours(path, size + TAIL, ways[0], count, seconds))
    medians = {way: statistics.median(of) for way, of in found.items() if of}
    best = max(ways, key=lambda way: medians[way])
    ratios = [mine / theirs for mine, theirs in zip(found[best], found["fio"], strict=True)]
    row = {"bytes": size, "way": best, "ours": medians[best], "fio": medians["fio"], "ratio": statistics.median(ratios)}
    if count == 1:
        pairs = zip(found[ways[0]], found["tail"], strict=True)
        row["tail"] = statistics.median((size + TAIL) / size * whole / tailed for whole, tailed in pairs)
        row["written_tail"] = written_tail(path.with_name("waywiser-written"), size, turns)
    return row


def show(row: dict[str, object]) -> None:
    mine, theirs = float(row["ours"]), float(row["fio"])
    tail = f"  tail: {row['tail']:.3f}, written {row['written_tail']:.3f}" if "tail" in row else ""
    rates = f"{mine / 1e6:9.1f} {theirs / 1e6:9.1f} MB/s  {row['ratio']:.3f}"
    print(f"{row['bytes']:>9} {rates}  {row['way']}{tail}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--sizes", type=int, nargs="*", default=[SMALL, *SIZES], metavar="BYTES")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if shutil.which("fio") is None:
        print("files_beside_fio: fio is not installed: apt install fio", file=sys.stderr)
        return 2
    if shutil.disk_usage(asked.folder).free < 4 * FILE_BYTES:
        print(f"files_beside_fio: {asked.folder}: less than 2 GiB are free", file=sys.stderr)
        return 2
    path, rows = asked.folder / "waywiser-beside-fio", []
    try:
        with ww.File(path, "w") as file:
            file.write(np.random.default_rng(0).integers(0, 256, FILE_BYTES, np.uint8))
        cases = [(size, PARTS if size == SMALL else 1) for size in asked.sizes]
        for size, count in cases:
            rows.append(rounds(path, size, count, asked.seconds, asked.rounds))
            show(rows[-1])
            if asked.json:  # row by row, so that an end from outside loses nothing
                asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    finally:
        path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
