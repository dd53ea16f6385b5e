"""Figures of a flow that are compared with references, by NumPy alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from vtu import Frame

HERE = Path(__file__).resolve().parent
# A number of Ghia et al. that fits neither its neighbours nor any later computation: a misprint of the table.
MISPRINTS = {("v", 400, 0.9063)}


def ghia(line: str, reynolds: int) -> tuple[np.ndarray, np.ndarray]:
    """Places and velocities of Ghia, Ghia and Shin (1982): u on x = 0.5 (line "u") or v on y = 0.5 (line "v")."""
    rows = csv.DictReader(row for row in (HERE / "reference/ghia.csv").open() if not row.startswith("#"))
    values = [(float(row["at"]), float(row[f"re{reynolds}"])) for row in rows if row["line"] == line]
    return np.array(values)[:, 0], np.array(values)[:, 1]


def cavity_profile(frame: Frame, line: str) -> tuple[np.ndarray, np.ndarray]:
    """The velocity of a cavity of even squares on a middle line, which lies between two columns, wall to wall."""
    centers = frame.centers()
    side = round(np.sqrt(len(centers)))
    order = np.lexsort((np.round(centers[:, 0], 9), np.round(centers[:, 1], 9)))
    grid = frame.velocity[order].reshape(side, side, 3)  # rows along y
    half = side // 2
    inner = (
        grid[:, half - 1 : half + 1, 0].mean(axis=1) if line == "u" else grid[half - 1 : half + 1, :, 1].mean(axis=0)
    )
    at = (np.arange(side) + 0.5) / side
    return np.r_[0, at, 1], np.r_[0, inner, 1 if line == "u" else 0]


def cavity_difference(frame: Frame, reynolds: int) -> float:
    """The greatest difference of both profiles from Ghia et al., misprints apart."""
    worst = 0.0
    for line in ("u", "v"):
        at, profile = cavity_profile(frame, line)
        places, wanted = ghia(line, reynolds)
        for place, value in zip(places, wanted, strict=True):
            if (line, reynolds, place) not in MISPRINTS:
                worst = max(worst, abs(float(np.interp(place, at, profile)) - value))
    return worst


def history(folder: Path) -> dict[str, np.ndarray]:
    """The columns of history.csv."""
    with (folder / "history.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def strouhal(time: np.ndarray, lift: np.ndarray) -> float:
    """The frequency of the lift, from its upward zero crossings: those of a body of size 1 in a wind of velocity 1."""
    lift = lift - lift.mean()
    up = np.flatnonzero((lift[:-1] < 0) & (lift[1:] >= 0))
    if len(up) < 3:
        return 0.0
    crossings = time[up] - lift[up] * (time[up + 1] - time[up]) / (lift[up + 1] - lift[up])
    return float((len(crossings) - 1) / (crossings[-1] - crossings[0]))


def orders(sizes: list[float], errors: list[float]) -> list[float]:
    """The observed order between each two neighbours: errors fall as size^order."""
    return [float(np.log(errors[i] / errors[i + 1]) / np.log(sizes[i] / sizes[i + 1])) for i in range(len(errors) - 1)]
