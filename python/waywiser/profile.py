"""The profile as Python values. The core writes the file and checks it in full; this module is for display."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from waywiser.checked import Node
from waywiser.other_nodes import names_of, with_names

SCHEMA = "waywiser.profile"
OLDEST, VERSION = 1, 2
OPERATIONS = ("latency", "streaming", "bidirectional", "loaded")
COLLECTIVES = ("all_reduce", "all_gather", "broadcast", "reduce_scatter", "all_to_all")
MESSAGE = "message"  # between two GPUs, on streams
PREPARED = "prepared_exchange"  # of GPUs, with both neighbours in a ring
_PLACE = re.compile(r"([A-Za-z0-9._-]{1,64}:)?(host|gpu)\d{1,4}")
_NUMBER = re.compile(r" #\d+$")
_CLASS = re.compile(r"(host|gpu)>(host|gpu) (.+?)( #\d+)?")
_ENDS = {"host": "host", "gpu": "GPU"}

Pair = tuple[str, str]


@dataclass(frozen=True)
class Path:
    """One path from a memory to another; `processes` is 2 if source and destination have different owners."""

    mechanism: str
    source: str
    destination: str
    processes: int
    parameters: tuple[tuple[str, str], ...] = ()

    @cached_property
    def label(self) -> str:
        """Mechanism and parameters without the pair: "host_staged(chunk=2M,depth=4)"."""
        if not self.parameters:
            return self.mechanism
        return f"{self.mechanism}({','.join(f'{name}={value}' for name, value in self.parameters)})"

    @property
    def pair(self) -> Pair:
        """Source and destination."""
        return self.source, self.destination

    @property
    def pair_text(self) -> str:
        """ "gpu0>gpu1", or "gpu0>>gpu1" between two processes."""
        return pair_text(self.pair, self.processes)


@dataclass(frozen=True)
class Point:
    """Seconds for one transfer of `bytes`: the median and its confidence interval."""

    bytes: int
    seconds: float
    low: float
    high: float
    p50: float
    p99: float
    samples: int
    cpu_seconds: float
    verified: bool

    @property
    def rate(self) -> float:
        """Bytes per second."""
        return self.bytes / self.seconds


@dataclass(frozen=True)
class Series:
    """One path under one operation, ascending sizes. `limit` in bytes/s of the slowest hop; 0: unknown.

    `pairs`: number of pairs that moved at once under `loaded`; 0 for other operations and in older files.
    """

    path: Path
    operation: str
    points: tuple[Point, ...]
    limit: float
    limit_source: str
    pairs: int = 0


@dataclass(frozen=True)
class PairClass:
    """Similar pairs; the first was measured and represents all."""

    name: str
    members: tuple[Pair, ...]
    processes: int

    @property
    def kind(self) -> str:
        """The name without the number that tells classes of one relation apart: "host>gpu SYS"."""
        return _NUMBER.sub("", self.name)

    @property
    def words(self) -> str:
        """The class for people: "host to GPU, PHB"; "within one GPU"; "host to GPU, SYS, as host1 to gpu2"."""
        found = _CLASS.fullmatch(self.name)
        if not found:
            return self.name
        source, destination, relation, number = found.groups()
        if relation == "same":
            text = f"within one {_ENDS[source]}"
        else:
            text = f"{_ENDS[source]} to {_ENDS[destination]}, {relation}"
        return f"{text}, as {self.members[0][0]} to {self.members[0][1]}" if number else text

    @property
    def title(self) -> str:
        """`words`, with "two processes" added if needed."""
        says = self.processes == 1 or "process" in self.name
        return self.words if says else f"{self.words}, two processes"


@dataclass(frozen=True)
class FirstUse:
    """Seconds from opening a path to the end of its first small transfer."""

    path: Path
    seconds: float


@dataclass(frozen=True)
class Unavailable:
    """A mechanism that cannot serve a pair, and why."""

    mechanism: str
    source: str
    destination: str
    processes: int
    reason: str


@dataclass(frozen=True)
class Rejected:
    """A measured figure that was rejected, and the reason."""

    path: Path
    operation: str
    bytes: int
    reason: str


@dataclass(frozen=True)
class Profile:
    """All measurements of one machine."""

    fingerprint: str
    machine: str
    backend: str
    simulated: bool
    created: str
    state: dict[str, Any]
    classes: tuple[PairClass, ...]
    series: tuple[Series, ...]
    first_use: tuple[FirstUse, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()
    rejected: tuple[Rejected, ...] = field(default=())
    survey: tuple[Series, ...] = ()  # every pair of a class at few sizes, to distinguish pairs
    other_nodes: Mapping[str, str] = field(default_factory=dict)  # fingerprint -> name, of places such as "hse-a:gpu0"

    def series_of(self, pair: Pair, processes: int, operation: str) -> list[Series]:
        """The series of one pair and operation."""
        return self._by_pair.get((pair, processes, operation), [])

    @cached_property
    def _by_pair(self) -> dict[tuple[Pair, int, str], list[Series]]:
        found: dict[tuple[Pair, int, str], list[Series]] = {}
        for series in self.series:
            found.setdefault((series.path.pair, series.path.processes, series.operation), []).append(series)
        return found

    def surveyed(self, pair: Pair, processes: int, operation: str) -> Series | None:
        """The survey's figure for this pair, to distinguish it from others of its class; None if there is none."""
        return self._survey.get((pair, processes, operation))

    @cached_property
    def _survey(self) -> dict[tuple[Pair, int, str], Series]:
        return {(one.path.pair, one.path.processes, one.operation): one for one in self.survey if one.points}

    def pairs_at_once(self, group: PairClass, operation: str) -> str:
        """The number of pairs that moved at once: "12" or "16 of 56"; empty except for `loaded`, and in older files."""
        series = self.series_of(self.measured_pair(group), group.processes, operation)
        pairs, members = max((one.pairs for one in series), default=0), len(group.members)
        return "" if pairs == 0 else f"{pairs} of {members}" if pairs < members else f"{pairs}"

    def paths(self) -> set[Path]:
        """Every path that has at least one figure."""
        return {series.path for series in self.series if series.points}

    def measured_pair(self, group: PairClass) -> Pair:
        """The member of `group` that has figures; the first member if none has."""
        for pair in group.members:
            if any(self.series_of(pair, group.processes, operation) for operation in OPERATIONS):
                return pair
        return group.members[0]

    def warning(self) -> str:
        """The warning that a reader must see first; empty for real measurements."""
        return warning(self.backend, self.simulated)


def warning(backend: str, simulated: bool) -> str:
    """The label of figures that are not measurements of a machine."""
    if backend == "virtual_gpu":
        return "Virtual GPUs: not a measurement of any GPU"
    return "Simulated: not a measurement" if simulated else ""


def pair_text(pair: Pair, processes: int = 1) -> str:
    """ "gpu0>gpu1", or "gpu0>>gpu1" between two processes."""
    return f"{pair[0]}{'>' if processes == 1 else '>>'}{pair[1]}"


def pair_words(pair: Pair, processes: int = 1) -> str:
    """ "gpu0 to gpu1", or "gpu0 to gpu1, two processes"."""
    return f"{pair[0]} to {pair[1]}{', two processes' if processes == 2 else ''}"


def read_place(node: Node, key: str) -> str:
    """A place, "host0" or "gpu3", under `key`."""
    place = node.text(key)
    if not _PLACE.fullmatch(place):
        raise node.child(key).refuse("must be a place: host0 or gpu0")
    return place


def read_pair(node: Node) -> Pair:
    """A list of two places."""
    places = [element.value for element in node.elements()]
    if len(places) != 2 or not all(isinstance(place, str) and _PLACE.fullmatch(place) for place in places):
        raise node.refuse('must be two places: ["host0", "gpu0"]')
    return places[0], places[1]


def read_path(node: Node) -> Path:
    """A path object."""
    parameters = node.value.get("parameters", {}) if isinstance(node.value, dict) else {}
    if not isinstance(parameters, dict) or len(parameters) > 32:
        raise node.refuse("parameters must be an object of at most 32 entries")
    return Path(
        node.text("mechanism"),
        read_place(node, "source"),
        read_place(node, "destination"),
        node.integer("processes", 1, 1, 2),
        tuple(sorted((name, Node(parameters, node.where).text(name)) for name in parameters)),
    )


def _read_point(node: Node) -> Point:
    seconds = node.number("seconds", above_zero=True)
    return Point(
        node.integer("bytes", least=1, most=1 << 60),
        seconds,
        node.number("low", seconds, above_zero=True),
        node.number("high", seconds, above_zero=True),
        node.number("p50", seconds, above_zero=True),
        node.number("p99", seconds, above_zero=True),
        node.integer("samples", 0),
        node.number("cpu_seconds", 0.0),
        node.flag("verified"),
    )


def _read_series(node: Node, with_limit: bool) -> Series:
    points = tuple(_read_point(point) for point in node.items("points"))
    if any(a.bytes >= b.bytes for a, b in pairwise(points)):
        raise node.refuse("sizes must ascend")
    operation = node.word("operation", OPERATIONS)
    limit, source = node.number("limit", 0.0), node.text("limit_source", "")
    if not with_limit:
        limit, source = 0.0, ""
    pairs = node.integer("pairs", 0, 0, 1 << 20)
    return Series(read_path(node.child("path")), operation, points, limit, source, pairs)


def _read_class(node: Node) -> PairClass:
    members = tuple(read_pair(pair) for pair in node.items("members"))
    if not members:
        raise node.refuse("members must not be empty")
    return PairClass(node.text("name"), members, node.integer("processes", 1, 1, 2))


def _read_unavailable(node: Node) -> Unavailable:
    places = read_place(node, "source"), read_place(node, "destination")
    return Unavailable(node.text("mechanism"), *places, node.integer("processes", 1, 1, 2), node.text("reason"))


def _read_rejected(node: Node) -> Rejected:
    path = read_path(node.child("path"))
    return Rejected(path, node.word("operation", OPERATIONS), node.integer("bytes", 0), node.text("reason"))


def _missing_classes(classes: tuple[PairClass, ...], series: tuple[Series, ...]) -> Iterator[PairClass]:
    """Adds a class for each measured pair that is in no class."""
    known = {(pair, group.processes) for group in classes for pair in group.members}
    for one in series:
        key = (one.path.pair, one.path.processes)
        if key not in known:
            known.add(key)
            yield PairClass(one.path.pair_text, (one.path.pair,), one.path.processes)


def _refuse_double(series: tuple[Series, ...], node: Node) -> None:
    known: set[tuple[Path, str]] = set()
    for one in series:
        if (one.path, one.operation) in known:
            raise node.refuse(f"{one.path.pair_text} {one.path.label} is there twice for {one.operation}")
        known.add((one.path, one.operation))


def read_profile(value: Any, what: str) -> Profile:
    """A profile from its JSON; InputError names the first wrong field, with `what` (a file name) before it."""
    names = names_of(value)
    node = Node(with_names(value, names) if names else value, what)
    state = value.get("state", {}) if isinstance(value, dict) else {}
    classes = tuple(_read_class(one) for one in node.items("classes"))
    real = node.text("backend") != "virtual_gpu"  # limits of wires do not apply to virtual GPUs
    series = tuple(_read_series(one, real) for one in node.items("series"))
    _refuse_double(series, node)
    return Profile(
        node.text("fingerprint"),
        node.text("machine"),
        node.text("backend"),
        node.flag("simulated"),
        node.text("created", ""),
        state if isinstance(state, dict) else {},
        (*classes, *_missing_classes(classes, series)),
        series,
        tuple(FirstUse(read_path(one.child("path")), one.number("seconds")) for one in node.items("first_use")),
        tuple(_read_unavailable(one) for one in node.items("unavailable")),
        tuple(_read_rejected(one) for one in node.items("rejected")),
        tuple(_read_series(one, real) for one in node.items("survey")),
        names,
    )
