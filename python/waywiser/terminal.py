"""Tables for the terminal. Strings from the data are shown unchanged, without interpreting markup."""

from __future__ import annotations

import os

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from waywiser.profile import PairClass, Profile

_WIDEST = 10_000


def console() -> Console:
    """Standard output; 100 columns if it is not a terminal and COLUMNS is not set."""
    found = Console(highlight=False)
    told = found.is_terminal or "COLUMNS" in os.environ
    return found if told else Console(highlight=False, width=100)


def print_result(what: RenderableType) -> None:
    """Prints to standard output. What is not for a terminal gets the width that it needs, so that nothing is cut."""
    shown, target = Group(what), console()  # a Text alone would lose its own wrapping
    if not target.is_terminal and "COLUMNS" not in os.environ:
        least = Measurement.get(target, target.options.update(width=_WIDEST), shown).minimum
        target = Console(highlight=False, width=max(target.width, least))
    target.print(shown)


def table(*columns: str, title: str = "") -> Table:
    """A table with thin lines; columns that start with ">" are right-aligned, those with "!" keep their width."""
    gap = (0, 2 if console().width >= 100 else 1, 0, 0)
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=gap, title_justify="left")
    made.title = Text(title, "bold") if title else None
    for column in columns:
        name = column.lstrip(">!")
        right, fixed = column.startswith(">"), column != name
        made.add_column(name, justify="right" if right else "left", no_wrap=fixed, overflow="fold")
    return made


def add(made: Table, *cells: str) -> None:
    """A row of plain text."""
    made.add_row(*(Text(cell) for cell in cells))


def group_name(group: PairClass) -> str:
    """The class in words: "host to GPU, PHB, two processes"."""
    return group.title


def operation_name(profile: Profile, group: PairClass, operation: str) -> str:
    """The operation, with the number of pairs that moved at once if that was measured."""
    pairs = profile.pairs_at_once(group, operation)
    return f"{operation} ({pairs} pairs at once)" if pairs else operation


def spaced(label: str) -> str:
    """A path's label with spaces, so that lines can break between parameters."""
    return label.replace("(", " (").replace(",", ", ")
