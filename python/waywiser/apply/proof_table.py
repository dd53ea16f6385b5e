"""Settings against latency and bandwidth, the best marked."""

from __future__ import annotations

from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.apply.prove import Proof
from waywiser.report.terminal import add, print_result, table
from waywiser.units import format_bytes, format_rate, format_seconds

_MOST_COLUMNS = 5


def print_proof(title: str, proof: Proof) -> None:
    """A table of the medians, the best marked, and a verdict for each variant."""
    shown = proof.variants[:_MOST_COLUMNS]
    if shown[-1] is not proof.variants[-1]:
        shown = (*shown[:-1], proof.variants[-1])
    made = table("test", ">size", *(f">{one.name}" for one in shown), title=title)
    last = ""
    for test, size in proof.cases:
        middles = [median(one.times((test, size))) for one in shown]
        cells = [_cell(test, size, seconds, seconds == min(middles)) for seconds in middles]
        add(made, test if test != last else "", format_bytes(size), *cells)
        last = test
    parts: list[RenderableType] = [made, Text()]
    for name, one in proof.verdicts.items():
        mark = "kept   " if name == proof.kept else "dropped"
        parts.append(Text(f"{mark}  {name}: {one.text}", "green" if name == proof.kept else "dim"))
    if proof.kept == proof.base:
        parts.append(Text(f"{proof.base}: best here", "green"))
    print_result(Group(*parts, Text()))


def _cell(test: str, size: int, seconds: float, best: bool) -> str:
    text = format_rate(size / seconds) if test == "one way" else format_seconds(seconds)
    return f"{text} *" if best else f"{text}  "
