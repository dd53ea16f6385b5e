"""The peer report of a machine that is not here: between all of its GPUs, with peer access and without."""

from __future__ import annotations

import json
from typing import Any

from waywiser import _core
from waywiser.errors import InputError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.sweep import path_in
from waywiser.stages import Show, Watch, now

_BYTES, _SMALL = 256 << 20, 8
_WAYS = {"off": "host_staged variant=pipelined chunk=4M depth=4", "on": "copy_engine"}
_NOTES = (
    "simulated; peer access off: a copy in pieces of 4 MiB through pinned memory of the host",
    "latency as the GPU sees it is not modelled",
)
_OPERATIONS = {"one_way": "streaming", "both_ways": "bidirectional", "latency_cpu": "latency"}

Matrix = list[list[float | bool | None]]


def simulated_peers(topology: Any, costs: str, show: Show) -> tuple[dict[str, Any], list[Assumption]]:
    """As `measure --peers` writes it, and what was assumed; `costs` as JSON. Raises InputError: there is no GPU."""
    gpus = topology.ids("gpu")
    if not gpus:
        raise InputError(f"--peers: {topology.name} has no GPU")
    ends = [(source, target) for source in gpus for target in gpus]
    pairs = [(on, *pair) for on in _WAYS for pair in ends if on == "on" or pair[0] != pair[1]]
    request: dict[str, Any] = {"cluster": {"nodes": 1}, "paths": [_path(*pair) for pair in pairs]}
    request |= {"operations": list(_OPERATIONS.values()), "sizes": [_SMALL, _BYTES]}
    answer = json.loads(_core.simulate(topology, costs, json.dumps(request), Watch(show).progress, []))
    matrices: dict[str, dict[str, Matrix]] = {key: {on: _empty(len(gpus)) for on in _WAYS} for key in _OPERATIONS}
    connectivity = _empty(len(gpus))
    results = iter(answer["results"])
    for key in _OPERATIONS:
        for (on, source, target), result in zip(pairs, results, strict=False):
            row, column = gpus.index(source), gpus.index(target)
            points = {int(point["bytes"]): float(point["seconds"]) for point in result["points"]}
            if on == "on":
                connectivity[row][column] = "unavailable" not in result
            if _BYTES in points and (key != "both_ways" or source != target):
                matrices[key][on][row][column] = _figure(key, points)
    told = {"machine": topology.name, "fingerprint": topology.fingerprint, "backend": "", "simulated": True}
    report = {"schema": "waywiser.peers", "version": 1, "created": now(), **told, "connectivity": connectivity}
    return {**report, **matrices, "notes": list(_NOTES)}, added([], answer)


def _figure(key: str, points: dict[int, float]) -> float:
    """GB/s, both directions together; microseconds."""
    if key == "latency_cpu":
        return points[_SMALL] * 1e6
    return (2 if key == "both_ways" else 1) * _BYTES / points[_BYTES] / 1e9


def _path(on: str, source: str, target: str) -> dict[str, Any]:
    mechanism, parameters = path_in(_WAYS[on])
    told = {"mechanism": mechanism, "source": source, "destination": target, "processes": 1, "parameters": parameters}
    return {"path": told, "from_node": 0, "to_node": 0}


def _empty(gpus: int) -> Matrix:
    return [[None] * gpus for _ in range(gpus)]
