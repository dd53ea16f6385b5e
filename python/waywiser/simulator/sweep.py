"""One transfer between two nodes over sizes and settings: what `waywiser simulate latency|bandwidth` runs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from waywiser import _core
from waywiser.errors import InputError
from waywiser.simulator.costs import costs_json

OPERATIONS = {"latency": "latency", "bandwidth": "streaming", "bidirectional": "bidirectional"}
# What `--vary` knows, with its values.
VARIED: dict[str, tuple[str, ...]] = {"gdr": ("off", "on"), "gdrcopy": ("off", "on"), "nics": ("1", "2")}
Show = Callable[[int, int, float, str], None]


@dataclass(frozen=True)
class Curve:
    """Seconds per transfer over sizes, for one setting; or why it cannot be had."""

    setting: dict[str, str]
    operation: str
    points: dict[int, float]
    unavailable: str = ""
    trace: dict[str, Any] | None = None

    def label(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.setting.items()) or "default"

    def rate(self, size: int) -> float:
        """Bytes per second; of both directions together where both move."""
        return (2 if self.operation == "bidirectional" else 1) * size / self.points[size]


@dataclass
class Sweep:
    """Which transfer, on which cluster (the core's keys), over what."""

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

    def settings(self) -> list[dict[str, str]]:
        """All combinations of what varies, the last one changing fastest."""
        for name in self.vary:
            if name not in VARIED:
                raise InputError(f"--vary {name!r}: write some of {','.join(VARIED)},nodes")
        fixed = {"gdr": "on", "gdrcopy": "on", "nics": "1", **self.fixed}
        combinations = itertools.product(*(VARIED[name] for name in self.vary))
        return [{**fixed, **dict(zip(self.vary, values, strict=True))} for values in combinations]

    def request(self) -> dict[str, Any]:
        nodes = int(self.cluster.get("nodes", 1))
        paths = []
        for setting in self.settings():
            path = {
                "mechanism": "ucx",
                "source": self.source,
                "destination": self.destination,
                "processes": 1,
                "parameters": {"transports": "ib", **setting},
            }
            paths.append({"path": path, "from_node": 0, "to_node": nodes - 1})
        operations = [OPERATIONS[self.operation]]
        return {
            "cluster": self.cluster,
            "paths": paths,
            "operations": operations,
            "sizes": self.sizes,
            "trace": self.trace,
        }

    def run(self, show: Show) -> list[Curve]:
        def progress(text: str) -> bool:
            told = json.loads(text)
            show(int(told["done"]), int(told["total"]), 0.0, str(told["label"]))
            return True

        costs = costs_json(self.values, self.topology.name)
        answer = json.loads(_core.simulate(self.topology, costs, json.dumps(self.request()), progress))
        curves = []
        for setting, result in zip(self.settings(), answer["results"], strict=True):
            shown = {name: setting[name] for name in self.vary}
            points = {int(point["bytes"]): float(point["seconds"]) for point in result["points"]}
            reason = str(result.get("unavailable", ""))
            curves.append(Curve(shown, self.operation, points, reason, result.get("trace")))
        return curves


def best_settings(curves: list[Curve], sizes: list[int]) -> list[tuple[int, int, Curve]]:
    """Ranges of sizes with the setting that is fastest there. No change of setting for less than 2 %; where several are
    that close, the one that changes least against the range before."""
    ranges: list[tuple[int, int, Curve]] = []
    for size in sizes:
        usable = [curve for curve in curves if size in curve.points]
        if not usable:
            continue
        least = min(curve.points[size] for curve in usable)
        close = [curve for curve in usable if curve.points[size] <= 1.02 * least]
        held = ranges[-1][2] if ranges else None
        best = held if held in close and held else max(close, key=lambda curve: _alike(curve, held))
        if held is best:
            ranges[-1] = (ranges[-1][0], size, best)
        else:
            ranges.append((size, size, best))
    return ranges


def _alike(curve: Curve, other: Curve | None) -> int:
    return sum(curve.setting[name] == other.setting.get(name) for name in curve.setting) if other else 0
