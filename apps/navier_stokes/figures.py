"""Pictures of flows, by matplotlib."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.tri import Triangulation
from measures import cavity_profile, ghia, history
from vtu import Frame, last_frame, read_frame, read_series

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BLUE, ORANGE, GREY = "#1f5fa8", "#d9661f", "#666666"
plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "figure.dpi": 110})


def save(figure: plt.Figure, file: Path) -> None:
    """Writes a figure and closes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, bbox_inches="tight")
    plt.close(figure)


# The edges of solid cells, by the number of their corners.
EDGES = {
    4: [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
    5: [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4), (2, 4), (3, 4)],
    6: [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)],
    8: [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7)],
}


def flat(frame: Frame) -> tuple[list[np.ndarray], np.ndarray]:
    """Polygons in the plane, and the cells that they show: all of a flat mesh, else those that z = 0 cuts, or the
    middle of the mesh where that does not."""
    low, high = frame.points[:, 2].min(), frame.points[:, 2].max()
    if low == high:
        return [frame.points[cell][:, :2] for cell in frame.cells], np.arange(len(frame.cells))
    level, least = (0 if low < 0 < high else (low + high) / 2), 1e-9 * (high - low)
    polygons, shown = [], []
    for number, cell in enumerate(frame.cells):
        corners = frame.points[cell] - (0, 0, level)
        below = corners[:, 2] <= least
        if not below.any() or (corners[:, 2] <= -least).all() or not (corners[:, 2] > least).any():
            continue
        # Where the plane cuts the edges of a cell, in the order of the angle around their middle.
        cuts = []
        for a, b in EDGES[len(cell)]:
            if below[a] != below[b]:
                share = corners[a, 2] / (corners[a, 2] - corners[b, 2])
                cuts.append(corners[a, :2] + share * (corners[b, :2] - corners[a, :2]))
        middle = np.mean(cuts, axis=0)
        cuts.sort(key=lambda at: np.arctan2(at[1] - middle[1], at[0] - middle[0]))
        polygons.append(np.array(cuts))
        shown.append(number)
    return polygons, np.array(shown)


def at_corners(polygons: list[np.ndarray], values: np.ndarray) -> tuple[Triangulation, np.ndarray]:
    """Triangles over all polygons, and at each of their corners the mean of the cells around it."""
    lengths = np.array([len(polygon) for polygon in polygons])
    corners = np.concatenate(polygons)
    corners = np.round(corners, 7 - int(np.floor(np.log10(np.ptp(corners, axis=0).max()))))
    points, which = np.unique(corners, axis=0, return_inverse=True)
    which = which.ravel()
    means = np.bincount(which, np.repeat(values, lengths)) / np.bincount(which)
    triangles = []
    for start, length in zip(np.cumsum(lengths) - lengths, lengths, strict=True):
        polygon = which[start : start + length]
        triangles += [(polygon[0], polygon[i], polygon[i + 1]) for i in range(1, length - 1)]
    return Triangulation(points[:, 0], points[:, 1], triangles), means


def draw_field(
    axes: plt.Axes, frame: Frame, values: np.ndarray, label: str, window: list[float] | None, length: str = ""
) -> None:
    """The values as colours, without seams between cells; `window`: left, right, bottom, top; `length`: its unit."""
    polygons, shown = flat(frame)
    if window:
        inside = [i for i, p in enumerate(polygons) if (p[:, 0] > window[0]).any() and (p[:, 0] < window[1]).any()
                  and (p[:, 1] > window[2]).any() and (p[:, 1] < window[3]).any()]  # fmt: skip
        polygons, shown = [polygons[i] for i in inside], shown[inside]
        axes.set_facecolor("#b0b0b0")  # what is not fluid there is the body
    low, high = np.percentile(values[shown], [0.5, 99.5])
    triangles, means = at_corners(polygons, values[shown])
    cells = axes.tripcolor(triangles, means, shading="gouraud", cmap="viridis", vmin=low, vmax=high)
    if window:
        axes.set(xlim=window[:2], ylim=window[2:])
    axes.set(aspect="equal", xlabel="x" + length, ylabel="y" + length)
    axes.figure.colorbar(cells, ax=axes, label=label, shrink=0.8)


def report_of(folder: Path) -> dict[str, Any]:
    """What a run has written of itself."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


def units(folder: Path) -> dict[str, str]:
    """What follows the name of a quantity: runs of case files are in SI units, the others have none."""
    named = {"length": " in m", "time": " in s", "speed": " in m/s", "pressure": " in Pa", "change": " in m/s²"}
    return named if "boundaries" in report_of(folder) else dict.fromkeys(named, "")


def what_it_is(folder: Path) -> str:
    """Case, Reynolds number to four digits, cells and time of a run, for a title."""
    report = report_of(folder)
    reynolds = float(f"{report['reynolds']:.4g}")
    second = " s" if units(folder)["time"] else ""
    return f"{report['case']}, Re {reynolds:g}, {report['cells']:,} cells, time {report['time']:.3g}{second}"


def fields(folder: Path, file: Path, window: list[float] | None = None) -> None:
    """Velocity and pressure of the last frame of a run: side by side, or if they are wide one below the other."""
    frame = last_frame(folder)
    left, right, bottom, top = window or [edge for i in (0, 1) for edge in np.quantile(frame.points[:, i], [0, 1])]
    wide, high = right - left, top - bottom
    rows, columns = (2, 1) if wide > 1.5 * high else (1, 2)
    size = (8.5, 2 * (7 * high / wide + 0.7)) if rows == 2 else (9.5, 3.2 * high / wide + 1.2)
    figure, (first, second) = plt.subplots(rows, columns, figsize=size, layout="constrained")
    unit = units(folder)
    speed = np.linalg.norm(frame.velocity, axis=1)
    draw_field(first, frame, speed, "speed" + unit["speed"], window, unit["length"])
    draw_field(second, frame, frame.pressure, "pressure" + unit["pressure"], window, unit["length"])
    cut = ", cut at z = 0" if np.ptp(frame.points[:, 2]) > 0 else ""
    figure.suptitle(what_it_is(folder) + cut)
    save(figure, file)


def residuals(folder: Path, file: Path) -> None:
    """How fast the velocity still changes, and the iterations of both solvers."""
    lines = history(folder)
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(6.5, 5), sharex=True, layout="constrained")
    upper.semilogy(lines["time"], lines["change"], color=BLUE)
    unit = units(folder)
    upper.set(ylabel="change of velocity" + (unit["change"] or "\nin a unit of time") + " (rms)")
    lower.plot(lines["time"], lines["pressure_iterations"], color=BLUE, label="pressure")
    lower.plot(lines["time"], lines["momentum_iterations"], color=ORANGE, label="velocity")
    lower.set(xlabel="time" + unit["time"], ylabel="iterations in a step", ylim=(0, None))
    lower.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)  # above the curves
    figure.suptitle(what_it_is(folder))
    save(figure, file)


def partition(folder: Path, file: Path) -> None:
    """The rank of each cell."""
    frame = read_frame(read_series(folder)[-1][1])
    figure, axes = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
    draw_field(axes, frame, frame.rank.astype(float), "rank", None, units(folder)["length"])
    save(figure, file)


def cavity(frames: dict[int, Frame], file: Path) -> None:
    """Both middle lines of cavities beside Ghia et al.; frames by Reynolds number."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained")
    for color, (reynolds, frame) in zip((BLUE, ORANGE, GREY), frames.items(), strict=False):
        for axes, line in ((left, "u"), (right, "v")):
            at, profile = cavity_profile(frame, line)
            places, wanted = ghia(line, reynolds)
            pairs = [(profile, at), (wanted, places)] if line == "u" else [(at, profile), (places, wanted)]
            axes.plot(*pairs[0], color=color, label=f"Re {reynolds}")
            axes.plot(*pairs[1], "o", color=color, markersize=4, markerfacecolor="none")
    left.set(xlabel="u on the line x = 0.5", ylabel="y")
    right.set(xlabel="x", ylabel="v on the line y = 0.5")
    left.plot([], [], "o", color="black", markersize=4, markerfacecolor="none", label="Ghia et al. (1982)")
    left.legend(frameon=False)
    cells = ", ".join(f"{len(frame.cells):,}" for frame in frames.values())
    figure.suptitle(f"cavity: velocity on both middle lines, {cells} cells")
    save(figure, file)


def convergence(
    curves: dict[str, tuple[list[float], list[float]]],
    across: str,
    title: str,
    file: Path,
    ticks: Callable[[float], str],
) -> None:
    """Errors by size of cells or length of steps, with a line of order 2; `ticks` are the words below each size."""
    if any(len(sizes) < 3 for sizes, _ in curves.values()) or len(curves) > 4:
        raise ValueError(f"{file}: a figure has at least three points a curve and at most five curves")
    figure, axes = plt.subplots(figsize=(5.5, 4.2), layout="constrained")
    for color, (name, (sizes, errors)) in zip((BLUE, ORANGE, GREY), curves.items(), strict=False):
        axes.loglog(sizes, errors, "o-", color=color, label=name)
    sizes, errors = next(iter(curves.values()))
    axes.loglog(
        sizes, [0.5 * errors[-1] * (size / sizes[-1]) ** 2 for size in sizes], "--", color="black", label="order 2"
    )
    axes.set(xlabel=across, ylabel="error of the velocity (rms)", title=title)
    axes.set_xticks(sizes, [ticks(size) for size in sizes])
    axes.minorticks_off()
    axes.legend(frameon=False)
    save(figure, file)


def lift(folder: Path, file: Path, found: float) -> None:
    """Drag and lift of a cylinder over time."""
    lines = history(folder)
    figure, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    axes.plot(lines["time"], 2 * lines["force_x"], color=BLUE, label="drag coefficient")
    axes.plot(lines["time"], 2 * lines["force_y"], color=ORANGE, label="lift coefficient")
    axes.set(
        xlabel="time (diameters / wind)", ylabel="coefficient", ylim=(-0.6, 2),
        title=f"{what_it_is(folder)}\nStrouhal number {found:.4f}; published: 0.16 to 0.17",
    )  # fmt: skip
    axes.legend(frameon=False, loc="upper right", ncols=2)
    save(figure, file)
