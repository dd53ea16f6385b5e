"""The output of `waywiser simulate published`: published figures beside predictions, with commands and sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_uppercase

from rich.table import Table

from waywiser.report.simulated import LABEL
from waywiser.simulator.figures import machine_commands
from waywiser.simulator.findings import Row, summary
from waywiser.terminal import table


def _numbered(rows: Sequence[Row]) -> dict[str, int]:
    return {command: number for number, command in enumerate(dict.fromkeys(c for row in rows for c in row.commands), 1)}


def _published_cells(row: Row, numbers: dict[str, int]) -> list[str]:
    published = f"{row.low:g}" if row.low == row.high else f"{row.low:g} to {row.high:g}"
    if math.isinf(row.high):
        published = f"above {row.low:g}"
    figures = [published, f"{row.predicted:.3g}", row.unit, f"{100 * row.error:+.0f} %"]
    come_from = ", ".join(str(numbers[command]) for command in row.commands)
    return [row.machine, row.finding, *figures, come_from + (f": {row.how}" if row.how else "")]


def _lettered(rows: Sequence[Row]) -> dict[str, str]:
    """Sources -> A, B, ..., in the order in which they are named."""
    sources = dict.fromkeys(row.source for row in rows if row.source)
    return dict(zip(sources, ascii_uppercase, strict=False))


def published_table(rows: Sequence[Row]) -> Table:
    """Published beside predicted, with the numbers of the commands."""
    numbers, letters = _numbered(rows), _lettered(rows)
    columns = ("machine", "finding", ">published", ">predicted", "unit", ">error", "from command")
    shown = table(*columns, *(["source"] if letters else []), title=f"Predictions. {LABEL}")
    for row in rows:
        shown.add_row(*_published_cells(row, numbers), *([letters.get(row.source, "")] if letters else []))
    return shown


def published_commands(rows: Sequence[Row]) -> list[str]:
    """The commands, a line each, with their numbers in comments; before them those that make machine files."""
    commands = _numbered(rows)
    return [*machine_commands(list(commands)), *(f"{command}  # {number}" for command, number in commands.items())]


def published_sources(rows: Sequence[Row]) -> list[str]:
    """The sources that rows have of their own, a line each, with their letters."""
    return [f"- {letter}: {source}" for source, letter in _lettered(rows).items()]


def published_markdown(rows: Sequence[Row]) -> str:
    """The tables in Markdown, for docs/experiments.md."""
    numbers, letters = _numbered(rows), _lettered(rows)
    head = [
        "Machine",
        "Finding",
        "Published",
        "Simulated",
        "Unit",
        "Error",
        "From command",
        *(["Source"] if letters else []),
    ]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in rows:
        cells = [*_published_cells(row, numbers), *([letters.get(row.source, "")] if letters else [])]
        lines.append(f"| {' | '.join(cells)} |")
    sources = published_sources(rows)
    below = ["", *sources, "", f"{summary(rows)}."] if sources else []
    return "\n".join([*lines, "", "```", *published_commands(rows), "```", *below])
