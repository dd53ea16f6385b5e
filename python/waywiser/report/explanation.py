"""The answer of `explain` as a table for the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from waywiser.json_fields import clean
from waywiser.terminal import console, spaced, table
from waywiser.units import format_percent, format_rate, format_seconds


def explain_table(answer: dict[str, Any], head: str) -> RenderableType:
    """The answer of `explain`: candidates, cheapest first, then unavailable mechanisms."""
    wide = console().width >= 110
    times = [">simulated"] if answer.get("simulated") else [">measured", ">predicted"]
    made = table("", "path", *times, *([">bandwidth"] if wide else []), ">limit", ">ratio", "why")
    labels = [_label(one.get("label") or one.get("path")) for one in _objects(answer.get("candidates"))]
    longest = max((len(word) for label in labels for word in spaced(label).split()), default=0)
    made.columns[1].min_width = min(max(24, longest), 36) if console().width >= 100 else 12
    chosen = _label(answer.get("chosen"))
    for one, label in zip(_objects(answer.get("candidates")), labels, strict=True):
        measured = one.get("measured")
        seconds = _figure(measured.get("seconds") if isinstance(measured, dict) else None, format_seconds)
        cells = [
            "*" if label == chosen else "",
            spaced(label),
            *([] if answer.get("simulated") else [seconds]),
            _figure(one.get("predicted"), format_seconds),
            *([_figure(one.get("rate"), format_rate)] if wide else []),
            _figure(one.get("percent_of_limit"), _of_limit),
            _figure(one.get("ratio"), lambda value: f"{value:.2f}"),
            _why(one),
        ]
        made.add_row(*(Text(cell, "bold" if label == chosen else "") for cell in cells))
    lines = [Text(f"unavailable: {_unavailable(one)}", "dim") for one in _objects(answer.get("unavailable"))]
    pairs = answer.get("pairs_at_once")
    if isinstance(pairs, int):
        head += f"; {pairs} pairs at once"
    return Group(Text(head, "bold"), made, *lines)


def _why(one: dict[str, Any]) -> str:
    """The reason; shortened if it only repeats the ratio."""
    why = clean(str(one.get("why") or ""))
    return "slower" if why.endswith("times the time of the chosen path") else spaced(why)


def _of_limit(percent: float) -> str:
    return format_percent(percent / 100)


def _unavailable(one: dict[str, Any]) -> str:
    label, reason = _label(one.get("label")), clean(str(one.get("reason") or ""))
    return reason if reason.startswith(label) else f"{label}: {reason}"


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _label(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("label") or value.get("mechanism")
    return clean(str(value or ""))


def _figure(value: Any, shown: Any) -> str:
    return str(shown(value)) if isinstance(value, (int, float)) and value > 0 else "-"
