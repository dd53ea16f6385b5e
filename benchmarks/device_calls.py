"""On a machine with two GPUs: calls inside kernels, over Waywiser and over NVSHMEM in turns, from one source.

`python benchmarks/device_calls.py --programs FOLDER [--rounds 7] [--out FILE]`; FOLDER has `device_calls` and
`device_calls_nvshmem` (target waywiser_versus). A row is worse if it takes more than 1.05 times NVSHMEM's time and the
middle halves of the rounds do not overlap. Times in us, of half a round where calls go to and fro. Exit code 1: a row
is worse, or the geometric mean of all ratios is above 1.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OURS, NVSHMEM = "device_calls", "device_calls_nvshmem"
WORSE, LIMIT_SECONDS = 1.05, 120
Row = tuple[str, int, int]  # call, bytes, threads


def run(program: Path, folder: Path) -> dict[Row, float]:
    environment = {
        **os.environ,
        "DEVICE_CALLS_MEET": str(folder / "meet"),
        "NVSHMEM_SYMMETRIC_SIZE": "4G",
        "NVSHMEM_DISABLE_NVLS": "1",  # no multicast
        "NVSHMEM_REMOTE_TRANSPORT": "none",
    }
    command = [sys.executable, "-m", "waywiser", "run", "-n", "2", str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    if done.returncode != 0:
        raise SystemExit(f"{program.name} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-2000:]}")
    rows = [line.split() for line in done.stdout.splitlines() if len(line.split()) == 4]
    if not rows:
        raise SystemExit(f"{program.name} has timed nothing: {done.stdout[-500:]}")
    return {(name, int(size), int(threads)): float(us) for name, size, threads, us in rows}


def quartiles(times: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return low, middle, high


def compared(times: dict[str, dict[Row, list[float]]]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for row in times[OURS]:
        ours, theirs = quartiles(times[OURS][row]), quartiles(times[NVSHMEM][row])
        ratio = ours[1] / theirs[1]
        worse = ratio > WORSE and ours[0] > theirs[2]
        call, size, threads = row
        found.append({"call": call, "bytes": size, "threads": threads, "ours": ours, "nvshmem": theirs,
                      "ratio": round(ratio, 3), "worse": worse})  # fmt: skip
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.rounds < 2:
        parser.error("--rounds: 2 at least")
    times: dict[str, dict[Row, list[float]]] = {OURS: {}, NVSHMEM: {}}
    for turn in range(asked.rounds):
        for name in (OURS, NVSHMEM) if turn % 2 == 0 else (NVSHMEM, OURS):
            with tempfile.TemporaryDirectory() as folder:
                for row, us in run(asked.programs / name, Path(folder)).items():
                    times[name].setdefault(row, []).append(us)
    if times[OURS].keys() != times[NVSHMEM].keys():
        raise SystemExit(f"unlike rows: {sorted(times[OURS].keys() ^ times[NVSHMEM].keys())}")
    rows = compared(times)
    for row in rows:
        ours, theirs = row["ours"], row["nvshmem"]
        assert isinstance(ours, tuple) and isinstance(theirs, tuple)
        note = "  worse" if row["worse"] else ""
        size, threads = row["bytes"], row["threads"]
        print(f"{row['call']:17} {size:>10} {threads:>5} {ours[1]:10.3f} {theirs[1]:10.3f} {row['ratio']:7}{note}")
    mean = math.exp(statistics.fmean(math.log(float(str(row["ratio"]))) for row in rows))
    worse = sum(bool(row["worse"]) for row in rows)
    print(f"geometric mean {mean:.3f} over {len(rows)} rows, {worse} worse, {asked.rounds} rounds in turns")
    if asked.out:
        about = {"benchmark": "device_calls", "unit": "us: lower quartile, median, upper quartile"}
        found = {**about, "rounds": asked.rounds, "geometric_mean": round(mean, 4), "worse": worse, "rows": rows}
        asked.out.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if worse or mean > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
