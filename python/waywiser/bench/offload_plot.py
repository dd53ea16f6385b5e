"""The picture of `waywiser bench offload --plot`: times over the size of the arrays, with logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waywiser.bench.offload import LOCAL, LOCAL_PINNED, Case
from waywiser.files import write_bytes_atomically
from waywiser.offload.client import POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLORS = {
    "client_input": "#1769aa", "server_input": "#1769aa", "client_compute": "#b3541e", "server_compute": "#b3541e",
    "device": "#52606d", "server_output": "#2e7d4f", "client_output": "#2e7d4f",
}  # fmt: skip
_ROADS = ("#1769aa", "#b3541e", "#2e7d4f", "#7b3fa0", "#52606d")


def plot_offload(found: Sequence[Case], label: str, file: Path) -> None:
    """A row for each number of additions: the points of the first road in two panels, and the whole of all."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = sorted({case.times for case in found})
    roads = list(dict.fromkeys(case.road for case in found))
    first = next(road for road in roads if road not in (LOCAL, LOCAL_PINNED))
    fastest = sorted(roads, key=lambda road: sum(case.run.whole for case in found if case.road == road))[: len(_ROADS)]
    title = "all roads" if len(roads) == len(fastest) else f"the fastest {len(fastest)} of {len(roads)} roads"
    figure = Figure(figsize=(13.5, 0.7 + 3.8 * len(counts)), dpi=110, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    figure.suptitle(f"Two arrays of float32, added on a GPU{label}", fontsize=11)
    for row, times in zip(figure.subplots(len(counts), 3, squeeze=False), counts, strict=True):
        of = [case for case in found if case.times == times]
        remote = [case for case in of if case.road == first]
        words = f"added {times} times" if times > 1 else "added once"
        for point in POINTS:
            style = "-o" if point.startswith("client") else "--s" if point.startswith("server") else ":^"
            axes = row[0] if point.endswith("put") else row[1]
            _line(
                axes, remote, [case.run.at(point) for case in remote], style, _COLORS[point], point.replace("_", ", ")
            )
        for road, color in zip((road for road in roads if road in fastest), _ROADS, strict=False):
            cases = [case for case in of if case.road == road]
            _line(row[2], cases, [case.run.whole for case in cases], "-o", color, road)
        _finish(row[0], f"{first}, {words}: input and output")
        _finish(row[1], f"{first}, {words}: computation")
        _finish(row[2], f"{title}, {words}: the whole")
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file.suffix[1:])
    write_bytes_atomically(file, buffer.getvalue())


def _line(axes: Axes, cases: Sequence[Case], seconds: Sequence[float], style: str, color: str, name: str) -> None:
    """The server's points are hollow and larger: those of the client, which are often the same, are seen in them."""
    marks: dict[str, Any] = {"markersize": 8, "markerfacecolor": "none"} if "s" in style else {"markersize": 4}
    times = [1e3 * value for value in seconds]
    axes.plot([case.elements for case in cases], times, style, color=color, label=name, linewidth=1.4, **marks)


def _finish(axes: Axes, title: str) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.15g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("elements of an array")
    axes.set_ylabel("ms")
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, frameon=False)
