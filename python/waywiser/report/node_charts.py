"""GPUDirect RDMA and GDRCopy between nodes on the page: time and rate over size for each setting, the best one marked.

Pictures are SVG inside the page, without a script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from waywiser.apply.node_switches import NAMES, OPERATIONS, TITLES, NodePath, Switches, between_nodes, name_of
from waywiser.apply.node_table import HEAD, rows_of
from waywiser.profile import Profile
from waywiser.report.markup import Child, Markup, el, join, number, table
from waywiser.simulator.sweep import Curve
from waywiser.units import format_bytes, format_rate, format_seconds

_WIDTH, _HEIGHT = 560, 330
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 26, 34, 34
_LEAST_APART = 56  # between the middles of two sizes below the axis
_SHOWN = ("latency", "bidirectional")
_STRIP = 8  # height of the bar on top that shows the best setting


def _class_of(switches: Switches) -> str:
    return f"set{list(NAMES).index(switches)}"


class _Axes:
    """Both logarithmic."""

    def __init__(self, curves: Sequence[Curve]) -> None:
        sizes = sorted(curves[0].points)
        values = [_value(curve, size) for curve in curves for size in sizes]
        self.sizes = sizes
        self.low, self.high = min(values), max(values)

    def x(self, size: float) -> float:
        first, last = math.log(self.sizes[0]), math.log(self.sizes[-1])
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (math.log(size) - first) / max(last - first, 1e-9)

    def y(self, value: float) -> float:
        low, high = math.log(self.low), math.log(self.high)
        along = (math.log(value) - low) / max(high - low, 1e-9)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * (0.04 + 0.92 * along)


def _value(curve: Curve, size: int) -> float:
    return curve.points[size] if curve.operation == "latency" else curve.rate(size)


def _text(curve: Curve, value: float) -> str:
    return format_seconds(value) if curve.operation == "latency" else format_rate(value)


def _grid(axes: _Axes, sample: Curve) -> list[Markup]:
    lines = []
    last = float("-inf")
    for size in axes.sizes:
        if axes.x(size) - last >= _LEAST_APART:
            last = axes.x(size)
            lines.append(el("text", format_bytes(size), x=f"{last:.1f}", y=_HEIGHT - 12, class_="tick middle"))
    for power in range(math.floor(math.log10(axes.low)), math.ceil(math.log10(axes.high)) + 1):
        value = 10.0**power
        if axes.low <= value <= axes.high:
            at = f"{axes.y(value):.1f}"
            lines.append(el("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=at, y2=at, class_="grid"))
            lines.append(el("text", _text(sample, value), x=_LEFT - 6, y=at, dy=4, class_="tick end"))
    return lines


def _line(axes: _Axes, curve: Curve, switches: Switches) -> list[Markup]:
    at = [(axes.x(size), axes.y(_value(curve, size))) for size in axes.sizes]
    kind = _class_of(switches)
    drawn = [el("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in at), class_=f"line {kind}")]
    for (x, y), size in zip(at, axes.sizes, strict=True):
        told = f"{name_of(switches)}: {format_bytes(size)} {_text(curve, _value(curve, size))}"
        drawn.append(el("circle", el("title", told), cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, class_=f"dot {kind}"))
    return drawn


def _best(axes: _Axes, path: NodePath, operation: str, curves: dict[Switches, Curve]) -> list[Markup]:
    """A bar on top in the colour of the best setting, and a ring around the best at each size."""
    marked = []
    for first, last, switches in path.by_size(operation):
        inside = [size for size in axes.sizes if first <= size <= last]
        begin, end = axes.x(inside[0]) - 6, axes.x(inside[-1]) + 6
        kind, wide = _class_of(switches), f"{end - begin:.1f}"
        marked.append(el("rect", x=f"{begin:.1f}", y=_TOP - 22, width=wide, height=_STRIP, rx=3, class_=f"fill {kind}"))
        middle = f"{(begin + end) / 2:.1f}"
        marked.append(el("text", f"best: {name_of(switches)}", x=middle, y=_TOP - 26, class_="tick middle"))
        for size in inside:
            y = axes.y(_value(curves[switches], size))
            marked.append(el("circle", cx=f"{axes.x(size):.1f}", cy=f"{y:.1f}", r=6, class_=f"ring {kind}"))
    return marked


def _chart(path: NodePath, operation: str) -> Markup | None:
    curves = dict(zip(NAMES, path.curves(operation), strict=True))
    if not all(curve.points for curve in curves.values()):
        return None
    axes = _Axes(list(curves.values()))
    what = "Latency" if operation == "latency" else f"Bandwidth, {TITLES[operation]}: the sum of both"
    inside = [*_grid(axes, curves["on", "on"]), *_best(axes, path, operation, curves)]
    for switches, curve in curves.items():
        inside += _line(axes, curve, switches)
    picture = el("svg", inside, viewBox=f"0 -8 {_WIDTH} {_HEIGHT}", role="img", aria_label=f"{what} by setting")
    return el("figure", el("figcaption", el("b", what)), picture)


def _legend() -> Markup:
    names = {"neither": "neither", "GDRCopy": "GDRCopy", "GDR": "GDR: GPUDirect RDMA", "both": "both"}
    shown = [el("span", el("i", class_=f"swatch {_class_of(one)}"), names[name_of(one)]) for one in NAMES]
    return el("p", shown, " A ring marks the fastest at each size.", class_="settings-legend")


def _figures(path: NodePath) -> Markup:
    """All numbers of a path, the best of each row in bold."""
    parts: list[Child] = []
    for operation in OPERATIONS:
        curves = path.curves(operation)
        sizes = sorted(curves[0].points)
        rows = []
        for size in sizes:
            least = min(curve.points[size] for curve in curves)
            cells = [_figure(curve, size, curve.points[size] <= least * (1 + 1e-6)) for curve in curves]
            rows.append([format_bytes(size), *cells])
        if rows:
            parts += [el("h4", TITLES[operation].capitalize()), table(("Size", *NAMES.values()), rows)]
    return el("details", el("summary", "All figures"), parts)


def _figure(curve: Curve, size: int, best: bool) -> Markup:
    told = _text(curve, _value(curve, size))
    return el("td", told, class_="number good") if best else number(told)


def node_charts(profile: Profile) -> Markup | None:
    """The settings of the paths to each other type of node; None if none was timed."""
    paths = between_nodes(profile).paths
    if not paths:
        return None
    rows = [row.cells for row in rows_of(profile)]
    parts: list[Child] = [table([one.capitalize() for one in HEAD], rows, class_="nodes"), _legend()]
    for path in paths:
        charts = [chart for operation in _SHOWN if (chart := _chart(path, operation))]
        over = f"{path.source} to {path.destination}" + (f" over {path.rail}" if path.rail else "")
        head = el("header", el("h3", f"To a node of type {path.node}"), el("p", over, class_="muted"))
        parts.append(el("div", head, el("div", charts, class_="plots"), _figures(path), class_="card settings"))
    return join(parts)
