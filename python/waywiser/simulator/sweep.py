"""One transfer, or several at once, over sizes and settings, for `waywiser simulate latency|bandwidth`."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from waywiser import _core
from waywiser.errors import InputError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.costs import costs_json
from waywiser.stages import Show, Watch

OPERATIONS = {"latency": "latency", "bandwidth": "streaming", "bidirectional": "bidirectional"}
# The settings of `--vary`, with their values.
VARIED: dict[str, tuple[str, ...]] = {"gdr": ("off", "on"), "gdrcopy": ("off", "on"), "nics": ("1", "2")}
WAY, BY_TCP, INSIDE = "ucx transports=ib", "ucx transports=network-tcp", "copy_engine"
# Transports of UCX that go from node to node; all other paths are within the first node.
BETWEEN_NODES = ("ib", "roce", "rc", "dc", "ud", "network-tcp")
_EQUAL = 1 + 1e-6
PAIR, ALL = "pair", "all"  # of several pairs: the name of the setting, and its value for all together


def path_in(text: str) -> tuple[str, dict[str, str]]:
    """ "host_staged variant=whole" -> mechanism and parameters. Raises InputError."""
    mechanism, *words = text.split() or [""]
    pairs = [word.partition("=") for word in words]
    if not mechanism or "=" in mechanism or not all(equals and value for _, equals, value in pairs):
        raise InputError(f"--path {text!r}: write MECHANISM NAME=VALUE ..., such as 'sm_copy direction=push blocks=64'")
    return mechanism, {name: value for name, _, value in pairs}


def usual_way(machines: Sequence[Any]) -> str:
    """Between nodes of these topologies: by RDMA, unless all network cards of one of them only carry TCP."""
    cards = [[machine.has_rdma(nic) for nic in machine.ids("nic")] for machine in machines]
    return BY_TCP if any(one and not any(one) for one in cards) else WAY


@dataclass(frozen=True)
class Curve:
    """Seconds per transfer over sizes, for one setting; or why it is not available. `at_once`: so many move in that
    time."""

    setting: dict[str, str]
    operation: str
    points: dict[int, float]
    unavailable: str = ""
    trace: dict[str, Any] | None = None
    at_once: int = 1

    def label(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.setting.items()) or "default"

    def rate(self, size: int) -> float:
        """Bytes per second; the sum of all that move at once, and of both directions."""
        return self.at_once * (2 if self.operation == "bidirectional" else 1) * size / self.points[size]


@dataclass
class Sweep:
    """A transfer on a cluster (the core's keys) over ranges of parameters."""

    topology: Any
    cluster: dict[str, Any]
    operation: str
    sizes: list[int]
    vary: list[str] = field(default_factory=list)
    fixed: dict[str, str] = field(default_factory=dict)
    source: str = "gpu0"
    destination: str = "gpu0"
    values: dict[str, Any] = field(default_factory=dict)
    trace: bool = False
    way: str = ""  # mechanism and parameters; settings are added to those of ib and roce; empty: usual_way()
    others: list[Any] = field(default_factory=list)  # topologies of further types of node
    beside: list[tuple[str, str]] = field(default_factory=list)  # pairs of places that send at the same time
    assumed: list[Assumption] = field(default_factory=list)  # by the last run

    def settings(self) -> list[dict[str, str]]:
        """All combinations of the varied settings, the last one changing fastest."""
        for name in self.vary:
            if name not in VARIED:
                raise InputError(f"--vary {name!r}: write some of {','.join(VARIED)},nodes")
        by_rdma = path_in(self.path())[1].get("transports") in ("ib", "roce")
        usual = {"gdr": "on" if self._direct_rdma() else "off", "gdrcopy": "on", "nics": "1"} if by_rdma else {}
        if not by_rdma and (self.vary or self.fixed):
            names = ", ".join([*self.vary, *self.fixed])
            raise InputError(f"{names}: settings of UCX over RDMA, not of --path {self.path()!r}")
        fixed = {**usual, **self.fixed}
        combinations = itertools.product(*(VARIED[name] for name in self.vary))
        return [{**fixed, **dict(zip(self.vary, values, strict=True))} for values in combinations]

    def _last(self) -> Any:
        """The topology of the last node."""
        kind = self.cluster["types"][-1] if self.others else 0
        return self.others[kind - 1] if kind else self.topology

    def _direct_rdma(self) -> bool:
        """Whether NICs can reach the memory of both ends, as far as the machine files say."""
        ends = ((self.topology, self.source), (self._last(), self.destination))
        return all(machine.device(place).attributes.get("gpudirect_rdma") != "no" for machine, place in ends)

    def path(self) -> str:
        """`way`, or the usual one."""
        return self.way or usual_way([self.topology, self._last()])

    def remote(self) -> bool:
        """Whether the path is from node to node."""
        return path_in(self.path())[1].get("transports") in BETWEEN_NODES

    def pairs(self) -> list[tuple[str, str]]:
        return [(self.source, self.destination), *self.beside]

    def request(self) -> dict[str, Any]:
        mechanism, parameters = path_in(self.path())
        last = int(self.cluster.get("nodes", 1)) - 1 if self.remote() else 0
        paths = []
        for setting, (source, destination) in itertools.product(self.settings(), self.pairs()):
            path = {
                "mechanism": mechanism,
                "source": source,
                "destination": destination,
                "processes": 2 if mechanism == "ucx" and not self.remote() else 1,
                "parameters": {**parameters, **setting},
            }
            paths.append({"path": path, "from_node": 0, "to_node": last, "pairs": self.pairs()})
        operations = ["loaded" if self.beside else OPERATIONS[self.operation]]
        return {
            "cluster": self.cluster if self.remote() else {"nodes": 1},
            "paths": paths,
            "operations": operations,
            "sizes": self.sizes,
            "trace": self.trace,
        }

    def run(self, show: Show) -> list[Curve]:
        costs = costs_json(self.values, self.topology.name)
        others = [(one, costs_json(self.values, one.name)) for one in self.others]
        answer = json.loads(
            _core.simulate(self.topology, costs, json.dumps(self.request()), Watch(show).progress, others)
        )
        self.assumed = added([], answer)
        results = iter(answer["results"])
        curves = []
        for setting in self.settings():
            shown = {name: setting[name] for name in self.vary}
            each = [self._curve({**shown, PAIR: f"{a}>{b}"}, next(results)) for a, b in self.pairs()]
            if self.beside and not self.vary:
                curves += each
            shown |= {PAIR: ALL} if self.beside and not self.vary else {}
            curves.append(_together(shown, each))
        return curves

    def _curve(self, setting: dict[str, str], result: dict[str, Any]) -> Curve:
        points = {int(point["bytes"]): float(point["seconds"]) for point in result["points"]}
        return Curve(setting, self.operation, points, str(result.get("unavailable", "")), result.get("trace"))


def _together(setting: dict[str, str], each: Sequence[Curve]) -> Curve:
    """Until the last one of those has ended that move at once."""
    points = {size: max(curve.points[size] for curve in each) for size in each[-1].points}
    return replace(each[-1], setting=setting, points=points, at_once=len(each))


def best_settings(curves: list[Curve], sizes: list[int]) -> list[tuple[int, int, Curve]]:
    """Ranges of sizes with the fastest setting. If several are equally fast: the one that changes least from the range
    before, and with the most switched on."""
    ranges: list[tuple[int, int, Curve]] = []
    for size in sizes:
        usable = [curve for curve in curves if size in curve.points]
        if not usable:
            continue
        least = min(curve.points[size] for curve in usable)
        close = [curve for curve in usable if curve.points[size] <= _EQUAL * least]
        held = ranges[-1][2] if ranges else None
        best = held if held in close and held else max(close, key=lambda curve: (_alike(curve, held), _on(curve)))
        if held is best:
            ranges[-1] = (ranges[-1][0], size, best)
        else:
            ranges.append((size, size, best))
    return ranges


def _on(curve: Curve) -> int:
    return sum(value == "on" for value in curve.setting.values())


def _alike(curve: Curve, other: Curve | None) -> int:
    return sum(curve.setting[name] == other.setting.get(name) for name in curve.setting) if other else 0
