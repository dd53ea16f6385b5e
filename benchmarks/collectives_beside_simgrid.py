"""All-reduces by the same schedules in this simulator and in SimGrid, by its plain and calibrated models, in one run.

Needs SimGrid with its C++ headers (Debian: libsimgrid-dev), a C++ compiler, and waywiser in this interpreter.
Run: python3 benchmarks/collectives_beside_simgrid.py [--json FILE]. SIMGRID=FOLDER: where it lies, if not in /usr.

A rank is a node with one GPU and one port, all at one switch. What a message between two of them takes in this
simulator (its latency and its rate, from two sizes) is what SimGrid's links are told; sums take no time in either. The
calibrated models then lengthen latencies and cut rates by their own factors, which were measured with TCP over Ethernet
(LV08) and MPI over Gigabit Ethernet (SMPI).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PLAIN = "model:CM02,TCP-gamma:0,bandwidth-factor:1,latency-factor:1,weight-S:0,crosstraffic:0"
MODELS = {"SimGrid, plain": PLAIN, "SimGrid, LV08": "model:LV08", "SimGrid, SMPI": "model:SMPI"}
ALGORITHMS = {"ring": "ring", "doubling": "recursive_doubling"}  # in simgrid_collectives.cc: in this simulator
CASES = (("ring", 64), ("ring", 256), ("doubling", 1024), ("doubling", 16384), ("doubling", 24576))
BYTES = 1 << 20
LIMIT_S = 300


def program(folder: str) -> list[str]:
    root = Path(os.environ.get("SIMGRID", "/usr"))
    folders = [one for one in (root / "lib/x86_64-linux-gnu", root / "lib") if any(one.glob("libsimgrid.so*"))]
    if not folders or not (root / "include/simgrid/s4u.hpp").exists():
        sys.exit(f"no SimGrid in {root}: install libsimgrid-dev, or set SIMGRID")
    made = f"{folder}/simgrid_collectives"
    libraries = folders[0]
    paths = [f"-I{root}/include", f"-L{libraries}", f"-Wl,-rpath,{libraries}", f"-Wl,-rpath-link,{libraries}"]
    source = str(HERE / "simgrid_collectives.cc")
    subprocess.run(["c++", "-std=c++17", "-O2", source, *paths, "-lsimgrid", "-o", made], check=True)
    os.environ["LD_LIBRARY_PATH"] = f"{libraries}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    return [made]


def ours(folder: str, algorithm: str, ranks: int, size: int) -> dict[str, float]:
    """A process of its own, for its CPU time; its start is part of that."""
    cluster = Path(folder) / f"{ranks}.yaml"
    cluster.write_text(f"nodes: {ranks} x one.json\nnetwork: switch\n")
    command = ["-m", "waywiser", "simulate", "all_reduce", "--cluster", str(cluster), "--sizes", str(size), "--json"]
    command += ["--algorithms", ALGORITHMS[algorithm], "--set", "gdr=on", "--set", "reduce.rate=1e18"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    (case,) = json.loads(done.stdout)["cases"]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": case["seconds"], "cpu_s": cpu, "messages": case["messages"]}


def theirs(command: list[str], model: str, algorithm: str, ranks: int, link: tuple[float, float]) -> dict[str, Any]:
    flags = [f"--cfg=network/{word}" for word in model.split(",")]
    flags += ["--cfg=contexts/stack-size:32", "--cfg=contexts/factory:raw", "--log=root.thres:error"]
    rate, latency = link
    words = [algorithm, str(ranks), str(BYTES), repr(rate), repr(latency)]
    try:
        done = subprocess.run([*command, *words, *flags], check=True, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"why_not": f"not done in {LIMIT_S} s"}
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where the result goes")
    file = parser.parse_args().json
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        command = program(folder)
        machine = f"{folder}/one.json"
        parts = ["--gpus", "1xH100", "--cpus", "1x8480C", "--nics", "1xCX7", "--name", "one", "--out", machine]
        subprocess.run([sys.executable, "-m", "waywiser", "machine", "new", *parts], check=True, capture_output=True)
        # One round of two ranks, at two sizes; what is left of the smaller one is a launch, which comes once.
        small, large = (ours(folder, "doubling", 2, size)["seconds"] for size in (8, 1 << 30))
        four = ours(folder, "doubling", 4, 8)["seconds"]
        link = ((1 << 30) / (large - small), four - small)
        launch = small - link[1]
        for algorithm, ranks in CASES:
            row: dict[str, Any] = {"algorithm": algorithm, "ranks": ranks, "bytes": BYTES}
            row["Waywiser"] = ours(folder, algorithm, ranks, BYTES)
            row["Waywiser"]["seconds"] -= launch
            for name, model in MODELS.items():
                row[name] = theirs(command, model, algorithm, ranks, link)
            rows.append(row)
            told = [
                f"{name}: " + (one.get("why_not") or f"{one['seconds'] * 1e6:.1f} us, {one['cpu_s']:.2f} s CPU")
                for name, one in row.items()
                if isinstance(one, dict)
            ]
            print(f"{algorithm}, {ranks} ranks: " + "; ".join(told), flush=True)
    if file:
        told = {"program": "benchmarks/collectives_beside_simgrid.py", "rate": link[0], "latency": link[1]}
        Path(file).write_text(json.dumps({**told, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
