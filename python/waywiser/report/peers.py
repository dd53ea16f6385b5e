"""The classic peer report (as p2pBandwidthLatencyTest prints it) as tables."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser import terminal
from waywiser.json_fields import clean
from waywiser.report.markup import Child, Markup, el, join, table
from waywiser.report.matrices import share

_TITLES = {
    "connectivity": "Peer access",
    "one_way": "Bandwidth one way, GB/s",
    "both_ways": "Bandwidth both ways, GB/s",
    "latency_gpu": "Latency as the GPU sees it, µs",
    "latency_cpu": "Latency as the CPU sees it, µs",
    "off": "peer access off",
    "on": "peer access on",
    "nvlinks": "NVLinks stated by NVML (and inferred from bandwidth, if that differs)",
    "notes": "Notes",
}


def title(key: str) -> str:
    """Words for a key of the report."""
    return _TITLES.get(key, clean(key).replace("_", " "))


def is_matrix(value: Any) -> bool:
    """Whether `value` is a list of rows of plain values."""
    return (
        isinstance(value, list)
        and 0 < len(value) <= 64
        and all(
            isinstance(row, list) and len(row) <= 64 and not any(isinstance(x, (list, dict)) for x in row)
            for row in value
        )
    )


def cell_text(value: Any) -> str:
    """A cell of a matrix."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    return clean(str(value))


def _nvlinks(value: Any) -> Any:
    """Stated and inferred counts as one matrix: "18", or "16 of 18" if they differ."""
    keys = ("stated", "inferred", "mismatch")
    sides: list[Any] = [value.get(key) for key in keys] if isinstance(value, dict) else [None]
    if not all(is_matrix(side) for side in sides) or len({tuple(map(len, side)) for side in sides}) != 1:
        return value
    return [
        [f"{i} of {s}!" if wrong else cell_text(s) for s, i, wrong in zip(*rows, strict=True)]
        for rows in zip(*sides, strict=True)
    ]


def blocks(report: dict[str, Any]) -> list[tuple[str, Any]]:
    """(title, matrix or plain value) of every part of the report, in order."""
    hidden = {"schema", "version", "fingerprint", "machine", "backend", "simulated", "created"}
    shown = {key: _nvlinks(one) if key == "nvlinks" else one for key, one in report.items() if key not in hidden}
    return [one for one in _leaves(shown, ()) if one[1] not in ([], {}, None, "")]


def _leaves(value: Any, name: tuple[str, ...]) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and len(name) < 5:
        return [one for key, inner in value.items() for one in _leaves(inner, (*name, str(key)))]
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        value = "; ".join(clean(one) for one in value[:64])
    return [(", ".join(title(key) for key in name), value)]


def _is_figure(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def _heat_cell(value: Any, values: list[float]) -> Markup:
    text = cell_text(value)
    if not _is_figure(value):
        return el("td", text, class_="warned" if text.endswith("!") else "none" if value is None else "plain")
    return el("td", text, style=f"--share:{share(value, values):.3f}")


def _heat_map(name: str, matrix: list[list[Any]]) -> Markup:
    figures = {(i, j): x for i, row in enumerate(matrix) for j, x in enumerate(row) if _is_figure(x)}
    values = [x for (i, j), x in figures.items() if i != j] or list(figures.values())  # a GPU and itself is apart
    lower = name.startswith("Latency")
    head = ["from \\ to", *(f"gpu{index}" for index in range(len(matrix[0])))]
    rows = [
        [el("th", f"gpu{index}", scope="row"), *(_heat_cell(one, values) for one in row)]
        for index, row in enumerate(matrix)
    ]
    return el("figure", el("figcaption", el("b", name)), table(head, rows, class_="heat lower" if lower else "heat"))


def peer_tables(peers: dict[str, Any]) -> Markup | None:
    """The report as heat maps; plain values as a list of terms."""
    maps: list[Child] = []
    terms: list[Child] = []
    columns = 2
    for name, value in blocks(peers):
        if is_matrix(value):
            maps.append(_heat_map(name, value))
            columns = max(columns, len(value[0]) + 1)
        else:
            terms.append(join(el("dt", name), el("dd", cell_text(value)[:2000])))
    if not maps and not terms:
        return None
    return join(el("div", maps, class_="maps", style=f"--columns:{columns}"), el("dl", terms) if terms else None)


def peers_table(peers: dict[str, Any]) -> RenderableType:
    """The classic peer report as tables."""
    parts: list[RenderableType] = []
    for name, value in blocks(peers):
        if is_matrix(value):
            parts.append(Text(name, "bold"))
            made = terminal.table("", *(f">gpu{index}" for index in range(len(value[0]))))
            for index, row in enumerate(value):
                terminal.add(made, f"gpu{index}", *(cell_text(one) for one in row))
            parts.append(made)
        else:
            parts.append(Text(f"{name}: {cell_text(value)}"))
    return Group(*parts) if parts else Text("no GPUs")
