"""The plan as Python values: the way to take for each key and range of sizes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import waywiser._core as _core
from waywiser.errors import InputError
from waywiser.files import parse_json
from waywiser.json_fields import check_by_core
from waywiser.other_nodes import for_people, names_of
from waywiser.profile import Pair, Path

SCHEMA = "waywiser.plan"
OLDEST, VERSION = 1, 3  # older ones are refused by name

Json = dict[str, Any]


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

    def of_files(self) -> list[PlanRow]:
        """The rows of files, of all file systems."""
        return [row for row in self.rows if row.operation.startswith("file_")]


def _row(value: Json) -> PlanRow:
    of_messages = "pairs" in value
    return PlanRow(
        value["operation"],
        value["from_bytes"],
        value["to_bytes"],
        tuple(RankedWay(one["way"], float(one["ratio"] or 0)) for one in value["ways"]),
        tuple((one["bytes"], float(one["seconds"])) for one in value["expected"]),
        value["why"],
        tuple((source, destination) for source, destination in value.get("pairs", ())),
        value["processes"] if of_messages else 0,
        value["rail"] if of_messages else "",
        value["encrypted"] if of_messages else False,
        "" if of_messages else value["memory"],
        0 if of_messages else value["ranks"],
        value.get("shape", ""),
        value.get("partner", ""),
    )


def read_plan(data: bytes, what: str) -> Plan:
    """A plan from its JSON; InputError names the first wrong field, with `what` (a file name) before it; of a plan of
    an older version it names the command that makes a new one."""
    value = parse_json(data, what, SCHEMA, VERSION, OLDEST)
    check_by_core(_core.check_plan, data, what)
    value = for_people(value, names_of(value))
    rows = tuple(_row(row) for row in value["rows"])
    return Plan(value["fingerprint"], value["machine"], value["backend"], value["simulated"], rows)


def with_found(plan: str, old: str | None) -> str:
    """The plan in the JSON text `plan`, with the rows of the plan `old` that `choose` does not make: programs have
    measured them (halo exchanges, arrays of a server's GPU)."""
    if old is None:
        return plan
    try:
        read_plan(old.encode("utf-8"), "plan.json")
        was = json.loads(old)
    except (ValueError, InputError):
        return plan
    found = [row for row in was["rows"] if row.get("shape") or row.get("partner")]
    value = json.loads(plan)
    return json.dumps({**value, "rows": [*value["rows"], *found]}) if found else plan
