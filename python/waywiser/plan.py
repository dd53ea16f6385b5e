"""The plan as Python values: the way to take for each key and range of sizes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import waywiser._core as _core
from waywiser.errors import InputError
from waywiser.json_fields import Node
from waywiser.other_nodes import PLACE, for_people, names_of
from waywiser.profile import OPERATIONS, Pair, Path

SCHEMA = "waywiser.plan"
OLDEST, VERSION = 1, 3  # older ones are refused by name
_LONGEST_WAY = 65536


@dataclass(frozen=True)
class RankedWay:
    """A way and its time divided by that of the chosen one, in the middle of the range; 0: not measured there."""

    way: str
    ratio: float


@dataclass(frozen=True)
class PlanRow:
    """The way to take for sizes from `from_bytes` to `to_bytes`, both included; `expected` in (bytes, seconds).

    A row for messages has `pairs`, `processes`, `rail` and `encrypted`; a row for what a group does has `memory` and
    `ranks`, of a halo exchange also its `shape`, of arrays of a server's GPU also the `partner` ("HOST:PORT gpu0"). The
    places of `pairs` at another node have its type ("hse-a:gpu0"). `rail`: for ranks bound to this network device;
    empty: for all other ranks. `encrypted`: for jobs that encrypt.
    """

    operation: str
    from_bytes: int
    to_bytes: int
    ways: tuple[RankedWay, ...]  # the one to take, its runner-up, then the best of each owner
    expected: tuple[tuple[int, float], ...]
    why: str
    pairs: tuple[Pair, ...] = ()
    processes: int = 0
    rail: str = ""
    encrypted: bool = False
    memory: str = ""
    ranks: int = 0
    shape: str = ""
    partner: str = ""

    @property
    def way(self) -> str:
        """The way to take."""
        return self.ways[0].way

    @property
    def runner_up(self) -> RankedWay | None:
        """The second fastest in the middle of the range."""
        return self.ways[1] if len(self.ways) > 1 and self.ways[1].ratio else None

    @cached_property
    def path(self) -> Path:
        """The way of a message as a path, for the first pair."""
        mechanism, parameters = _core.parse_way(self.way)
        return Path(mechanism, *self.pairs[0], self.processes, tuple(sorted(parameters.items())))

    def serves(self, pair: Pair, processes: int, operation: str, rail: str = "") -> bool:
        """Whether this row is for messages of that pair, operation and rail that are not encrypted."""
        same = self.operation == operation and self.processes == processes and self.rail == rail
        return same and not self.encrypted and pair in self.pairs


@dataclass(frozen=True)
class Plan:
    """All choices for one machine."""

    fingerprint: str
    machine: str
    backend: str
    simulated: bool
    rows: tuple[PlanRow, ...]

    def rows_of(self, pair: Pair, processes: int, operation: str, rail: str = "") -> list[PlanRow]:
        """The rows of messages of one pair, operation and rail, ascending sizes."""
        found = [row for row in self.rows if row.serves(pair, processes, operation, rail)]
        return sorted(found, key=lambda row: row.from_bytes)

    def messages(self) -> list[PlanRow]:
        """The rows of messages."""
        return [row for row in self.rows if row.pairs]

    def of_groups(self) -> list[PlanRow]:
        """The rows of collectives and of what else the ranks of any group do together."""
        return [row for row in self.rows if not (row.pairs or row.shape or row.partner)]


def _read_pair(node: Node) -> Pair:
    places = [element.value for element in node.elements()]
    if len(places) != 2 or not all(isinstance(place, str) and PLACE.fullmatch(place) for place in places):
        raise node.refuse('must be two places: ["host0", "gpu0"]')
    return places[0], places[1]


def _read_ways(node: Node) -> tuple[RankedWay, ...]:
    ways = []
    for one in node.items("ways"):
        way = one.text("way", longest=_LONGEST_WAY)
        try:
            _core.parse_way(way)
        except InputError as error:
            raise one.refuse(str(error)) from None
        ways.append(RankedWay(way, one.number("ratio", above_zero=True) if one.has("ratio") else 0.0))
    if not ways:
        raise node.refuse("ways must not be empty")
    return tuple(ways)


def _read_row(node: Node) -> PlanRow:
    first, of_messages = node.integer("from_bytes"), node.has("pairs")
    points = node.items("expected")
    pairs = tuple(_read_pair(pair) for pair in node.items("pairs")) if of_messages else ()
    if of_messages and not pairs:
        raise node.refuse("pairs must not be empty")
    return PlanRow(
        node.word("operation", OPERATIONS) if of_messages else node.text("operation"),
        first,
        node.integer("to_bytes", least=first),
        _read_ways(node),
        tuple((one.integer("bytes", least=1), one.number("seconds", above_zero=True)) for one in points),
        node.text("why", ""),
        pairs,
        node.integer("processes", 1, 1, 2) if of_messages else 0,
        node.text("rail", ""),
        node.flag("encrypted", False),
        "" if of_messages else node.text("memory"),
        0 if of_messages else node.integer("ranks", least=1),
        node.text("shape", ""),
        node.text("partner", ""),
    )


def read_plan(value: Any, what: str) -> Plan:
    """A plan from its JSON; InputError names the first wrong field, with `what` (a file name) before it; of a plan of
    an older version it names the command that makes a new one."""
    node = Node(for_people(value, names_of(value)), what)
    if node.integer("version") < VERSION:
        raise node.refuse("a plan of an older version; `waywiser plan` makes one from its profile")
    return Plan(
        node.text("fingerprint"),
        node.text("machine"),
        node.text("backend"),
        node.flag("simulated"),
        tuple(_read_row(row) for row in node.items("rows")),
    )


def with_found(plan: str, old: str | None) -> str:
    """The plan in the JSON text `plan`, with the rows of the plan `old` that `choose` does not make: programs have
    measured them (halo exchanges, arrays of a server's GPU)."""
    if old is None:
        return plan
    try:
        was = json.loads(old)
        read_plan(was, "plan.json")
    except (ValueError, InputError):
        return plan
    found = [row for row in was["rows"] if row.get("shape") or row.get("partner")]
    value = json.loads(plan)
    return json.dumps({**value, "rows": [*value["rows"], *found]}) if found else plan
