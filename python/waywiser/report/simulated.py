"""The output of `waywiser simulate`: tables for the terminal, and a picture, all labelled as simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from waywiser.errors import InputError
from waywiser.simulator.assumptions import Assumption, lines
from waywiser.simulator.collectives import Case, fastest_of
from waywiser.simulator.sweep import Curve, best_settings
from waywiser.terminal import print_result, table
from waywiser.units import format_bytes, format_range, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Draw = Callable[[Axes], None]

LABEL = "SIMULATED: not a measurement"


def curves_table(curves: Sequence[Curve], sizes: Sequence[int], title: str) -> Table:
    """A row for each size, a column for each setting."""
    shown = table("!>size", *(f"!>{_stacked(curve.label())}" for curve in curves), title=f"{title}. {LABEL}")
    _narrow(shown)
    for size in sizes:
        shown.add_row(format_bytes(size), *(_cell(curve, size) for curve in curves))
    return shown


def print_assumed(assumed: list[Assumption]) -> None:
    """What the table above takes for numbers that are not known; nothing if all are."""
    for line in lines(assumed):
        print_result(Text(line))


def _narrow(shown: Table) -> None:
    if len(shown.columns) > 7:
        shown.padding = (0, 1, 0, 0)


def _stacked(label: str) -> str:
    """One setting per line, a long one in two lines, so that many columns fit."""
    lines = [word if len(word) <= 8 else word.replace(" ", "\n").replace("_", "_\n") for word in label.split(", ")]
    halves = [
        one if len(one) <= 10 else f"{one[: len(one) // 2]}-\n{one[len(one) // 2 :]}"
        for one in "\n".join(lines).split("\n")
    ]
    return "\n".join(halves)


def _cell(curve: Curve, size: int) -> str:
    if size not in curve.points:
        return curve.unavailable or "-"
    if curve.operation == "latency":
        return format_seconds(curve.points[size])
    return format_rate(curve.rate(size))


def best_table(curves: list[Curve], sizes: list[int], title: str) -> Table:
    """The best setting for each range of sizes."""
    shown = table("!sizes", "best setting", ">against the slowest", title=f"{title}. {LABEL}")
    for first, last, best in best_settings(curves, sizes):
        gains = []
        for size in (first, last):
            slowest = max(curve.points[size] for curve in curves if size in curve.points)
            gains.append(f"{slowest / best.points[size]:.1f}x")
        shown.add_row(format_range(first, last), best.label(), " to ".join(dict.fromkeys(gains)))
    return shown


def plot_curves(curves: Sequence[Curve], sizes: Sequence[int], title: str, file: Path) -> None:
    """Time or rate over size, a line for each setting. The file's ending determines the format."""
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


def save_plot(draw: Draw, title: str, file: Path, log_base: int = 2, sizes: bool = True) -> None:
    """One picture with sizes, or else plain numbers, on the x axis; `draw` gets the axes."""
    save_panels({"": draw}, title, file, log_base, sizes)


def save_panels(draws: Mapping[str, Draw], title: str, file: Path, log_base: int = 2, sizes: bool = True) -> None:
    """A picture of panels by their titles, two in a row, with the same scales."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator

    columns = min(2, len(draws))
    rows = -(-len(draws) // columns)
    size = (8, 4.8) if len(draws) == 1 else (10, 0.6 + 3.8 * rows)
    figure = Figure(figsize=size, dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    for (panel, draw), axes in zip(draws.items(), grid, strict=False):
        axes.set_xscale("log", base=log_base)
        draw(axes)
        axes.xaxis.set_major_locator(LogLocator(base=log_base, numticks=12))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda value, _: format_bytes(int(value)) if sizes else f"{value:,.0f}")
        )
        axes.tick_params(axis="x", rotation=30, labelbottom=True)
        axes.grid(alpha=0.3)
        if len(axes.get_lines()) > 6:
            axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
        else:
            axes.legend(fontsize=8)
        axes.set_title(panel, fontsize=10)
    for unused in grid:
        unused.remove()
    figure.suptitle(f"{title}\n{LABEL}", fontsize=10)
    if file.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"--plot {file}: write a name that ends with .png, .svg or .pdf")
    figure.savefig(file)


def cases_table(cases: Sequence[Case], operation: str, title: str) -> Table:
    """A row for each size and number of ranks, a column for each algorithm; the fastest one, and its bus bandwidth if
    that fits a terminal."""
    labels = list(dict.fromkeys(case.label() for case in cases))
    bus = len(labels) <= 5 and any(case.bus_bandwidth(operation) for case in cases)
    last = ("fastest", *(["!>its bus\nbandwidth"] if bus else []))
    shown = table("!>GPUs", "!>size", *(f"!>{_stacked(label)}" for label in labels), *last, title=f"{title}. {LABEL}")
    _narrow(shown)
    rows = {(case.ranks, case.size): {} for case in cases}  # type: dict[tuple[int, int], dict[str, Case]]
    for case in cases:
        rows[case.ranks, case.size][case.label()] = case
    reasons = []
    for (ranks, size), row in sorted(rows.items()):
        usable = [case for case in row.values() if not case.unavailable]
        best = min(usable, key=lambda case: case.seconds, default=None)
        rate = best.bus_bandwidth(operation) if best else None
        cells = [format_seconds(row[name].seconds) if not row[name].unavailable else "-" for name in labels]
        reasons += [case.unavailable for case in row.values() if case.unavailable]
        told = [format_rate(rate) if rate else "-"] if bus else []
        shown.add_row(str(ranks), format_bytes(size), *cells, _stacked(best.label()) if best else "-", *told)
    shown.caption = "; ".join(dict.fromkeys(reasons)) or None
    return shown


def plot_cases(cases: Sequence[Case], title: str, file: Path) -> None:
    """Time over size: a panel for each number of ranks, in it a line for each algorithm."""
    labels = list(dict.fromkeys(case.label() for case in cases if not case.unavailable))

    def draw(axes: Axes, ranks: int) -> None:
        for number, label in enumerate(labels):
            points = [c for c in cases if (c.label(), c.ranks) == (label, ranks) and not c.unavailable]
            times = [case.seconds * 1e6 for case in points]
            sizes = [case.size for case in points]
            axes.plot(sizes, times, _styles()[number], color=f"C{number}", label=label, linewidth=1.3, markersize=4)
        axes.set_xlabel("size of the buffer")
        axes.set_ylabel("time, µs")
        axes.set_yscale("log")

    counts = sorted({case.ranks for case in cases})
    save_panels({f"{ranks:,} GPUs": partial(draw, ranks=ranks) for ranks in counts}, title, file)


def plot_fastest(cases: Sequence[Case], title: str, file: Path) -> None:
    """Which algorithm is the fastest: a column for each number of GPUs, a row for each size."""
    fastest = fastest_of(cases)
    counts, sizes = (sorted({place[axis] for place in fastest}) for axis in (0, 1))
    labels = [label for label in dict.fromkeys(case.label() for case in cases) if label in fastest.values()]

    def draw(axes: Axes) -> None:
        columns, rows = _cells(counts), _cells(sizes)
        for number, label in enumerate(labels):
            for part, (ranks, size) in enumerate(place for place, name in fastest.items() if name == label):
                (left, right), (low, high) = columns[ranks], rows[size]
                shown = None if part else label
                axes.bar(left, high - low, right - left, low, align="edge", color=f"C{number}", label=shown)
        axes.set_xlabel("GPUs")
        axes.set_ylabel("size of the buffer")
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(lambda value, _: format_bytes(int(value)))

    save_plot(draw, title, file, sizes=False)


def _cells(values: Sequence[int]) -> dict[int, tuple[float, float]]:
    """From where to where each is the nearest on a logarithmic axis; the outer ones as far to both sides."""
    between = [math.sqrt(low * high) for low, high in pairwise(values)] or [math.sqrt(2) * values[0]]
    first, last = values[0] ** 2 / between[0], values[-1] ** 2 / between[-1]
    edges = [first, *between, last] if len(values) > 1 else [first, *between]
    return dict(zip(values, pairwise(edges), strict=True))


def plot_trace(trace: dict[str, Any], file: Path) -> None:
    """A timeline: a row for each rank or unit, a bar for each step."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if file.suffix not in (".png", ".svg", ".pdf"):
        raise InputError(f"--trace {file}: write a name that ends with .json, .png, .svg or .pdf")
    rows = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    shown = dict(sorted(rows.items())[:64])
    figure = Figure(figsize=(10, 1.6 + 0.25 * len(shown)), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    colours: dict[str, str] = {}
    for event in trace["traceEvents"]:
        if event["ph"] != "X" or event["tid"] not in shown:
            continue
        kind = event["name"].rstrip("0123456789 ")
        colour = colours.setdefault(kind, f"C{len(colours) % 10}")
        axes.barh(
            event["tid"], event["dur"], left=event["ts"], height=0.7, color=colour, edgecolor="white", linewidth=0.3
        )
    axes.set_yticks(list(shown), list(shown.values()), fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("time, µs")
    for kind, colour in colours.items():
        axes.barh(0, 0, color=colour, label=kind)
    axes.legend(fontsize=8, loc="upper right")
    left_out = f", first {len(shown)} of {len(rows)} rows" if len(shown) < len(rows) else ""
    axes.set_title(f"{trace['otherData']['title']}{left_out}\n{LABEL}", fontsize=10)
    figure.savefig(file)


def errors_table(errors: dict[str, dict[str, float]], machine: str) -> Table:
    """The errors of predictions against the measurements of a calibration."""
    shown = table(
        "prediction of", ">median error", ">90 % of points below", ">points", title=f"Calibration to {machine}"
    )
    for name, error in errors.items():
        if error:
            cells = (f"{100 * error['median']:.1f} %", f"{100 * error['p90']:.0f} %", str(int(error["points"])))
            shown.add_row(name, *cells)
    return shown


def kinds_table(kinds: dict[str, dict[str, float]], most: int = 12) -> Table:
    """The kinds of paths with the most points that are off by over a quarter."""
    title = "Costs and curves, on the other sizes: where the largest errors are"
    shown = table("paths", ">median error", ">90 % of points below", ">over 25 %", ">points", title=title)
    for kind, error in list(kinds.items())[:most]:
        cells = (f"{100 * error['median']:.1f} %", f"{100 * error['p90']:.0f} %", str(int(error["far"])))
        shown.add_row(kind, *cells, str(int(error["points"])))
    return shown
