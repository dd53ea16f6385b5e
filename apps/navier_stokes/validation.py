"""Flows whose solution is known, computed and compared; each check says what it found and what it accepts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import figures
import numpy as np
from measures import cavity_difference, history, orders, strouhal
from program import run
from vtu import last_frame

# The sizes of a check: quick ones, and those of the documentation.
CAVITY_CELLS = {False: {100: 64**2, 400: 96**2, 1000: 128**2}, True: {100: 32**2}}
CAVITY_TIME = {100: 20, 400: 40, 1000: 60}
GRIDS = {False: [16, 32, 64, 128], True: [16, 32, 64]}


@dataclass
class Validation:
    """How validations run: the program, ranks, where results and pictures go."""

    program: Path
    ranks: int
    results: Path
    images: Path
    quick: bool = False

    def case(self, name: str, **options: object) -> dict[str, Any]:
        """The report of a run whose results are kept in a folder of this name."""
        return run(self.program, self.ranks, output=self.results / name, **options)


@dataclass
class Finding:
    """One compared figure."""

    what: str
    found: float
    least: float
    most: float

    @property
    def good(self) -> bool:
        """Whether it is what was expected."""
        return self.least <= self.found <= self.most

    def __str__(self) -> str:
        mark = "ok    " if self.good else "FAILED"
        return f"{mark} {self.what}: {self.found:.4g} (expected {self.least:g} to {self.most:g})"


def cavity(on: Validation) -> list[Finding]:
    """Middle lines beside Ghia, Ghia and Shin (1982)."""
    frames, findings = {}, []
    for reynolds, cells in CAVITY_CELLS[on.quick].items():
        folder = f"cavity_{reynolds}"
        on.case(
            folder, case="cavity", cells=cells, reynolds=reynolds, time=CAVITY_TIME[reynolds], courant=0.7, steady=1e-4
        )
        frames[reynolds] = last_frame(on.results / folder)
        what = f"cavity, Re {reynolds}: greatest difference from Ghia et al."
        findings.append(Finding(what, cavity_difference(frames[reynolds], reynolds), 0, 0.02))
        figures.residuals(on.results / folder, on.images / f"{folder}_residual.png")
        figures.fields(on.results / folder, on.images / f"{folder}.png")
    figures.cavity(frames, on.images / "cavity_profiles.png")
    return findings


def in_space(
    on: Validation, case: str, cells: Callable[[int], int], most_order: float, **options: object
) -> list[Finding]:
    """The order of the error in the size of the cells, on three kinds of meshes."""
    curves, findings = {}, []
    for shape in ("even", "perturbed", "triangles"):
        sizes, errors = [], []
        for side in GRIDS[on.quick]:
            report = on.case(f"{case}_{shape}_{side}", case=case, shape=shape, cells=cells(side), **options)
            sizes.append(float(report["cells"]) ** -0.5)
            errors.append(float(report["velocity_error"]))
        curves[shape] = (sizes, errors)
        print(f"{case}, {shape}: errors {' '.join(f'{e:.3g}' for e in errors)},"
              f" orders {' '.join(f'{o:.2f}' for o in orders(sizes, errors))}", flush=True)  # fmt: skip
        findings.append(Finding(f"{case}, {shape}: order in space", orders(sizes, errors)[-1], 1.8, most_order))
    figures.convergence(
        curves, "1 / square root of cells", f"{case}: order in space",
        on.images / f"{case}_order.png", lambda size: f"1/{1 / size:.0f}",
    )  # fmt: skip
    return findings


def poiseuille(on: Validation) -> list[Finding]:
    """Flow between two walls, in its steady state."""
    return in_space(on, "poiseuille", lambda side: 2 * (side // 2) ** 2, 2.6, steady=1e-6, time=20)


def taylor_green(on: Validation) -> list[Finding]:
    """Decaying vortices: the order in space, and in time by the difference between step lengths on one mesh."""
    findings = in_space(on, "taylor_green", lambda side: side * side, 2.4, time=0.5)
    steps, errors = [0.1, 0.05, 0.025, 0.0125], []
    frames = []
    for step in [*steps, 0.00625]:
        name = f"taylor_green_step_{step}"
        on.case(name, case="taylor_green", cells=1024, step=step, time=1, tolerance=1e-10)
        frames.append(last_frame(on.results / name).velocity)
    errors = [float(((frame - frames[-1]) ** 2).mean() ** 0.5) for frame in frames[:-1]]
    differences = [float(((a - b) ** 2).mean() ** 0.5) for a, b in pairwise(frames)]
    found = orders(steps, differences)
    print(f"taylor_green: orders in time {' '.join(f'{o:.2f}' for o in found)}", flush=True)
    findings.append(Finding("taylor_green: order in time", found[-1], 1.8, 2.4))
    figures.convergence(
        {"1,024 cells": (steps, errors)}, "length of a step", "taylor_green: order in time",
        on.images / "taylor_green_time.png", lambda step: f"{step:g}",
    )  # fmt: skip
    return findings


def cylinder(on: Validation) -> list[Finding]:
    """Vortices behind a cylinder at Re 100: their frequency, and the mean drag."""
    on.case("cylinder", case="cylinder", record=5, courant=0.8, cells=4096 if on.quick else 9216, time=60)
    lines = history(on.results / "cylinder")
    late = lines["time"] > lines["time"][-1] * 0.6
    found = strouhal(lines["time"][late], lines["force_y"][late])
    figures.lift(on.results / "cylinder", on.images / "cylinder_lift.png", found)
    figures.fields(on.results / "cylinder", on.images / "cylinder.png", [-1.5, 8.5, -2.25, 2.25])
    drag = float(2 * lines["force_x"][late].mean())
    return [
        Finding("cylinder, Re 100: Strouhal number", found, 0.16, 0.17),
        Finding("cylinder, Re 100: mean drag coefficient", drag, 1.25, 1.45),
    ]


def bend(on: Validation) -> list[Finding]:
    """A bent pipe: what enters leaves, and the pressure falls along it; there is no reference to compare with."""
    report = on.case("bend", case="bend", cells=4000 if on.quick else 20000, time=4 if on.quick else 12)
    figures.fields(on.results / "bend", on.images / "bend.png")
    return [Finding("bend: greatest divergence", float(report["divergence"]), 0, 1e-2)]


def draft_tube(on: Validation) -> list[Finding]:
    """A draft tube: what enters leaves, and the flow gets slower and its pressure higher; no reference either."""
    report = on.case("draft_tube", case="draft_tube", cells=4000 if on.quick else 20000, time=4 if on.quick else 20)
    figures.fields(on.results / "draft_tube", on.images / "draft_tube.png")
    frame = last_frame(on.results / "draft_tube")
    centers = np.array([frame.points[cell].mean(axis=0) for cell in frame.cells])
    first, last = centers[:, 0] < 0.3, centers[:, 1] > centers[:, 1].max() - 0.3
    # At most the kinetic energy of the parabola at the inlet, 1, less a sixteenth: the outlet has 4 times the area.
    recovered = float(frame.pressure[last].mean() - frame.pressure[first].mean())
    return [
        Finding("draft tube: greatest divergence", float(report["divergence"]), 0, 1e-2),
        Finding("draft tube: pressure that is recovered", recovered, 0, 15 / 16),
    ]


VALIDATIONS = {each.__name__: each for each in (cavity, poiseuille, taylor_green, cylinder, bend, draft_tube)}
