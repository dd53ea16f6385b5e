#!/usr/bin/env python3
"""Strong scaling of the programs of apps/: measured on two GPUs and on this host, simulated on clusters, and drawn.

app_scaling.py measure --ranks 1,2     # mpirun starts build/apps/NAME_mpi; into results/apps-host.json
app_scaling.py simulate                # build/benchmarks/halo_simulation; into results/apps-simulated.json
app_scaling.py draw                    # docs/images/app_NAME.png: these, and what was measured on two GPUs
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
H200, H100 = RESULTS / "apps-2xh200.jsonl", RESULTS / "navier-stokes-2xh100.jsonl"  # of scripts/gpu_test.sh halo
# What a host of two cores computes in seconds: the sizes of the programs where that is possible.
SIZES = {
    "jacobi": ["--size", "2048", "--steps", "20"],
    "conjugate_gradient": ["--size", "32", "--steps", "20"],
    "wilson_dslash": ["--size", "16x16x16x16", "--type", "float32", "--steps", "4"],
    "convolution": ["--size", "256", "--steps", "2"],
}
CHANGED = ("fused",)  # its newest figures are in docs/lab/gpu-halo.md
CLUSTERS = {"lassen": 8, "dgx-a100": 32}
COLOURS = {"whole_field": "tab:red", "per_neighbor": "tab:blue", "packed": "tab:green", "automatic": "black",
           "mpi": "tab:orange", "nccl": "tab:olive", "direct": "tab:purple", "direct_packed": "tab:pink",
           "strided": "tab:brown", "batched": "tab:cyan", "gpu_aware": "gold"}  # fmt: skip
PROGRAMS = [*SIZES, "navier_stokes"]
Points = dict[str, dict[int, float]]  # seconds of a step by way and ranks


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


def points_of(record: dict[str, Any]) -> tuple[str, Points]:
    """What a run on GPUs computed, and its times."""
    result = record["result"]
    if "rows" in result:
        title = (
            result["title"].split(": ", 1)[1].split(", boxes")[0].replace("1 images of ", "").split(", 16 filters")[0]
        )
        return title, {
            row["way"].split(" ")[0]: {result["ranks"]: row["seconds"]}
            for row in result["rows"]
            if row["way"] not in CHANGED
        }
    way = record["run"].split("--exchange ")[1].split(" ")[0] if "--exchange" in record["run"] else "auto"
    title = f"{result['case']}, {result['cells'] / 1e6:.1f} million cells"
    return title, {way.replace("auto", "automatic"): {result["ranks"]: result["median_seconds_per_step"]}}


def measured_on_gpus(name: str) -> dict[str, Points]:
    """The newest times of each size. Those of a program that has changed since are marked."""
    file = H100 if name == "navier_stokes" else H200
    records = [json.loads(line) for line in file.read_text().splitlines()]
    records = [{"program": "now", **record} for record in records if "--whole-level" not in record["run"]]
    found: dict[str, Points] = {}
    for age in ("before", "now"):
        fresh: dict[str, Points] = {}
        mark = " (the program of before)" if age == "before" else ""
        for record in records:
            if record["program"] == age and record["run"].startswith(name + "_cuda") and record.get("result"):
                title, points = points_of(record)
                for way, times in points.items():
                    fresh.setdefault(title + mark, {}).setdefault(way, {}).update(times)
        found = {title: points for title, points in found.items() if title.split(" (the program")[0] not in fresh}
        found.update(fresh)
    return dict(sorted(found.items(), key=lambda each: max(each[1]["automatic"].values())))


def draw_on_gpus(axes: Any, title: str, points: Points, gpu: str) -> None:
    from matplotlib.ticker import LogLocator

    counts = sorted({count for times in points.values() for count in times})
    least = min(value for times in points.values() for value in times.values())
    most = max(value for times in points.values() for value in times.values())
    unit, scale = ("ms", 1e3) if least > 1e-3 else ("us", 1e6)
    for way, times in sorted(points.items(), key=lambda each: -max(each[1].values())):
        at = sorted(times)
        axes.plot(at, [scale * times[count] for count in at], "o-", ms=4, color=COLOURS[way], label=way)
    alone = points.get("automatic", {}).get(1)
    if alone is not None:
        axes.plot(counts, [scale * alone / count for count in counts], ":", color="grey", label="ideal")
    axes.set_title(f"measured: {gpu}\n{title}", fontsize=9)
    axes.set(xlabel="GPUs", ylabel=f"{unit} a step", xlim=(0.8, 2.2))
    if most > 4 * least:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    else:
        axes.set_ylim(0, None)
    axes.set_xticks([1, 2], ["1" if 1 in counts else "1 (not measured)", "2"])
    axes.legend(fontsize=7)


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
    axes.set_title(f"measured on a host\n{title}", fontsize=9)
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
    for name in PROGRAMS:
        on_gpus = measured_on_gpus(name)
        # What was measured on a busy host is chance.
        on_host = [run for run in measured if run["app"] == name and run["load"] <= 2 * run["ranks"]]
        sizes = sorted({run["app"] for run in simulated if run["app"].split(" ")[0] == name})
        panels = [(size, machine) for size in sizes for machine in CLUSTERS]
        count = len(on_gpus) + bool(on_host) + len(panels)
        rows = -(-count // 3)
        figure, grid = plt.subplots(rows, 3, figsize=(13, 3.8 * rows), layout="constrained")
        axes = list(grid.flat)
        for unused in axes[count:]:
            unused.remove()
        for each, (title, points) in zip(axes, on_gpus.items(), strict=False):
            draw_on_gpus(each, title, points, "H100" if name == "navier_stokes" else "H200")
        for each, (size, machine) in zip(axes[len(on_gpus) :], panels, strict=False):
            chosen = [run for run in simulated if run["app"] == size and run["machine"] == machine]
            draw_simulated(each, chosen, machine)
        if on_host:
            draw_measured(axes[count - 1], on_host)
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
