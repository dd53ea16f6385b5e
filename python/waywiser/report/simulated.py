"""What `waywiser simulate` shows: tables for the terminal, and a picture. All of it says that it is simulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from waywiser.report.terminal import table
from waywiser.simulator.sweep import Curve, best_settings
from waywiser.units import format_bytes, format_range, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABEL = "SIMULATED: not a measurement"


def curves_table(curves: Sequence[Curve], sizes: Sequence[int], title: str) -> Table:
    """A row for each size, a column for each setting."""
    shown = table("!>size", *(f">{curve.label()}" for curve in curves), title=f"{title}. {LABEL}")
    for size in sizes:
        shown.add_row(format_bytes(size), *(_cell(curve, size) for curve in curves))
    return shown


def _cell(curve: Curve, size: int) -> str:
    if size not in curve.points:
        return curve.unavailable or "-"
    if curve.operation == "latency":
        return format_seconds(curve.points[size])
    return format_rate(curve.rate(size))


def best_table(curves: list[Curve], sizes: list[int], title: str) -> Table:
    """The setting to put in force in each range of sizes."""
    shown = table("!sizes", "best setting", ">against the slowest", title=f"{title}. {LABEL}")
    for first, last, best in best_settings(curves, sizes):
        gains = []
        for size in (first, last):
            slowest = max(curve.points[size] for curve in curves if size in curve.points)
            gains.append(f"{slowest / best.points[size]:.1f}x")
        shown.add_row(format_range(first, last), best.label(), " to ".join(dict.fromkeys(gains)))
    return shown


def plot_curves(curves: Sequence[Curve], sizes: Sequence[int], title: str, file: Path) -> None:
    """Time or rate over size, a line for each setting. The kind of picture follows the file's ending."""
    latency = curves[0].operation == "latency"

    def draw(axes: Axes) -> None:
        for curve, style in zip(curves, _styles(), strict=False):
            values = [curve.points[s] * 1e6 if latency else curve.rate(s) / 1e9 for s in sizes if s in curve.points]
            axes.plot([s for s in sizes if s in curve.points], values, style, label=curve.label(), linewidth=1.6)
        axes.set_xlabel("message size")
        axes.set_ylabel("time, µs" if latency else "GB/s")
        axes.set_yscale("log" if latency else "linear")

    save_plot(draw, title, file)


def _styles() -> Sequence[str]:
    return ("-o", "-s", "--^", "--v", ":d", ":x", "-.p", "-.h", "-+", "--+", ":+", "-.+")


def save_plot(draw: object, title: str, file: Path, log_base: int = 2) -> None:
    """One picture with sizes on the x axis; `draw` gets the axes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator

    from waywiser.errors import InputError

    figure = Figure(figsize=(8, 4.8), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_xscale("log", base=log_base)
    draw(axes)  # type: ignore[operator]
    axes.xaxis.set_major_locator(LogLocator(base=log_base, numticks=12))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_bytes(int(value))))
    axes.tick_params(axis="x", rotation=30)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    axes.set_title(f"{title}\n{LABEL}", fontsize=10)
    if file.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"--plot {file}: write a name that ends with .png, .svg or .pdf")
    figure.savefig(file)
