"""The plan as Python values: a path for each class of pairs, operation and range of sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import waywiser._core as _core
from waywiser.checked import Node
from waywiser.other_nodes import with_names
from waywiser.profile import OPERATIONS, Pair, Path
from waywiser.profile_reader import read_pair, read_path

SCHEMA = "waywiser.plan"
OLDEST, VERSION = 1, 2


@dataclass(frozen=True)
class RunnerUp:
    """The second best path and its time divided by that of the chosen one."""

    path: Path
    ratio: float


@dataclass(frozen=True)
class PlanRow:
    """The path to take for sizes from `from_bytes` to `to_bytes`, both included; `expected` in (bytes, seconds).

    Its key is (node type, device) -> (node type, device, rail). The first type is the plan's; the second is part of the
    places of another node ("hse-a:gpu0"). `rail`: for ranks bound to this network device; empty: for all other ranks.
    """

    pairs: tuple[Pair, ...]
    processes: int
    operation: str
    from_bytes: int
    to_bytes: int
    path: Path
    expected: tuple[tuple[int, float], ...]
    runner_up: RunnerUp | None
    why: str
    rail: str = ""

    def serves(self, pair: Pair, processes: int, operation: str, rail: str = "") -> bool:
        """Whether this row is for that pair, operation and rail."""
        same = self.operation == operation and self.processes == processes and self.rail == rail
        return same and pair in self.pairs


@dataclass(frozen=True)
class CollectiveRow:
    """The algorithm for a collective of `ranks` ranks; `runner_up_ratio` is the second's time divided by its time."""

    operation: str
    memory: str
    ranks: int
    from_bytes: int
    to_bytes: int
    way: str
    expected: tuple[tuple[int, float], ...]
    runner_up: str
    runner_up_ratio: float
    why: str


@dataclass(frozen=True)
class Plan:
    """All choices for one machine."""

    fingerprint: str
    machine: str
    backend: str
    simulated: bool
    rows: tuple[PlanRow, ...]
    collectives: tuple[CollectiveRow, ...] = ()

    def rows_of(self, pair: Pair, processes: int, operation: str, rail: str = "") -> list[PlanRow]:
        """The rows of one pair, operation and rail, ascending sizes."""
        found = [row for row in self.rows if row.serves(pair, processes, operation, rail)]
        return sorted(found, key=lambda row: row.from_bytes)


def _read_row(node: Node) -> PlanRow:
    path = read_path(node.child("path"))
    pairs = tuple(read_pair(pair) for pair in node.items("pairs")) or (path.pair,)
    runner_up = None
    if node.has("runner_up"):
        second = node.child("runner_up")
        runner_up = RunnerUp(read_path(second.child("path")), second.number("ratio"))
    first = node.integer("from_bytes")
    return PlanRow(
        pairs,
        node.integer("processes", 1, 1, 2),
        node.word("operation", OPERATIONS),
        first,
        node.integer("to_bytes", least=first),
        path,
        _expected(node),
        runner_up,
        node.text("why", ""),
        node.text("rail", ""),
    )


def _expected(node: Node) -> tuple[tuple[int, float], ...]:
    points = node.items("expected")
    return tuple((one.integer("bytes", least=1), one.number("seconds", above_zero=True)) for one in points)


def _read_collective(node: Node) -> CollectiveRow:
    first = node.integer("from_bytes")
    return CollectiveRow(
        node.text("operation"),
        node.text("memory"),
        node.integer("ranks", least=2),
        first,
        node.integer("to_bytes", least=first),
        _core.algorithm_of_today(node.text("way")),
        _expected(node),
        _core.algorithm_of_today(node.text("runner_up", "")),
        node.number("runner_up_ratio"),
        node.text("why", ""),
    )


def read_plan(value: Any, what: str) -> Plan:
    """A plan from its JSON; InputError names the first wrong field, with `what` (a file name) before it."""
    node = Node(with_names(value), what)
    return Plan(
        node.text("fingerprint"),
        node.text("machine"),
        node.text("backend"),
        node.flag("simulated"),
        tuple(_read_row(row) for row in node.items("rows")),
        tuple(_read_collective(row) for row in node.items("collectives")) if node.has("collectives") else (),
    )
