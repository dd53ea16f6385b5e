"""Fits the simulator's costs of a machine to a measured profile, and says what error is left.

Costs are fitted one after the other by golden steps in their logarithm, each to the series that it can change, to the
least mean of log(1 + |log(predicted / measured)| / 0.05): points that were disturbed while they were measured count
little. What remains is put into curves: for each path and operation the ratio measured / predicted over size, in pieces
that are linear in log(size) between the sizes that were used.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from waywiser import _core
from waywiser.profile import Profile, Series
from waywiser.simulator.costs import COSTS, COSTS_VERSION, parts

# Mechanism -> costs that change its times.
FITTED: dict[str, tuple[str, ...]] = {
    "copy_engine": (
        "copy.issue", "copy.issue_peer", "copy.issue_local", "copy.hold", "copy.hold_peer", "copy.hold_local",
        "copy.finish", "copy.finish_d2h", "pcie.share", "gpu.memory_share", "copy.peer_rate", "gpu.turn",
    ),
    "sm_copy": ("kernel.issue", "kernel.hold", "kernel.finish", "sm.block_rate", "sm.share"),
    "host_staged": (
        "staged.issue", "staged.issue_chunk", "staged.finish", "pageable.issue", "pageable.h2d_rate",
        "pageable.d2h_rate",
    ),
    "host_copy": (
        "host.copy_start", "host.fence", "host.thread_start", "host.thread_each", "host.near_rate", "host.cache_rate",
        "host.copy_rate", "host.past_rate", "memory.rate", "process.signal",
    ),
    "courier": ("courier.start", "courier.rate"),
    "split": ("split.issue",),
    "ucx": (
        "ucx.issue", "ucx.overhead", "ucx.segment", "ucx.shm_rate", "ucx.cma_rate", "ucx.cma_cached", "ucx.rendezvous",
        "ucx.ipc_small", "ucx.ipc_large", "ucx.ipc_threshold", "ucx.ipc_hold", "ucx.ipc_rate",
        "tcp.issue", "tcp.rate", "tcp.loopback",
    ),
}  # fmt: skip
_STEPS = (2.0, 1.3, 1.08, 1.02)
_SCALE = 0.05
Key = tuple[str, str]  # path with its pair, operation
Times = dict[Key, dict[int, float]]  # size -> seconds
Curve = list[tuple[int, float]]  # size, ratio
Show = Callable[[int, int, float, str], None]


@dataclass
class Calibration:
    """The costs that fit, their error, and the curves for what they leave."""

    machine: str
    fingerprint: str
    values: dict[str, float]
    curves: dict[Key, Curve] = field(default_factory=dict)
    errors: dict[str, dict[str, float]] = field(default_factory=dict)
    kinds: dict[str, dict[str, float]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        fitted = {name: value for name, value in sorted(self.values.items()) if value > 0}
        source = f"calibrated to the measured profile of {self.machine}, fingerprint {self.fingerprint}"
        return {
            "schema": COSTS,
            "version": COSTS_VERSION,
            "machine": self.machine,
            "fingerprint": self.fingerprint,
            "errors": self.errors,
            "values": {name: {"value": value, "source": source} for name, value in fitted.items()},
            "curves": [
                {"path": key[0], "operation": key[1], "ratios": [[size, round(ratio, 5)] for size, ratio in points]}
                for key, points in sorted(self.curves.items())
            ],
        }

    def text(self) -> str:
        """As a file: a line for each curve, so that differences can be read."""
        value = self.as_json()
        lines = ",\n".join("  " + json.dumps(curve) for curve in value.pop("curves"))
        return json.dumps(value, indent=1)[:-2] + f',\n "curves": [\n{lines}\n ]\n}}\n'


class Measured:
    """The points of a profile that the simulator can predict, by series."""

    def __init__(self, topology: Any, profile: Profile) -> None:
        self.topology = topology
        self.members = {(c.processes, *c.members[0]): [list(pair) for pair in c.members] for c in profile.classes}
        self.series = [series for series in profile.series if series.path.mechanism in {*FITTED, "relay"}]

    def points(self, series: Series, half: int | None) -> dict[int, float]:
        """Size -> seconds; of every second size when `half` is 0 or 1."""
        chosen = series.points if half is None else series.points[half::2]
        return {point.bytes: point.seconds for point in chosen}

    def predict(
        self, values: dict[str, float], mechanisms: Iterable[str] | None = None, half: int | None = None
    ) -> Times:
        """Of all series or those of some mechanisms, at all sizes or those of one half."""
        wanted = [s for s in self.series if mechanisms is None or s.path.mechanism in mechanisms]
        paths = []
        for series in wanted:
            place = (series.path.processes, series.path.source, series.path.destination)
            paths.append(
                {
                    "path": _path_json(series),
                    "operation": series.operation,
                    "sizes": list(self.points(series, half)),
                    "pairs": self.members.get(place, []) if series.operation == "loaded" else [],
                }
            )
        request = {
            "cluster": {"nodes": 1},
            "paths": paths,
            "sizes": [],
            "operations": ["latency", "streaming", "bidirectional", "loaded"],
        }
        costs = json.dumps({"parts": parts(), "values": values})
        answer = json.loads(_core.simulate(self.topology, costs, json.dumps(request)))
        found: Times = {}
        for result in answer["results"]:
            key = (_pair(result["path"]) + " " + result["label"], result["operation"])
            found[key] = {int(point["bytes"]): float(point["seconds"]) for point in result["points"]}
        return found


def _path_json(series: Series) -> dict[str, Any]:
    path = series.path
    return {
        "mechanism": path.mechanism,
        "source": path.source,
        "destination": path.destination,
        "processes": path.processes,
        "parameters": dict(path.parameters),
    }


def _pair(path: dict[str, Any]) -> str:
    return f"{path['source']}{'>' if path['processes'] == 1 else '>>'}{path['destination']}"


def key_of(series: Series) -> Key:
    return f"{series.path.pair_text} {series.path.label}", series.operation


def _loss(measured: Measured, predicted: Times, half: int | None) -> float:
    total, count = 0.0, 0
    for series in measured.series:
        times = predicted.get(key_of(series))
        if times is None:
            continue
        for size, seconds in measured.points(series, half).items():
            if size in times:
                total += math.log1p(abs(math.log(times[size] / seconds)) / _SCALE)
                count += 1
    return total / max(1, count)


def fit(measured: Measured, start: dict[str, float], half: int | None, show: Show) -> dict[str, float]:
    """The costs that fit the points (of one half of the sizes) best."""
    values: dict[str, float] = {}
    groups = [(mechanism, names) for mechanism, names in FITTED.items() if _has(measured, mechanism)]
    total = sum(len(names) for _, names in groups) * len(_STEPS)
    done = 0
    for step in _STEPS:
        for mechanism, names in groups:

            def loss(changed: dict[str, float], of: str = mechanism) -> float:
                return _loss(measured, measured.predict({**values, **changed}, {of}, half), half)

            best = loss({})
            for name in names:
                show(done, total, 0.0, name)
                done += 1
                value = values.get(name, start[name] or _first_guess(measured, name, half))
                values[name], best = _walk(name, value, step, loss, best if name in values else None)
    return values


def _has(measured: Measured, mechanism: str) -> bool:
    return any(series.path.mechanism == mechanism for series in measured.series)


def _first_guess(measured: Measured, name: str, half: int | None) -> float:
    """For what the topology does not hold: a memory carries three times what the fastest large copy within it moves."""
    if name != "memory.rate":
        return 0
    large = [
        size / seconds
        for series in measured.series
        if series.path.mechanism == "host_copy"
        for size, seconds in measured.points(series, half).items()
        if size >= 1 << 28
    ]
    return 3 * max(large, default=0.0)


def _walk(
    name: str, value: float, step: float, loss: Callable[[dict[str, float]], float], known: float | None
) -> tuple[float, float]:
    """Goes up or down by `step` as long as it gets better; a share stays at most 1. `known`: the loss at `value`."""
    best = loss({name: value}) if known is None else known
    if value <= 0:
        return value, best
    for factor in (step, 1 / step):
        moved = False
        for _ in range(6):
            trial = value * factor
            if "share" in name and trial > 1:
                break
            found = loss({name: trial})
            if found >= best - 1e-9:
                break
            best, value, moved = found, trial, True
        if moved:
            break
    return value, best


def curves(measured: Measured, predicted: Times, half: int | None) -> dict[Key, Curve]:
    """Measured / predicted at the sizes of one half; a point far from both neighbours takes their mean."""
    found = {}
    for series in measured.series:
        key = key_of(series)
        times = predicted.get(key, {})
        ratios = [(s, t / times[s]) for s, t in sorted(measured.points(series, half).items()) if times.get(s)]
        if ratios:
            found[key] = _without_outliers(ratios)
    return found


def _without_outliers(ratios: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """A point above or below both neighbours by more than a half was disturbed: it takes the nearer one's ratio."""
    kept = list(ratios)
    for i in range(1, len(ratios) - 1):
        low, high = sorted((ratios[i - 1][1], ratios[i + 1][1]))
        if not low / 1.5 < ratios[i][1] < high * 1.5:
            kept[i] = (ratios[i][0], low if ratios[i][1] < low else high)
    return kept


def ratio_at(curve: Sequence[tuple[int, float]], size: int) -> float:
    """Its logarithm is linear in log(size) between the points, constant beyond them."""
    sizes = [entry[0] for entry in curve]
    above = bisect_right(sizes, size)
    if above == 0:
        return curve[0][1]
    if above == len(curve):
        return curve[-1][1]
    (a, low), (b, high) = curve[above - 1], curve[above]
    along = math.log(max(size, 1) / max(a, 1)) / math.log(b / max(a, 1)) if b > max(a, 1) else 0.0
    return float(low * (high / low) ** along)


def errors(
    measured: Measured,
    predicted: Times,
    half: int | None,
    corrected: dict[Key, Curve] | None = None,
    steady: bool = False,
) -> dict[str, float]:
    """Relative errors over the points of one half: median, p90 and their number. `steady`: only points whose own
    confidence interval is within 10 %."""
    found = [error for series in measured.series for error in _of(measured, series, predicted, half, corrected, steady)]
    return _summary(found)


def _of(
    measured: Measured,
    series: Series,
    predicted: Times,
    half: int | None,
    corrected: dict[Key, Curve] | None,
    steady: bool = False,
) -> Iterable[float]:
    key = key_of(series)
    times = predicted.get(key, {})
    curve = corrected.get(key) if corrected is not None else None
    calm = {p.bytes for p in series.points if p.high - p.low <= 0.1 * p.seconds}
    for size, seconds in measured.points(series, half).items():
        if size in times and (size in calm or not steady):
            yield abs(times[size] * (ratio_at(curve, size) if curve else 1) / seconds - 1)


def _summary(found: list[float]) -> dict[str, float]:
    count = len(found)
    if not count:
        return {"median": 0.0, "p90": 0.0, "points": 0}
    found.sort()
    return {"median": found[count // 2], "p90": found[min(count - 1, count * 9 // 10)], "points": count}


def by_kind(
    measured: Measured, predicted: Times, half: int | None, corrected: dict[Key, Curve]
) -> dict[str, dict[str, float]]:
    """The errors by mechanism and pair of places, with the number of points that are off by over a quarter."""
    found: dict[str, list[float]] = {}
    for series in measured.series:
        kind = f"{series.path.mechanism} {series.path.pair_text}"
        found.setdefault(kind, []).extend(_of(measured, series, predicted, half, corrected))
    far = {kind: sum(error > 0.25 for error in off) for kind, off in found.items()}
    return {kind: {**_summary(found[kind]), "far": far[kind]} for kind in sorted(far, key=lambda kind: -far[kind])}


def straight_lines(measured: Measured, half: int) -> dict[str, float]:
    """What the points of the other half tell without any model: lines between them, in logarithms of size and time."""
    found = []
    for series in measured.series:
        line = sorted(measured.points(series, 1 - half).items())
        if line:
            wanted = measured.points(series, half).items()
            found += [abs(ratio_at(line, size) / seconds - 1) for size, seconds in wanted]
    return _summary(found)


def calibrate(topology: Any, profile: Profile, show: Show) -> Calibration:
    """Fits on every second size and tests on the others, then fits once more on all."""
    measured = Measured(topology, profile)
    costs = json.dumps({"parts": parts(), "values": {}})
    start = json.loads(_core.simulator_costs(topology, costs))
    values = fit(measured, start, 0, show)
    before, after = measured.predict({}), measured.predict(values)
    half = curves(measured, after, 0)
    found = Calibration(topology.name, topology.fingerprint, values, curves(measured, after, None))
    found.errors = {
        "before": errors(measured, before, 1),
        "costs, on the sizes that were fitted": errors(measured, after, 0),
        "costs, on the other sizes": errors(measured, after, 1),
        "costs and curves, on the other sizes": errors(measured, after, 1, half),
        "costs and curves, on the other sizes, steady points": errors(measured, after, 1, half, steady=True),
        "leave one out": leave_one_out(measured, after),
        "straight lines between the fitted sizes, no model": straight_lines(measured, 1),
    }
    found.kinds = by_kind(measured, after, 1, half)
    return found


def leave_one_out(measured: Measured, predicted: Times) -> dict[str, float]:
    """Each point predicted from the costs and the curve through all others of its path and operation."""
    found = []
    everything = curves(measured, predicted, None)
    for series in measured.series:
        key = key_of(series)
        points, times = measured.points(series, None), predicted.get(key, {})
        for index, (size, _) in enumerate(everything.get(key, [])):
            others = everything[key][:index] + everything[key][index + 1 :]
            if others:
                found.append(abs(times[size] * ratio_at(others, size) / points[size] - 1))
    return _summary(found)
