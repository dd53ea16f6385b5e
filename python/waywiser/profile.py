"""The profile as Python values, for display."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

SCHEMA = "waywiser.profile"
OLDEST, VERSION = 1, 2
OPERATIONS = ("latency", "streaming", "bidirectional", "loaded")
NO_PAIRS = (
    "loaded: no class of this machine has several pairs that could move at once; streaming is the same for one pair"
)
COLLECTIVES = ("all_reduce", "all_gather", "broadcast", "reduce_scatter", "all_to_all")
MESSAGE = "message"  # between two GPUs, on streams; between two processes in host memory
PUT_MESSAGE = "put_message"  # between two GPUs, by a block of a kernel
PREPARED = "prepared_exchange"  # of GPUs, with both neighbours in a ring
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

    @property
    def verb(self) -> str:
        """ "measured", or "simulated"."""
        return "simulated" if self.simulated else "measured"

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
