"""A table of latency and bandwidth by setting, the best marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.prove.prove import Proof, Variant
from waywiser.prove.transport_counters import Carried, transport_lines
from waywiser.terminal import add, print_result, table
from waywiser.units import format_bytes, format_rate, format_seconds

_MOST_COLUMNS = 5
_LONGEST_HEAD = 16  # characters; longer names are in the lines below the table


def print_proof(title: str, proof: Proof, carried: Mapping[str, Carried]) -> None:
    """A table of the medians, the best marked; a verdict on the speed of each variant, and on its transport."""
    shown = proof.variants[:_MOST_COLUMNS]
    if shown[-1] is not proof.variants[-1]:
        shown = (*shown[:-1], proof.variants[-1])
    heads = _heads(shown)
    made = table("test", ">size", *(f">{heads[one.name]}" for one in shown), title=title)
    last = ""
    for test, size in proof.cases:
        middles = [median(one.times((test, size))) for one in shown]
        cells = [_cell(test, size, seconds, seconds == min(middles)) for seconds in middles]
        add(made, test if test != last else "", format_bytes(size), *cells)
        last = test
    parts: list[RenderableType] = [made, Text()]
    for name, one in proof.verdicts.items():
        kept = set(name.split(" + ")) <= set(proof.kept.split(" + "))
        told = name if heads.get(name, name) == name else f"{heads[name]} {name}"
        parts.append(Text(f"{'kept   ' if kept else 'dropped'}  {told}: {one.text}", "green" if kept else "dim"))
    parts += [Text(f"fails    {name}: {why}", "yellow") for name, why in proof.failed.items()]
    parts += [Text(line) for line in transport_lines(proof, carried)]
    if proof.kept == proof.base:
        parts.append(Text(f"{proof.base}: best here", "green"))
    print_result(Group(*parts, Text()))


def _heads(shown: Sequence[Variant]) -> dict[str, str]:
    """Name -> heading of its column: the name, or [1], [2] for long names."""
    long = [one.name for one in shown if len(one.name) > _LONGEST_HEAD]
    return {one.name: f"[{long.index(one.name) + 1}]" if one.name in long else one.name for one in shown}


def _cell(test: str, size: int, seconds: float, best: bool) -> str:
    text = format_rate(size / seconds) if test.startswith("one way") else format_seconds(seconds)
    return f"{text} *" if best else f"{text}  "
