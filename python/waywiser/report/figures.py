"""The plots of the report as figures of Matplotlib, with the colours of the page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from waywiser.report import definitions, palette
from waywiser.report.matrices import Matrix
from waywiser.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEGEND_CHARACTERS = 175  # in a line
_LEGEND_LINE = 0.165  # inches
_INK, _MUTED, _RULE = "#1a1f25", "#5b6670", "#e3e5e4"


def _figure(width: float, height: float) -> Figure:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with rc_context({"font.family": ["Liberation Sans", "DejaVu Sans"]}):
        figure = Figure(figsize=(width, height), dpi=110, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def _plain(text: str) -> str:
    """Text that Matplotlib shows unchanged: a dollar sign would start a formula."""
    return text.replace("$", r"\$")


def _ticks(axes: Axes, x: list[int], kind: str) -> None:
    first, last = min(x).bit_length() - 1, max(x).bit_length()
    step = max(2, 2 * -(-(last - first) // 16))
    positions = [1 << power for power in range(-(-first // step) * step, last + 1, step)]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(positions, [format_bytes(one) for one in positions], fontsize=8)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: _short(value, kind))
    axes.tick_params(colors=_MUTED, labelsize=8, length=0)
    axes.grid(color=_RULE, linewidth=0.7)
    axes.set_axisbelow(True)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _short(value: float, kind: str) -> str:
    text = format_seconds(value) if kind == "time" else format_rate(value)
    return re.sub(r"\.0+(?= )", "", text)


def _values(kind: str, sizes: list[int], seconds: list[float]) -> list[float]:
    return seconds if kind == "time" else [size / one for size, one in zip(sizes, seconds, strict=True)]


def _draw_curve(axes: Axes, kind: str, line: dict[str, Any], strong: bool) -> None:
    look = palette.look(line["mechanism"])
    style = palette.STYLES[line["dash"]]
    alpha = 1.0 if strong else 0.6
    sizes = line["bytes"]
    axes.plot(
        sizes,
        _values(kind, sizes, line["seconds"]),
        color=look.light,
        linestyle=style,
        linewidth=1.8 if strong else 1.1,
        marker=look.marker,
        markersize=4 if strong else 3,
        alpha=alpha,
        label=_plain(line["label"]),
    )
    low, high = (_values(kind, sizes, line[end]) for end in ("low", "high"))
    axes.fill_between(sizes, low, high, color=look.light, alpha=0.15, linewidth=0)


def _draw_chosen(axes: Axes, kind: str, chosen: list[dict[str, Any]]) -> None:
    sizes = [size for piece in chosen for size in piece["bytes"]]
    seconds = [one for piece in chosen for one in piece["seconds"]]
    axes.plot(sizes, _values(kind, sizes, seconds), color=_INK, alpha=0.16, linewidth=9, solid_capstyle="round")
    low, high = axes.get_xlim()
    for piece in chosen:
        ends = max(piece["from"], low, 1), min(piece["to"], high)
        if ends[0] < ends[1]:
            axes.plot(
                ends,
                [1.02, 1.02],
                transform=axes.get_xaxis_transform(),
                clip_on=False,
                color=palette.look(piece["mechanism"]).light,
                linewidth=5,
                solid_capstyle="butt",
            )


def _draw_panel(axes: Axes, kind: str, curves: dict[str, Any]) -> None:
    sizes = sorted({size for line in curves["series"] for size in line["bytes"]})
    _ticks(axes, sizes, kind)
    picked = {piece["label"] for piece in curves["chosen"]}
    for line in curves["series"]:
        _draw_curve(axes, kind, line, line["label"] in picked)
    if curves["limit"]:
        ends = [sizes[0], sizes[-1]]
        low, high = axes.get_ylim()
        limit = [size / curves["limit"] for size in ends] if kind == "time" else [curves["limit"]] * 2
        axes.plot(ends, limit, color=_MUTED, linestyle=(0, (4, 3)), linewidth=1.1)
        axes.set_ylim(low, high if kind == "time" else max(high, 1.6 * curves["limit"]))
        if kind == "rate":
            axes.annotate(
                f"limit {format_rate(curves['limit'])}",
                (ends[0], limit[0]),
                (0, 3),
                textcoords="offset points",
                fontsize=8,
                color=_MUTED,
            )
    _draw_chosen(axes, kind, curves["chosen"])
    axes.set_title("Time" if kind == "time" else "Bandwidth", loc="left", fontsize=9, color=_INK, pad=13)


def _legend_columns(labels: Iterable[str]) -> int:
    """The number of columns: three, or fewer if labels are long."""
    return max(1, min(3, _LEGEND_CHARACTERS // (8 + max(map(len, labels), default=0))))


def curve_picture(group: dict[str, Any], operation: str, heading: str) -> Figure:
    curves = group["operations"][operation]
    columns = _legend_columns(one["label"] for one in curves["series"])
    lines = -(-len(curves["series"]) // columns)
    height = 4.6 + _LEGEND_LINE * lines
    figure = _figure(10.5, height)
    title = f"{group['title']} ({group['pair']}): {definitions.TITLES[operation]}"
    figure.text(0.02, 1 - 0.24 / height, _plain(title), fontsize=12, weight="bold", color=_INK, va="center")
    figure.text(0.02, 1 - 0.5 / height, _plain(heading), fontsize=8.5, color=_MUTED, va="center")
    bottom, top = (0.45 + _LEGEND_LINE * lines) / height, 1 - 1.0 / height
    left, right = (figure.add_axes((x, bottom, 0.415, top - bottom)) for x in (0.07, 0.565))
    _draw_panel(left, "time", curves)
    _draw_panel(right, "rate", curves)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="lower left", bbox_to_anchor=(0.02, 0.005), ncols=columns, fontsize=7.5, frameon=False
    )
    return figure


def matrix_picture(matrix: Matrix, heading: str) -> Figure:
    rows, columns = len(matrix.sources), len(matrix.places)
    width, height = 1.6 + 0.85 * columns, 1.5 + 0.6 * rows
    figure = _figure(width, height)
    axes = figure.add_axes((0.9 / width, 0.03, 1 - 1.1 / width, 1 - 1.25 / height))
    shades = [[float("nan")] * columns for _ in range(rows)]
    for (source, destination), cell in matrix.cells.items():
        row, column = matrix.sources.index(source), matrix.places.index(destination)
        share = matrix.share(cell)
        dark = share > 0.55 if not matrix.lower_is_better else share < 0.45
        shades[row][column] = 1 - share if matrix.lower_is_better else share
        colour = "white" if dark else _INK
        axes.text(
            column,
            row - 0.08,
            _plain(f"≈ {cell.text}" if cell.of else cell.text),
            ha="center",
            va="center",
            fontsize=8.5,
            color=colour,
            style="italic" if cell.of else "normal",
            weight="bold" if cell.odd else "normal",
        )
        axes.text(column, row + 0.25, _plain(cell.note), ha="center", va="center", fontsize=6.5, color=colour)
    axes.imshow(shades, cmap="Blues", vmin=-0.15, vmax=1.15, aspect="auto")
    axes.set_xticks(range(columns), matrix.places)
    axes.set_yticks(range(rows), matrix.sources)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, labelsize=8.5, colors=_MUTED)
    for spine in axes.spines.values():
        spine.set_visible(False)
    figure.text(
        0.02,
        1 - 0.22 / figure.get_figheight(),
        _plain(matrix.title),
        fontsize=11,
        weight="bold",
        color=_INK,
        va="center",
    )
    told = f"{heading} - ≈ marks a figure of another, similar pair" if matrix.copies else heading
    figure.text(0.02, 1 - 0.47 / figure.get_figheight(), _plain(told), fontsize=8, color=_MUTED, va="center")
    return figure
