#!/usr/bin/env python3
"""What a tail that is no whole block costs in reads from the device: the time of one read with 1001 bytes more, and of
many at once that end within a block, over that of whole blocks, in pairs. `file_tails.py FOLDER [--rounds N]
[--json FILE]`.
"""

from __future__ import annotations

import argparse
import json
import mmap
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import waywiser as ww

WAYS = ("direct", "io_uring")
FILE_BYTES, TAIL, BLOCK, PARTS = 256 << 20, 1001, 4096, 256
ONE, MANY = (16 << 10, 64 << 10, 256 << 10, 1 << 20), (7 << 10, 15 << 10)


def aligned(nbytes: int) -> np.ndarray:
    """Whole pages that are there: nothing but a tail is copied."""
    memory = np.frombuffer(mmap.mmap(-1, nbytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
    memory[:] = 1
    return memory


def ratio(file: ww.File, size: int, whole: int, count: int, pairs: int) -> float:
    """The median of the times of `size` over those of `whole`, next to each other."""
    draw, room = np.random.default_rng(size), -(-size // BLOCK) * BLOCK
    memory, ratios = aligned(room * count).reshape(count, room), []
    for turn in range(pairs):
        took = {}
        for nbytes in (size, whole) if turn % 2 else (whole, size):
            offsets = (draw.integers(0, (FILE_BYTES - room) // BLOCK + 1, count) * BLOCK).tolist()
            parts = [(offset, part[:nbytes]) for offset, part in zip(offsets, memory, strict=True)]
            file._core.drop_cache()
            begin = time.perf_counter()
            file.read_many(parts)
            took[nbytes] = time.perf_counter() - begin
        ratios.append(took[size] / took[whole])
    return statistics.median(ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    path = asked.folder / "waywiser-tails"
    cases = [(size + TAIL, size, 1) for size in ONE] + [(size, -(-size // BLOCK) * BLOCK, PARTS) for size in MANY]
    found: dict[tuple[str, int, int], list[float]] = {}
    try:
        with ww.File(path, "w", way="buffered") as made:
            made.write(np.random.default_rng(0).integers(0, 256, FILE_BYTES, np.uint8))
        files = {way: ww.File(path, way=way) for way in WAYS}
        for _ in range(asked.rounds):
            for way, file in files.items():
                for size, whole, count in cases:
                    pairs = max(4, (1 << 20) // (size * count) * 4)
                    found.setdefault((way, size, count), []).append(ratio(file, size, whole, count, min(pairs, 40)))
    finally:
        path.unlink(missing_ok=True)
    rows = [
        {"way": way, "bytes": size, "at_once": count, "ratio": statistics.median(of), "rounds": of}
        for (way, size, count), of in found.items()
    ]
    for row in rows:
        print(f"{row['way']:<10}{row['bytes']:>9} bytes, {row['at_once']:>3} at once  {row['ratio']:.3f}")
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
