"""The verification of the choices at sizes not used for choosing: the chosen path against every other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from waywiser.json_fields import Node
from waywiser.other_nodes import PLACE, for_people, names_of
from waywiser.profile import OPERATIONS

SCHEMA = "waywiser.verification"
VERSION = 1


@dataclass(frozen=True)
class Case:
    """One pair, operation and size: the chosen path's seconds and those of the fastest; 0 where
    there is none. `ratio` >= 1; `failed` says why the chosen path did not work."""

    source: str
    destination: str
    processes: int
    operation: str
    bytes: int
    chosen: str
    chosen_seconds: float
    best: str
    best_seconds: float
    ratio: float
    equal: bool
    failed: str = ""


@dataclass(frozen=True)
class Verification:
    """`within_5_percent` counts the cases whose chosen path took at most 1.05 times the fastest.

    `skipped` cases did not fit into the time.
    """

    cases: int
    within_5_percent: int
    worst_ratio: float | None
    rows: tuple[Case, ...]
    skipped: int = 0
    median_ratio: float | None = None

    @property
    def fraction(self) -> float | None:
        """The fraction of cases within 5 %, 0 to 1; None without a case."""
        return self.within_5_percent / self.cases if self.cases else None


def _place(node: Node, key: str) -> str:
    place = node.text(key)
    if not PLACE.fullmatch(place):
        raise node.child(key).refuse("must be a place: host0 or gpu0")
    return place


def _read_case(node: Node) -> Case:
    return Case(
        _place(node, "source"),
        _place(node, "destination"),
        node.integer("processes", 1, 1, 2),
        node.word("operation", OPERATIONS),
        node.integer("bytes", least=0, most=1 << 60),
        node.text("chosen"),
        node.number("chosen_seconds", 0.0),
        node.text("best"),
        node.number("best_seconds", 0.0),
        node.number("ratio", above_zero=True),
        node.flag("equal"),
        node.text("failed", ""),
    )


def read_verification(value: Any, what: str) -> Verification:
    """A verification from its JSON; InputError names the first wrong field."""
    node = Node(for_people(value, names_of(value)), what)
    cases = node.integer("cases", most=1 << 40)
    within = node.integer("within_5_percent", most=cases)
    worst = node.number("worst_ratio", above_zero=True) if cases and node.has("worst_ratio") else None
    rows = sorted((_read_case(row) for row in node.items("rows")), key=lambda row: -row.ratio)
    middle = node.number("median_ratio", above_zero=True) if cases and node.has("median_ratio") else None
    return Verification(cases, within, worst, tuple(rows), node.integer("skipped", 0), middle)
