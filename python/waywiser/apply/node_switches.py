"""GPUDirect RDMA and GDRCopy between nodes: the cost of each of their four settings, and the choice between them.

A setting is best at a size if it is the fastest there. If one setting must serve all sizes from 8 B to 64 MiB:
- `latency`: the setting with the most messages per second, mean over the sizes; small messages decide.
- `bandwidth`: the setting with the most bytes per second in both directions at once, mean over the sizes; large
  messages decide.
- `mixed`: the setting with the smallest worst loss over all sizes, for latency, one direction and both directions.
Among settings within 2 % of the best, the smallest worst loss decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from waywiser.other_nodes import device_of, is_elsewhere
from waywiser.profile import Path, Profile
from waywiser.simulator.sweep import Curve, best_settings
from waywiser.units import format_bytes

SIZES = tuple(1 << power for power in range(3, 27))
PURPOSES = ("latency", "bandwidth", "mixed")
OPERATIONS = {"latency": "latency", "streaming": "bandwidth", "bidirectional": "bidirectional"}
TITLES = {"latency": "latency", "streaming": "one way", "bidirectional": "both ways"}
_ALIKE = 1.02

Switches = tuple[str, str]  # gdr, gdrcopy: "on" or "off"
NAMES: dict[Switches, str] = {
    ("off", "off"): "neither",
    ("off", "on"): "GDRCopy",
    ("on", "off"): "GDR",
    ("on", "on"): "both",
}


def name_of(switches: Switches) -> str:
    """ "both", "GDR", "GDRCopy" or "neither"."""
    return NAMES[switches]


@dataclass(frozen=True)
class Case:
    """An operation and a size."""

    operation: str
    bytes: int

    @property
    def text(self) -> str:
        return f"{format_bytes(self.bytes)} {TITLES[self.operation]}"


@dataclass(frozen=True)
class NodePath:
    """A path from a memory here to one of another node over one rail: seconds by operation, setting and size."""

    source: str
    destination: str
    rail: str
    times: Mapping[str, Mapping[Switches, Mapping[int, float]]]

    @property
    def node(self) -> str:
        """The type of the other node."""
        return self.destination.rpartition(":")[0]

    def seconds(self, case: Case, switches: Switches) -> float | None:
        """The measured time; for larger sizes, extrapolated at the rate of the largest measured size."""
        points = self.times.get(case.operation, {}).get(switches, {})
        if case.bytes in points or not points:
            return points.get(case.bytes)
        last = max(points)
        return points[last] * case.bytes / last if case.bytes > last else None

    def cases(self, operations: Sequence[str]) -> list[Case]:
        """The cases for which every setting is known."""
        wanted = (Case(operation, size) for operation in operations for size in SIZES)
        return [case for case in wanted if all(self.seconds(case, one) is not None for one in NAMES)]

    def least(self, case: Case) -> float:
        """The time of the fastest setting."""
        return min(seconds for one in NAMES if (seconds := self.seconds(case, one)) is not None)

    def loss(self, case: Case, switches: Switches) -> float:
        """The time relative to the fastest setting."""
        return (self.seconds(case, switches) or float("inf")) / self.least(case)

    def curves(self, operation: str) -> list[Curve]:
        """The curves in the form of `waywiser simulate --vary gdr,gdrcopy`."""
        sizes = [case.bytes for case in self.cases((operation,))]
        return [
            Curve(
                {"gdr": one[0], "gdrcopy": one[1]},
                OPERATIONS[operation],
                {size: self.seconds(Case(operation, size), one) or 0.0 for size in sizes},
            )
            for one in NAMES
        ]

    def by_size(self, operation: str) -> list[tuple[int, int, Switches]]:
        """Ranges of sizes with the fastest setting in each."""
        curves = self.curves(operation)
        found = best_settings(curves, sorted(curves[0].points)) if curves else []
        return [(first, last, (one.setting["gdr"], one.setting["gdrcopy"])) for first, last, one in found]


@dataclass(frozen=True)
class Single:
    """A setting for all sizes, compared with the fastest setting at each size."""

    switches: Switches
    purpose: str
    share: float  # of the messages or bytes per second that the fastest setting at each size would have
    worst_loss: float
    worst: Case
    node: str

    @property
    def text(self) -> str:
        """For people."""
        told = f"{name_of(self.switches)} for {self.purpose}"
        if self.worst_loss < _ALIKE:
            return f"{told}: fastest at every size"
        return (
            f"{told}: at worst {self.worst_loss:.1f} times the time of the fastest ({self.worst.text} to {self.node})"
        )


@dataclass(frozen=True)
class NodePaths:
    """The paths between two kinds of memory: to each type of node over the rail that serves it best.

    `own`: the name of the type that they start from, if there are paths to another node of this type.
    """

    paths: tuple[NodePath, ...]
    own: str = ""

    @property
    def deciding(self) -> NodePaths:
        """The paths that decide the settings of a node of this type: those to its own type, since paths to other types
        show the hardware of both ends; all paths if there are none to its own type.
        """
        mine = tuple(path for path in self.paths if path.node == self.own)
        return NodePaths(mine, self.own) if mine else self

    @property
    def by_node(self) -> dict[str, NodePaths]:
        """The paths grouped by the type of the other node."""
        found: dict[str, tuple[NodePath, ...]] = {}
        for path in self.paths:
            found[path.node] = (*found.get(path.node, ()), path)
        return {node: NodePaths(paths, self.own) for node, paths in found.items()}

    @cached_property
    def operations(self) -> tuple[str, ...]:
        """The operations that were timed on every path."""
        return tuple(one for one in OPERATIONS if all(path.cases((one,)) for path in self.paths))

    def single(self, purpose: str, of: Sequence[Switches] = tuple(NAMES)) -> Single | None:
        """The best setting among `of` for all sizes; None if some were not timed."""
        if not self.paths or not self.operations:
            return None
        found = [self._judged(one, purpose) for one in of]
        if purpose == "mixed":
            return min(found, key=lambda one: (round(one.worst_loss / _ALIKE, 2), -one.share))
        most = max(one.share for one in found)
        return min((one for one in found if one.share * _ALIKE >= most), key=lambda one: one.worst_loss)

    def judged_by(self, purpose: str) -> tuple[str, ...]:
        """The operations that count for a purpose."""
        if purpose == "mixed":
            return self.operations
        wanted = "latency" if purpose == "latency" else "bidirectional"
        return (wanted if wanted in self.operations else self.operations[-1],)

    def _judged(self, switches: Switches, purpose: str) -> Single:
        cases = [(path, case) for path in self.paths for case in path.cases(self.judged_by(purpose))]
        path, worst = max(cases, key=lambda one: one[0].loss(one[1], switches))
        return Single(switches, purpose, self._share(switches, purpose), path.loss(worst, switches), worst, path.node)

    def _share(self, switches: Switches, purpose: str) -> float:
        """Mean over the paths."""
        operation = self.judged_by("bandwidth" if purpose == "mixed" else purpose)[0]
        shares = []
        for path in self.paths:
            cases = path.cases((operation,))
            weight = (lambda case: 1) if purpose == "latency" else (lambda case: case.bytes)
            mine = sum(weight(case) / (path.seconds(case, switches) or float("inf")) for case in cases)
            shares.append(mine / sum(weight(case) / path.least(case) for case in cases))
        return sum(shares) / len(shares)


def paths_of(profile: Profile) -> list[NodePath]:
    """Every UCX path to another node over one rail, with the times of its settings."""
    found: dict[tuple[str, str, str], dict[str, dict[Switches, dict[int, float]]]] = {}
    for one in profile.series:
        given = dict(one.path.parameters)
        if one.operation not in OPERATIONS or not _has_switches(one.path):
            continue
        times = found.setdefault((one.path.source, one.path.destination, given.get("device", "")), {})
        points = {point.bytes: point.seconds for point in one.points}
        times.setdefault(one.operation, {})[given["gdr"], given["gdrcopy"]] = points
    return [NodePath(*key, times) for key, times in found.items()]


def _has_switches(path: Path) -> bool:
    given = dict(path.parameters)
    one_rail = "+" not in given.get("device", "")
    return (
        path.mechanism == "ucx" and is_elsewhere(path.destination) and {"gdr", "gdrcopy"} <= given.keys() and one_rail
    )


def between_nodes(
    profile: Profile | None,
    source: str = "gpu",
    destination: str = "gpu",
    operations: Sequence[str] = tuple(OPERATIONS),
) -> NodePaths:
    """The paths from memory of kind `source` here to memory of kind `destination` of each node type, its own first."""
    best: dict[tuple[str, str], NodePath] = {}
    for whole in paths_of(profile) if profile else ():
        path = replace(whole, times={name: one for name, one in whole.times.items() if name in operations})
        kinds = path.source.startswith(source), device_of(path.destination).startswith(destination)
        pair = path.source, path.destination
        if not all(kinds) or not path.cases(operations):
            continue
        if pair not in best or _total(path) < _total(best[pair]):
            best[pair] = path
    own = own_name(profile) if profile else ""
    return NodePaths(tuple(sorted(best.values(), key=lambda path: (path.node != own, path.node))), own)


def own_name(profile: Profile) -> str:
    """The name in the profile of another node of the same type; empty if there is none."""
    return profile.other_nodes.get(profile.fingerprint, "")


def _total(path: NodePath) -> float:
    """The figure by which rails are compared: the fastest setting at every size."""
    return sum(path.least(case) / case.bytes for case in path.cases(tuple(OPERATIONS)))


@dataclass(frozen=True)
class Limit:
    """GPUDirect RDMA below this size, staging from it on; the worst loss against the fastest setting at each size."""

    bytes: int
    worst_loss: float
    worst: Case


def limit_for(paths: NodePaths, purpose: str) -> Limit:
    """The best single size for the purpose from which on messages are staged."""
    return min(_limits(paths, paths.judged_by(purpose)), key=lambda one: one.worst_loss)


def _limits(paths: NodePaths, operations: Sequence[str]) -> Iterator[Limit]:
    cases = [(path, case) for path in paths.paths for case in path.cases(operations)]
    for size in (*SIZES[1:], SIZES[-1] << 1):
        losses = [(path.loss(case, ("on" if case.bytes < size else "off", "on")), case) for path, case in cases]
        loss, worst = max(losses, key=lambda one: one[0])
        yield Limit(size, loss, worst)


def wins(paths: NodePaths, switch: int, value: str) -> list[Case]:
    """The cases in which a switch (0: GDR, 1: GDRCopy) must have this value: all settings without it are 2 % slower."""
    found = []
    for path in paths.paths:
        for case in path.cases(paths.operations):
            others = [one for one in NAMES if one[switch] != value]
            if all(path.loss(case, one) > _ALIKE for one in others):
                found.append(case)
    return found
