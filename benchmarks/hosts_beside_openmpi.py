#!/usr/bin/env python3
"""Messages and collectives of host memory beside Open MPI, with its defaults and with `pml ucx`, in turns.

`hosts_beside_openmpi.py [--ranks 2,4,8] [--calls LIST] [--sizes LIST] [--rounds 7] [--before FOLDER] [--out FILE]`;
needs mpicc and mpirun. A round is one `waywiser bench` for each number of ranks, in which slices of all libraries take
turns. `--before` names the folder python/ of another build of Waywiser, which takes every second round of twice as
many. A row is worse if it takes more than 1.05 times the other's time and the middle halves of the rounds do not
overlap. What is worse is timed again, by as many rounds, and fails if it is worse again. Exit code 1: a row fails.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PEERS = ("openmpi", "openmpi+ucx")  # both by `--against openmpi`
PAIRS, COLLECTIVES = ("latency", "bandwidth"), ("all_reduce", "broadcast")
SIZES = [8 << bits for bits in range(18)] + [4 << 20, 16 << 20]
WORSE, LIMIT_SECONDS = 1.05, 120
NOW, BEFORE = "now", "before"
Case = tuple[int, str, int]  # ranks, operation, bytes
Times = dict[str, dict[Case, dict[str, list[float]]]]  # build -> case -> library -> us of each round


def bench(package: Path, ranks: int, operations: Sequence[str], sizes: Sequence[int], budget: float) -> list[dict]:
    words = ["bench", *operations, "-n", str(ranks), "--sizes", ",".join(map(str, sizes))]
    words += ["--against", "openmpi", "--budget", str(budget), "--json"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-m", "waywiser", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    if done.returncode != 0:
        raise SystemExit(f"bench of {ranks} ranks ended with {done.returncode}: {done.stderr[-2000:]}")
    said = json.loads(done.stdout)
    if said["left_out"]:
        raise SystemExit(f"bench of {ranks} ranks has left out: {said['left_out']}")
    return said["rows"]


def round_of(times: Times, build: str, package: Path, cases: Iterable[Case], budget: float) -> None:
    """Times the cases of each number of ranks, and notes them; `budget`: seconds for a hundred of them."""
    wanted = set(cases)
    for ranks in sorted({case[0] for case in wanted}):
        here = [case for case in wanted if case[0] == ranks]
        operations = [one for one in (*PAIRS, *COLLECTIVES) if any(case[1] == one for case in here)]
        sizes = sorted({case[2] for case in here})
        for row in bench(package, ranks, operations, sizes, budget * len(operations) * len(sizes) / 100):
            case = (ranks, row["operation"], row["bytes"])
            if case in wanted:
                for library, us in {"ours": row["us"], **row["peers"]}.items():
                    times[build].setdefault(case, {}).setdefault(library, []).append(us)


def rounds_of(packages: Mapping[str, Path], rounds: int, cases: Iterable[Case], budget: float) -> Times:
    times: Times = {build: {} for build in packages}
    for turn in range(rounds):
        for build in list(packages)[:: 1 if turn % 2 == 0 else -1]:
            round_of(times, build, packages[build], cases, budget)
    return times


def quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return low, middle, high


def digits(ratio: float) -> float:
    return float(f"{ratio:.3g}")


def rows_of(times: Times) -> list[dict]:
    """One row for each case and peer, of the newest build; `before`: that of the other build in its own rounds."""
    rows = []
    for case, libraries in times[NOW].items():
        for peer in PEERS:
            ours, theirs = quartiles(libraries["ours"]), quartiles(libraries[peer])
            row = {"ranks": case[0], "call": case[1], "bytes": case[2], "peer": peer, "ours": ours, "theirs": theirs}
            row |= {"ratio": digits(ours[1] / theirs[1]), "worse": ours[1] > WORSE * theirs[1] and ours[0] > theirs[2]}
            if BEFORE in times:
                old = times[BEFORE][case]
                row["before"] = digits(statistics.median(old["ours"]) / statistics.median(old[peer]))
                row["beside_before"] = digits(ours[1] / statistics.median(old["ours"]))
            rows.append(row)
    return rows


def mean_of(rows: Sequence[dict], name: str) -> float:
    return math.exp(statistics.fmean(math.log(row[name]) for row in rows))


def case_of(row: Mapping) -> tuple[Case, str]:
    return (row["ranks"], row["call"], row["bytes"]), row["peer"]


def save(asked: argparse.Namespace, rows: Sequence[dict], again: Sequence[dict]) -> None:
    if asked.out:
        about = {"benchmark": "hosts_beside_openmpi", "unit": "us: lower quartile, median, upper quartile"}
        found = {**about, "rounds": asked.rounds, "geometric_mean": round(mean_of(rows, "ratio"), 4)}
        failed = sum(row["worse"] for row in again)
        asked.out.write_text(json.dumps({**found, "failed": failed, "rows": rows, "again": again}, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--calls", default=",".join((*PAIRS, *COLLECTIVES)), help="of two ranks; collectives of more")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--budget", type=float, default=9.0, help="seconds for a hundred cases of a round")
    parser.add_argument("--before", type=Path)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.rounds < 2:
        parser.error("--rounds: 2 at least")
    packages = {NOW: Path(__file__).resolve().parents[1] / "python"}
    if asked.before:
        packages[BEFORE] = asked.before.resolve()
    cases = [
        (ranks, operation, size)
        for ranks in map(int, asked.ranks.split(","))
        for operation in asked.calls.split(",")
        if ranks == 2 or operation in COLLECTIVES
        for size in map(int, asked.sizes.split(","))
    ]
    rows = rows_of(rounds_of(packages, asked.rounds, cases, asked.budget))
    for row in rows:
        old = f" {row['before']:6} {row['beside_before']:6}" if "before" in row else ""
        print(f"{row['ranks']} {row['call']:11} {row['bytes']:>9} {row['peer']:12} {row['ours'][1]:10.3f} "
              f"{row['theirs'][1]:10.3f} {row['ratio']:6}{old}{'  worse' if row['worse'] else ''}")  # fmt: skip
    old = f", before {mean_of(rows, 'before'):.3f}" if asked.before else ""
    print(f"geometric mean {mean_of(rows, 'ratio'):.3f}{old} over {len(rows)} rows", flush=True)
    save(asked, rows, [])
    worse = {case_of(row) for row in rows if row["worse"]}
    again: list[dict] = []
    if worse:
        again = rows_of(rounds_of({NOW: packages[NOW]}, asked.rounds, {case for case, _ in worse}, asked.budget))
        again = [row for row in again if case_of(row) in worse]
    failed = sum(row["worse"] for row in again)
    for row in again:
        print(f"again: {row['ranks']} {row['call']} {row['bytes']} {row['peer']}: {row['ratio']}"
              f"{'  fails' if row['worse'] else ''}")  # fmt: skip
    print(f"{len(worse)} rows worse once, {failed} twice, {asked.rounds} rounds in turns")
    save(asked, rows, again)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
