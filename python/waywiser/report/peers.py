"""The classic peer report (as p2pBandwidthLatencyTest prints it) as tables."""

from __future__ import annotations

from typing import Any

from waywiser.checked import clean
from waywiser.report.markup import Child, Markup, el, join, table

_TITLES = {
    "connectivity": "Peer access",
    "one_way": "Bandwidth one way, GB/s",
    "both_ways": "Bandwidth both ways, GB/s",
    "latency_gpu": "Latency as the GPU sees it, µs",
    "latency_cpu": "Latency as the CPU sees it, µs",
    "off": "peer access off",
    "on": "peer access on",
    "nvlinks": "NVLinks",
    "stated": "stated by NVML",
    "inferred": "inferred from bandwidth",
    "mismatch": "mismatch",
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
        return f"{value:.4g}"
    return clean(str(value))


def blocks(value: Any, name: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """(title, matrix or plain value) of every leaf of the report, in order."""
    if isinstance(value, dict) and len(name) < 5:
        return [one for key, inner in value.items() for one in blocks(inner, (*name, str(key)))]
    return [(", ".join(title(key) for key in name), value)]


def peer_tables(peers: dict[str, Any]) -> Markup | None:
    """The report as tables; plain values as a list of terms."""
    maps: list[Child] = []
    terms: list[Child] = []
    hidden = {"schema", "version", "fingerprint", "machine", "backend", "simulated", "created"}
    for name, value in blocks({key: one for key, one in peers.items() if key not in hidden}):
        if is_matrix(value):
            head = ["from \\ to", *(f"gpu{index}" for index in range(len(value[0])))]
            rows = [[el("th", f"gpu{i}", scope="row"), *(cell_text(one) for one in row)] for i, row in enumerate(value)]
            maps.append(el("figure", el("figcaption", el("b", name)), table(head, rows, class_="heat plain")))
        elif value not in ([], {}, None, ""):
            terms.append(join(el("dt", name), el("dd", cell_text(value)[:2000])))
    if not maps and not terms:
        return None
    return join(el("div", maps, class_="maps", style="--columns:6"), el("dl", terms) if terms else None)
