"""The measurements of a machine, and the simulator's predictions for the same points."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from waywiser import _core
from waywiser.profile import Profile, Series
from waywiser.simulator.costs import parts

MECHANISMS = {
    "copy_engine", "courier", "host_copy", "host_staged", "relay", "sm_copy", "split", "ucx",
}  # fmt: skip
Key = tuple[str, str]  # path with its pair, operation
Times = dict[Key, dict[int, float]]  # size -> seconds


class Measured:
    """The points of a profile that the simulator can predict, by series."""

    def __init__(self, topology: Any, profile: Profile) -> None:
        self.topology = topology
        self.members = {(c.processes, *c.members[0]): [list(pair) for pair in c.members] for c in profile.classes}
        self.series = [
            series for series in profile.series if series.path.mechanism in MECHANISMS and self._whole(series)
        ]

    def _whole(self, series: Series) -> bool:
        """Whether all pairs of the class were loaded, as in the simulator; older files do not say."""
        members = self.members.get((series.path.processes, series.path.source, series.path.destination), [])
        return series.pairs in (0, len(members))

    def points(self, series: Series, half: int | None) -> dict[int, float]:
        """Size -> seconds; only every second size if `half` is 0 or 1."""
        chosen = series.points if half is None else series.points[half::2]
        return {point.bytes: point.seconds for point in chosen}

    def predict(
        self, values: dict[str, float], mechanisms: Iterable[str] | None = None, half: int | None = None
    ) -> Times:
        """Predictions for all series or those of some mechanisms, at all sizes or those of one half."""
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
