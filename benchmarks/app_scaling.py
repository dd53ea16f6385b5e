#!/usr/bin/env python3
"""Strong scaling of the programs of apps/: measured on this host, simulated on clusters, and drawn.

app_scaling.py measure --ranks 1,2     # mpirun starts build/apps/NAME_mpi; into results/apps-host.json
app_scaling.py simulate                # build/benchmarks/halo_simulation; into results/apps-simulated.json
app_scaling.py draw                    # docs/images/app_NAME.png of both
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, IMAGES = ROOT / "benchmarks/results", ROOT / "docs/images"
MEASURED, SIMULATED = RESULTS / "apps-host.json", RESULTS / "apps-simulated.json"
# What a host of two cores computes in seconds: the sizes of the programs where that is possible.
SIZES = {
    "jacobi": ["--size", "2048", "--steps", "20"],
    "conjugate_gradient": ["--size", "32", "--steps", "20"],
    "wilson_dslash": ["--size", "16x16x16x16", "--type", "float32", "--steps", "4"],
    "convolution": ["--size", "256", "--steps", "2"],
}
CLUSTERS = {"lassen": 8, "dgx-a100": 32}
COLOURS = {"whole_field": "tab:red", "per_neighbor": "tab:blue", "packed": "tab:green", "automatic": "black",
           "mpi": "tab:orange"}  # fmt: skip


def lines(command: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=3600)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def measure(names: list[str], ranks: list[int], rounds: int) -> None:
    mpirun = [str(Path(sys.executable).with_name("mpirun")), "--oversubscribe"]
    mpirun += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    kept = json.loads(MEASURED.read_text())["runs"] if MEASURED.exists() else []
    rows = [run for run in kept if run["app"] not in names]
    for name in names:
        for count in ranks:
            program = str(ROOT / f"build/apps/{name}_mpi")
            found = lines(
                [*mpirun, "-n", str(count), program, *SIZES[name], "--rounds", str(rounds), "--format", "json"]
            )
            load = os.getloadavg()[0]
            rows += [{"app": name, "rounds": rounds, "load": load, **each} for each in found]
            print(name, count, "ranks:", [f"{row['way']} {1e6 * row['seconds']:.0f} us" for row in found[0]["rows"]])
    host = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    MEASURED.write_text(json.dumps({"kind": "measured", "host": host, "runs": rows}, indent=1) + "\n")


def simulate() -> None:
    rows = []
    for machine, nodes in CLUSTERS.items():
        rows += lines([str(ROOT / "build/benchmarks/halo_simulation"), machine, str(nodes)])
    SIMULATED.write_text(json.dumps({"kind": "simulated", "runs": rows}, indent=1) + "\n")


def draw_measured(axes: Any, runs: list[dict[str, Any]]) -> None:
    title = runs[-1]["title"].split(": ", 1)[1].split(", boxes")[0]
    points: dict[str, dict[int, float]] = {}
    for run in runs:
        if run["title"].split(": ", 1)[1].split(", boxes")[0] != title:
            continue
        for row in run["rows"]:
            points.setdefault(row["way"].split(" ")[0], {})[run["ranks"]] = row["seconds"]
    for way, times in points.items():
        axes.plot(list(times), [1e3 * value for value in times.values()], "o-", color=COLOURS[way], label=way)
    load = max(run["load"] for run in runs)
    busy = f", load {load:.0f}" if load > 2 * max(run["ranks"] for run in runs) else ""
    axes.set_title(f"measured on a host{busy}\n{title}", fontsize=9)
    axes.set(xlabel="ranks", ylabel="ms a step", ylim=(0, None))
    axes.set_xticks(sorted({run["ranks"] for run in runs}))
    axes.legend(fontsize=8)


def draw_simulated(axes: Any, runs: list[dict[str, Any]], machine: str) -> None:
    size = runs[0]["app"]
    for variant in ("whole_field", "per_neighbor", "packed"):
        of_variant = [run for run in runs if run["variant"] == variant and run["app"] == size]
        gpus = [run["gpus"] for run in of_variant]
        times = [1e6 * (run["compute"] + run["exchange"] + run["reduction"]) for run in of_variant]
        axes.plot(
            gpus,
            times,
            "o-",
            ms=3,
            color=COLOURS[variant],
            label=variant,
            lw=4 if variant == "per_neighbor" else 1.5,
            alpha=0.4 if variant == "per_neighbor" else 1,
        )
        if variant == "packed":
            axes.plot(gpus, [times[0] / count for count in gpus], ":", color="grey", label="ideal")
            axes.plot(gpus, [1e6 * run["compute"] for run in of_variant], "--", color="grey", label="computation alone")
    axes.set_title(f"simulated: {machine}\n{size.split(' ', 1)[1]}", fontsize=9)
    axes.set(xlabel="GPUs", ylabel="us a step", xscale="log", yscale="log")
    axes.set_xticks(gpus, [str(count) for count in gpus], fontsize=7)
    axes.minorticks_off()
    axes.legend(fontsize=8)


def draw() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    measured, simulated = json.loads(MEASURED.read_text())["runs"], json.loads(SIMULATED.read_text())["runs"]
    for name in SIZES:
        sizes = sorted({run["app"] for run in simulated if run["app"].split(" ")[0] == name})
        panels = [(size, machine) for size in sizes for machine in CLUSTERS]
        rows = -(-(1 + len(panels)) // 3)
        figure, grid = plt.subplots(rows, 3, figsize=(13, 3.8 * rows), layout="constrained")
        axes = list(grid.flat)
        for unused in axes[1 + len(panels) :]:
            unused.remove()
        draw_measured(axes[0], [run for run in measured if run["app"] == name])
        for each, (size, machine) in zip(axes[1:], panels, strict=False):
            chosen = [run for run in simulated if run["app"] == size and run["machine"] == machine]
            draw_simulated(each, chosen, machine)
        figure.savefig(IMAGES / f"app_{name}.png", dpi=100)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "simulate", "draw"])
    parser.add_argument("--apps", default=",".join(SIZES), help="for measure: these; what is known of others is kept")
    parser.add_argument("--ranks", default="1,2", help="for measure")
    parser.add_argument("--rounds", type=int, default=5, help="for measure: how often each way is timed")
    arguments = parser.parse_args()
    if arguments.what == "measure":
        measure(arguments.apps.split(","), [int(word) for word in arguments.ranks.split(",")], arguments.rounds)
    elif arguments.what == "simulate":
        simulate()
    else:
        draw()


if __name__ == "__main__":
    main()
