#!/usr/bin/env python3
"""Strong scaling of the programs of apps/: simulated on clusters and drawn; measured on two GPUs, in tables.

app_scaling.py simulate     # build/benchmarks/halo_simulation; into results/apps-simulated.json
app_scaling.py draw         # docs/images/app_NAME.png, of what was simulated alone
app_scaling.py tables       # docs/apps/NAME.md: what was measured on one GPU and on two; README.md there: ways to
                            # communicate on clusters, simulated, and the lines of code of the conjugate gradients
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS, IMAGES = ROOT / "benchmarks/results", ROOT / "docs/images"
SIMULATED = RESULTS / "apps-simulated.json"
H200 = RESULTS / "apps-2xh200.jsonl"  # of scripts/gpu_test.sh halo
MEASURED = ("jacobi", "conjugate_gradient", "wilson_dslash", "convolution")  # navier_stokes has tables of its own
CHANGED = ("fused",)  # its newest figures are in docs/lab/gpu-halo.md
BEFORE = " (before)"  # marks a program that has changed since it was measured
WAYS = (
    "whole_field",
    "per_neighbor",
    "packed",
    "strided",
    "direct",
    "automatic",
    "nccl",
)
CLUSTERS = {"lassen": 8, "dgx-a100": 32}  # nodes
GPUS = {"lassen": "4 V100 a node", "dgx-a100": "8 A100 a node"}
MPI_WAYS = ("host_staged", "blocking", "gpu_aware")
OUR_WAYS = ("direct", "fused")
SHOWN_GPUS = {"lassen": (32,), "dgx-a100": (32, 256)}
CODE = {  # a version of the conjugate gradients: its own files, and those by which it communicates
    "on the halo exchange": (("conjugate_gradient/conjugate_gradient.hpp",), ()),
    "the same, tuned by hand": (("conjugate_gradient/optimised.hpp",), ()),
    "tuned by hand, on plain MPI": (("conjugate_gradient/optimised.hpp",), ("mpi_halo.hpp",)),
    "tuned by hand, on NCCL": (("conjugate_gradient/optimised.hpp",), ("nccl_halo.hpp",)),
    "tuned by hand, fused": (
        ("conjugate_gradient/optimised.hpp",),
        ("fused.hpp", "fused_step.hpp", "fused_heap.hpp"),
    ),
}
BEGIN, END = "<!-- begin: app_scaling.py tables -->\n", "<!-- end -->\n"
COMPUTATION = "computation alone"
COLOURS = {"whole_field": "tab:red", "packed": "tab:green", "per_neighbor": "tab:blue", COMPUTATION: "tab:grey"}
PROGRAMS = [*MEASURED, "navier_stokes"]
Points = dict[str, dict[int, float]]  # seconds of a step by way and ranks


def lines(command: list[str]) -> list[dict[str, Any]]:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=3600)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def simulate() -> None:
    rows = []
    for machine, nodes in CLUSTERS.items():
        rows += lines([str(ROOT / "build/benchmarks/halo_simulation"), machine, str(nodes)])
    kept = {"runs": [row for row in rows if "variant" in row], "ways": [row for row in rows if "way" in row]}
    SIMULATED.write_text(json.dumps({"kind": "simulated", **kept}, indent=1) + "\n")


def measured_on_gpus(name: str) -> dict[str, Points]:
    """The newest times of each size. Those of a program that has changed since are marked."""
    records = [json.loads(line) for line in H200.read_text().splitlines()]
    found: dict[str, Points] = {}
    for age in ("before", "now"):
        fresh: dict[str, Points] = {}
        mark = BEFORE if age == "before" else ""
        for record in records:
            if record["program"] == age and record["run"].startswith(name + "_cuda") and record.get("result"):
                result = record["result"]
                title = result["title"].split(": ", 1)[1].split(", boxes")[0]
                title = title.replace("1 images of ", "").split(", 16 filters")[0]
                for row in result["rows"]:
                    if row["way"] not in CHANGED:
                        times = fresh.setdefault(title + mark, {}).setdefault(row["way"].split(" ")[0], {})
                        times[result["ranks"]] = row["seconds"]
        found = {title: points for title, points in found.items() if title.removesuffix(BEFORE) not in fresh}
        found.update(fresh)
    return dict(sorted(found.items(), key=lambda each: max(each[1]["automatic"].values())))


def table(name: str) -> str:
    """What was measured on one GPU and on two, µs a step: too few points for a picture."""
    found = measured_on_gpus(name)
    ways = [way for way in WAYS if any(way in points for points in found.values())]
    rows = ["| µs a step | one GPU | " + " | ".join(way.replace("nccl", "NCCL") for way in ways) + " |"]
    rows.append("|---" * (2 + len(ways)) + "|")
    for title, points in found.items():
        times = [points["automatic"].get(1), *(points.get(way, {}).get(2) for way in ways)]
        rows.append(f"| {title} | " + " | ".join("-" if t is None else number(1e6 * t) for t in times) + " |")
    return "\n".join(rows) + "\n"


def number(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{float(f'{value:.3g}'):,g}"


def ways_table() -> str:
    """µs a step by the way to communicate, simulated."""
    ways = (*MPI_WAYS, *OUR_WAYS)
    found: dict[tuple[str, str, int], dict[str, float]] = {}
    for row in json.loads(SIMULATED.read_text())["ways"]:
        if row["gpus"] in SHOWN_GPUS[row["machine"]]:
            seconds = row["compute"] + row["exposed"] + row["reduction"]
            found.setdefault((row["app"], row["machine"], row["gpus"]), {})[row["way"]] = 1e6 * seconds
    rows = [
        "| simulated, µs a step | GPUs | " + " | ".join(f"`{way}`" for way in ways) + " | blocking, gpu_aware / fused |"
    ]
    rows.append("|---" * (3 + len(ways)) + "|")
    for (app, machine, gpus), times in sorted(found.items()):
        cells = [
            *(number(times[way]) for way in ways),
            ", ".join(f"{times[way] / times['fused']:.2f}" for way in ("blocking", "gpu_aware")),
        ]
        rows.append(f"| {app} | {gpus} of `{machine}` | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def code_lines(files: Sequence[str]) -> int:
    """Without comments and empty lines."""
    texts = [line.strip() for file in files for line in (ROOT / "apps" / file).read_text().splitlines()]
    return sum(bool(text) and not text.startswith("//") for text in texts)


def code_table() -> str:
    rows = ["| Conjugate gradients | lines of its own | and for its communication |", "|---|---|---|"]
    for version, (own, communicating) in CODE.items():
        rows.append(f"| {version} | {code_lines(own)} | {code_lines(communicating)} |")
    return "\n".join(rows) + "\n"


def page_with(name: str, page: str) -> str:
    """The page of a program with its table between the marks; README: the table of ways, and that of lines of code."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not end:
        raise SystemExit(f"docs/apps/{name}.md has no lines {BEGIN.strip()} and {END.strip()}")
    made = f"{ways_table()}\n{code_table()}" if name == "README" else table(name)
    return head + begin + made + end + tail


def lines_of(runs: list[dict[str, Any]]) -> Points:
    """µs a step by GPUs, of at most five lines. `per_neighbor` is left out where it is within 3 % of `packed`."""
    by_variant: Points = {}
    for run in runs:
        by_variant.setdefault(run["variant"], {})[run["gpus"]] = 1e6 * (
            run["compute"] + run["exchange"] + run["reduction"]
        )
    packed, single = by_variant["packed"], by_variant.pop("per_neighbor")
    alike = all(abs(single[gpus] / packed[gpus] - 1) < 0.03 for gpus in packed)
    found = {"whole_field": by_variant["whole_field"]}
    found |= {"packed, per_neighbor": packed} if alike else {"packed": packed, "per_neighbor": single}
    found[COMPUTATION] = {run["gpus"]: 1e6 * run["compute"] for run in runs if run["variant"] == "packed"}
    return found


def draw_simulated(axes: Any, curves: Points, title: str) -> None:
    """A panel; a picture whose lines have fewer than three points, or of more than five lines, is refused."""
    if len(curves) > 5 or any(len(points) < 3 for points in curves.values()):
        raise ValueError(f"{title}: a picture has at most five lines, of at least three points each")
    for label, points in curves.items():
        style = "--" if label == COMPUTATION else "o-"
        axes.plot(list(points), list(points.values()), style, color=COLOURS[label.split(",")[0]], ms=4, label=label)
    gpus = list(next(iter(curves.values())))
    axes.set_title(title, fontsize=10)
    axes.set(xlabel="GPUs", ylabel="µs a step", xscale="log", yscale="log")
    axes.set_xticks(gpus, [str(count) for count in gpus])
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize=9)


def picture(name: str) -> Any:
    """The figure of a program: a row for each size, a panel for each cluster. Nothing of it is measured."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    simulated = [run for run in json.loads(SIMULATED.read_text())["runs"] if run["app"].split(" ")[0] == name]
    sizes = sorted({run["app"] for run in simulated})
    figure, grid = plt.subplots(
        len(sizes), len(CLUSTERS), figsize=(10, 0.5 + 3.8 * len(sizes)), layout="constrained", squeeze=False
    )
    for row, size in zip(grid, sizes, strict=True):
        for axes, machine in zip(row, CLUSTERS, strict=True):
            chosen = [run for run in simulated if run["app"] == size and run["machine"] == machine]
            draw_simulated(axes, lines_of(chosen), f"{size.split(' ', 1)[1]}\nsimulated: {machine}, {GPUS[machine]}")
    figure.suptitle(f"{name}: SIMULATED, not a measurement", fontsize=11)
    return figure


def draw() -> None:
    import matplotlib.pyplot as plt

    for name in PROGRAMS:
        figure = picture(name)
        figure.savefig(IMAGES / f"app_{name}.png", dpi=100)
        plt.close(figure)


def write_tables() -> None:
    for name in (*MEASURED, "README"):
        page = ROOT / f"docs/apps/{name}.md"
        page.write_text(page_with(name, page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "draw", "tables"])
    {"simulate": simulate, "draw": draw, "tables": write_tables}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
