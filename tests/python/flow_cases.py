"""Runs of case files of apps/navier_stokes, for tests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import navier_stokes_runs as runs
import numpy as np
from made_up_mesh import box
from rank_jobs import ROOT

from waywiser.mesh import Mesh, partition

sys.path.insert(0, str(ROOT / "apps/navier_stokes"))
from case_file import read_case
from case_mesh import Numbers, case_mesh
from case_writer import prepare
from vtu import Frame, last_frame


def solve(case: Path, ranks: int = 1, *options: object) -> tuple[dict[str, Any], Frame]:
    """The report and the last frame of a case file; results are in a folder of its name that ends with .out."""
    folder = case.with_suffix(".out")
    file, chosen = prepare(read_case(case), folder, ranks)
    words = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    report = runs.solve(ranks, str(file), *words, *options, "--output", folder)
    return report, last_frame(folder)


def parts_of_metis(case: Path, ranks: int) -> Numbers:
    """The rank of each cell of a case file."""
    return partition(case_mesh(read_case(case)).mesh, ranks, "metis").of_cell


def ring() -> Mesh:
    """Between circles of radius 1 and 2, the boundaries `in` and `out`."""
    grid = box((8, 32))
    radius, angle = 1 + grid.points[:, 0] / 8, grid.points[:, 1] * 2 * np.pi / 32
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    number = np.arange(len(points)).reshape(9, 33)
    number[:, 32] = number[:, 0]  # the last points of each circle are the first
    faces = {name: np.stack([number[i, :-1], number[i, 1:]], 1) for name, i in (("in", 0), ("out", 8))}
    return Mesh(points, [("quad", number.ravel()[grid.blocks[0][1]])], faces)
