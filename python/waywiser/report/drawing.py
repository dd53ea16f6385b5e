"""Draws a machine as SVG or PNG: packages and their memories, PCIe, GPUs, NICs, NVLink, each link with its rate."""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from waywiser.report.drawing_layout import lay_out
from waywiser.report.drawing_parts import Box, Layout, Wire

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK, _PALE = "#1f2933", "#5c6b7a"
_FILL = {
    "cpu": "#eef2f7",
    "host": "#d6e6f5",
    "root": "#ffffff",
    "switch": "#fbe3c8",
    "bridge": "#fbe3c8",
    "gpu": "#d9efcf",
    "nic": "#e6dcf3",
    "nvme": "#f3dcdc",
    "nvswitch": "#bfe3b0",
}
_EDGE = {
    "cpu": "#8a9bae",
    "host": "#6c9cc9",
    "root": "#8a9bae",
    "switch": "#d08a34",
    "bridge": "#d08a34",
    "gpu": "#4f9a2f",
    "nic": "#8a63c2",
    "nvme": "#c26363",
    "nvswitch": "#3c7d20",
}
_WIRE = {
    "pcie": "#c77d1e",
    "nvlink": "#4f9a2f",
    "socket": "#2f6db3",
    "internal": "#8a9bae",
    "c2c": "#1d8a8a",
    "xgmi": "#b04a2f",
}
_WORDS = {
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "socket": "between CPUs",
    "c2c": "C2C",
    "internal": "inside a CPU",
    "xgmi": "xGMI",
}
_WARNING = "#d02020"
_SIZE, _SMALL = 8.0, 7.0
_MARGIN, _HEAD, _FOOT = 0.25, 0.75, 0.85
_LEAST_WIDTH = 5.2


def draw_topology(topology: dict[str, Any], path_or_file: str | Path | IO[bytes], *, format: str = "svg") -> None:
    """Draws a topology (its JSON form) into a file or stream; `format` is "svg" or "png".

    Rates are nominal, per direction; links that trained below their best are red and dashed.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "waywiser", "font.family": "sans-serif"}):
        layout = lay_out(topology)
        left, bottom, right, top = layout.bounds()
        middle = (left + right) / 2
        half = max(right - left, _LEAST_WIDTH) / 2 + _MARGIN
        low, high = bottom - _FOOT, top + _HEAD
        figure = Figure(figsize=(2 * half, high - low), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(middle - half, middle + half)
        axes.set_ylim(low, high)
        axes.axis("off")
        for wire in layout.wires:
            _draw_wire(axes, wire)
        for box in layout.boxes.values():
            _draw_box(axes, box)
        _draw_words(axes, topology, layout, (middle - half + _MARGIN, low, high))
        metadata = {"Date": None} if format == "svg" else {"Software": "waywiser"}
        figure.savefig(path_or_file, format=format, dpi=160, metadata=metadata)


def drawing_bytes(topology: dict[str, Any], *, format: str = "svg") -> bytes:
    """The drawing as the content of a file."""
    buffer = io.BytesIO()
    draw_topology(topology, buffer, format=format)
    return buffer.getvalue()


def _draw_box(axes: Axes, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    style = "round,pad=0,rounding_size=0.06"
    z = {"cpu": 2.0, "host": 3.0}.get(box.kind, 4.0)
    axes.add_patch(
        FancyBboxPatch(
            (box.left, box.y - box.height / 2),
            box.width,
            box.height,
            boxstyle=style,
            zorder=z,
            facecolor=_FILL[box.kind],
            edgecolor=_EDGE[box.kind],
            linewidth=1.1,
        )
    )
    if box.kind == "cpu":
        axes.text(
            box.x,
            box.y + box.height / 2 - 0.19,
            box.lines[0],
            ha="center",
            va="center",
            fontsize=9,
            weight="bold",
            color=_INK,
            zorder=z + 0.5,
        )
        return
    step = 0.165
    for number, line in enumerate(box.lines[:3]):
        y = box.y + step * ((len(box.lines[:3]) - 1) / 2 - number)
        first = number == 0
        axes.text(
            box.x,
            y,
            line,
            ha="center",
            va="center",
            fontsize=_SIZE if first else _SMALL,
            weight="bold" if first and box.kind != "root" else "normal",
            color=_INK if first else _PALE,
            zorder=z + 0.5,
            clip_on=True,
        )


def _draw_wire(axes: Axes, wire: Wire) -> None:
    color = _WARNING if wire.warning else _WIRE.get(wire.kind, _PALE)
    if wire.points:
        xs, ys = zip(*wire.points, strict=True)
        width = {"internal": 1.0, "socket": 2.6, "pcie": 1.5}.get(wire.kind, 1.0 + 0.7 * min(wire.count, 4))
        axes.plot(
            xs,
            ys,
            color=color,
            linewidth=width,
            zorder=1,
            solid_joinstyle="round",
            linestyle=(0, (4, 2)) if wire.warning else "solid",
        )
    if wire.label:
        x, y = wire.label_at
        axes.text(
            x,
            y,
            wire.label,
            ha="center",
            va="center",
            fontsize=_SMALL,
            linespacing=1.05,
            zorder=1.5,
            color=color if wire.warning else _INK,
            weight="bold" if wire.warning else "normal",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )


def _draw_words(axes: Axes, topology: dict[str, Any], layout: Layout, corner: tuple[float, float, float]) -> None:
    from matplotlib.lines import Line2D

    x, low, high = corner
    axes.text(x, high - 0.27, topology["name"], fontsize=13, weight="bold", color=_INK, va="center")
    words = f"{topology['kind']} · rates are nominal, per direction"
    axes.text(x, high - 0.52, words, fontsize=_SIZE, color=_PALE, va="center")
    present = {wire.kind for wire in layout.wires if wire.points}
    handles = [Line2D([], [], color=_WIRE[k], linewidth=2.4, label=_WORDS[k]) for k in _WORDS if k in present]
    if any(wire.warning for wire in layout.wires):
        handles.append(
            Line2D([], [], color=_WARNING, linestyle=(0, (4, 2)), linewidth=2, label="trained below its best")
        )
    if handles:
        axes.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(x, low + 0.16),
            bbox_transform=axes.transData,
            ncols=len(handles),
            frameon=False,
            fontsize=_SMALL,
            borderaxespad=0,
            borderpad=0,
            handlelength=1.6,
            columnspacing=1.4,
        )
    networks = _networks(topology)
    if networks:
        axes.text(x, low + 0.5, networks, fontsize=_SMALL, color=_PALE, va="center")


def _networks(topology: dict[str, Any]) -> str:
    names = {device["id"]: device["name"] for device in topology["devices"]}
    members: dict[str, list[str]] = defaultdict(list)
    for link in topology["links"]:
        if link["kind"] == "network":
            members[link["b"]].append(names[link["a"]])
    texts = [f"{names[network]}: {', '.join(nics)}" for network, nics in members.items()]
    return "Networks: " + " · ".join(texts) if texts else ""
