"""The view for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.monitor.watcher import View
from waywiser.terminal import add, table
from waywiser.units import format_bytes, format_rate


def screen(view: View) -> RenderableType:
    """Rates, totals and errors of each device, and slow links and missing counters."""
    made = table("link", "device", ">received", ">sent", ">received in all", ">sent in all", ">errors")
    for road, device in sorted({key[:2] for key in (*view.sample.bytes, *view.rates)}):
        errors = sum(count for key, count in view.sample.errors.items() if key[:2] == (road, device))
        cells = [_rate(view, road, device, word) for word in ("received", "sent")]
        totals = [_total(view, road, device, word) for word in ("received", "sent")]
        add(made, road, device, *cells, *totals, str(errors))
    parts: list[RenderableType] = [made]
    again = view.sample.errors.get(("network", "tcp", "retransmitted"))
    if again is not None:
        parts.append(Text(f"TCP segments sent again: {again}", "dim"))
    if view.job:
        moved = ", ".join(f"{road} {format_bytes(count)}" for road, count in view.job_bytes.items() if count)
        parts.append(Text(f"job {view.job}: {view.job_seconds:.0f} s, {moved or 'nothing moved'}"))
    parts += [Text(f"slow: {line}", "bold yellow") for line in view.warnings]
    parts += [Text(line, "dim") for line in view.sample.missing]
    return Group(*parts)


def _rate(view: View, road: str, device: str, word: str) -> str:
    rate = view.rates.get((road, device, word))
    return "-" if rate is None else format_rate(rate)


def _total(view: View, road: str, device: str, word: str) -> str:
    count = view.sample.bytes.get((road, device, word))
    return "-" if count is None else format_bytes(count)
