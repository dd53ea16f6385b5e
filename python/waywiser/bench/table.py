"""Tables with the columns that users of the OSU Micro-Benchmarks know: `# Size`, then figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.bench.operations import Operation
from waywiser.bench.row import Figures, Row

_FIRST, _WIDTH = 10, 18
_HOW = {"blocking": "", "stream": ", enqueued on a stream", "graph": ", replayed in a CUDA graph"}
_HOW["kernel"] = ", called by a kernel"
Column = tuple[str, Callable[[Row, Figures], str]]


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.2f}"


def _columns(operation: Operation, full: bool) -> list[Column]:
    median: Column = ("Latency (us)", lambda row, of: _us(of.median))
    p99: Column = ("p99 (us)", lambda row, of: _us(of.p99))
    rate: Column = ("Bandwidth (MB/s)", lambda row, of: f"{row.rate(of) / 1e6:.2f}")
    if operation.shape == "bandwidth":
        return [rate, p99] if full else [rate]
    if operation.shape == "rate":
        return [("MB/s", rate[1]), ("Messages/s", lambda row, of: f"{row.messages(of):.2f}")]
    if operation.shape == "overlap":
        return [
            ("Overall(us)", median[1]),
            ("Compute(us)", lambda row, of: _us(of.compute)),
            ("Pure Comm.(us)", lambda row, of: _us(of.alone)),
            ("Overlap(%)", lambda row, of: f"{100 * of.overlap:.2f}"),
        ]
    if operation.shape == "startup":
        return [
            ("Median (ms)", lambda row, of: f"{of.median * 1e3:.1f}"),
            ("Max (ms)", lambda row, of: f"{of.p99 * 1e3:.1f}"),
        ]
    if not operation.collective:
        return [median, p99]
    first: Column = ("Avg Latency(us)", median[1])
    if not full:
        return [first, p99]
    return [
        first,
        ("Min Latency(us)", lambda row, of: _us(of.spread[0])),
        ("Max Latency(us)", lambda row, of: _us(of.spread[1])),
        p99,
        ("Iterations", lambda row, of: str(of.samples * of.calls)),
    ]


def head(rows: Sequence[Row], label: str, full: bool) -> list[str]:
    """The lines above the rows of one operation and memory."""
    row = rows[0]
    operation = row.operation
    lines = [
        f"# Waywiser bench: {operation.title}" + (f" (osu_{operation.osu})" if operation.osu else ""),
        f"# {row.ranks} ranks, {_memory(operation, row.memory)}{_HOW[row.mode]}{label}; medians",
    ]
    names = list(dict.fromkeys(name for one in rows for name in one.peers))
    if names:
        lines.append("# ratio: our time in parts of the other's, from slices in turn; below 1 is faster")
    columns = _columns(operation, full)
    titles = [title for title, _ in columns]
    for name in names:
        titles += [f"{name[: _WIDTH - 2]}", "ratio"]
    first = "# Size" if operation.sized else "#"
    lines.append(f"{first:<{_FIRST}}" + "".join(f"{title:>{_WIDTH}}" for title in titles))
    return lines


def _memory(operation: Operation, memory: str) -> str:
    first, _, second = memory.partition(">")
    if not operation.sized:
        return first
    return f"{first} to {second or first}" if not operation.collective else f"{first} in, {second or first} out"


def _ratio(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"  # never 0.00


def line(row: Row, names: Sequence[str], full: bool) -> str:
    """A row; peers show the first column only, and the ratio."""
    columns = _columns(row.operation, full)
    cells = [cell(row, row.ours) for _, cell in columns]
    for name in names:
        if name in row.peers:
            cells += [columns[0][1](row, row.peers[name]), _ratio(row.ratio(name))]
        else:
            cells += ["-", "-"]
    first = str(row.bytes) if row.operation.sized else ""
    return f"{first:<{_FIRST}}" + "".join(f"{cell:>{_WIDTH}}" for cell in cells)


def tables(rows: Sequence[Row], label: str, full: bool) -> list[str]:
    """All lines: a table for each operation, memory and mode, in the order of the rows."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.operation.name, row.memory, row.mode), []).append(row)
    lines: list[str] = []
    for group in groups.values():
        names = list(dict.fromkeys(name for one in group for name in one.peers))
        lines += ["", *head(group, label, full), *(line(row, names, full) for row in group)]
    return lines[1:]
