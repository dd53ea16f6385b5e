"""The peer report of a machine that is not here: between all of its GPUs, with peer access and without."""

from __future__ import annotations

import itertools
import json
from typing import Any, NamedTuple

from waywiser import _core
from waywiser.errors import InputError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.sweep import path_in
from waywiser.stages import Show, now

_BYTES, _SMALL = 256 << 20, 8
_STAGED, _ENGINE = "host_staged variant=pipelined chunk=4M depth=4", "copy_engine"
_OFF, _ON = _ACCESS = ("off", "on")
_NOTES = (
    "simulated; peer access off: a copy in pieces of 4 MiB through pinned memory of the host; its latency is that of "
    "two copies, to the host and from there",
    "latency as the GPU sees it: of a copy among many of 8 bytes that wait in one stream; within one GPU with the "
    "host's time for each",
)
# What a matrix is of: the operation, and the bytes of a transfer.
_FIGURES = {
    "one_way": ("streaming", _BYTES),
    "both_ways": ("bidirectional", _BYTES),
    "latency_gpu": ("streaming", _SMALL),
    "latency_cpu": ("latency", _SMALL),
}

Matrix = list[list[float | bool | None]]


class _From(NamedTuple):
    """A way to a place from the GPU in question, or from the memory of the host beside it."""

    source: str
    target: str
    path: str

    def asked(self) -> dict[str, Any]:
        mechanism, parameters = path_in(self.path)
        told = {"mechanism": mechanism, "source": self.source, "destination": self.target}
        return {"path": {**told, "processes": 1, "parameters": parameters}, "from_node": 0, "to_node": 0}


def simulated_peers(topology: Any, costs: str, show: Show) -> tuple[dict[str, Any], list[Assumption]]:
    """As `measure --peers` writes it, and what was assumed; `costs` as JSON. Raises InputError: there is no GPU."""
    gpus = topology.ids("gpu")
    if not gpus:
        raise InputError(f"--peers: {topology.name} has no GPU")
    matrices: dict[str, dict[str, Matrix]] = {key: {on: _empty(len(gpus)) for on in _ACCESS} for key in _FIGURES}
    connectivity = _empty(len(gpus))
    assumed: list[Assumption] = []
    for row, source in enumerate(gpus):
        show(row, len(gpus), 0.0, f"peer report {source}")
        answer, seconds = _from_one(topology, costs, source)
        assumed = added(assumed, answer)
        for column, target in enumerate(gpus):
            direct = _From(source, target, _ENGINE)
            connectivity[row][column] = ("latency", _SMALL, direct) in seconds
            for key, (operation, size) in _FIGURES.items():
                on = seconds.get((operation, size, direct))
                # Within one GPU there is no peer.
                off = on if source == target else _without_access(topology, seconds, source, target, key)
                for access, took in ((_ON, on), (_OFF, off)):
                    matrices[key][access][row][column] = None if took is None else _figure(key, size, took)
    told = {"machine": topology.name, "fingerprint": topology.fingerprint, "backend": "", "simulated": True}
    report = {"schema": "waywiser.peers", "version": 1, "created": now(), **told, "connectivity": connectivity}
    return {**report, **matrices, "notes": list(_NOTES)}, assumed


_Seconds = dict[tuple[str, int, _From], float]


def _from_one(topology: Any, costs: str, source: str) -> tuple[dict[str, Any], _Seconds]:
    """The answer about one GPU, and seconds by operation, bytes and way."""
    host = _beside(topology, source)
    gpus = topology.ids("gpu")
    ways = [_From(source, target, path) for target in gpus for path in (_ENGINE, _STAGED)]
    ways += [_From(source, host, _ENGINE), *(_From(host, target, _ENGINE) for target in gpus)]
    operations = sorted({operation for operation, _ in _FIGURES.values()})
    request: dict[str, Any] = {"cluster": {"nodes": 1}, "paths": [way.asked() for way in ways]}
    request |= {"operations": operations, "sizes": [_SMALL, _BYTES]}
    answer = json.loads(_core.simulate(topology, costs, json.dumps(request), lambda *_: True, []))
    seconds: _Seconds = {}
    for (operation, way), result in zip(itertools.product(operations, ways), answer["results"], strict=True):
        for point in result["points"]:
            seconds[operation, int(point["bytes"]), way] = float(point["seconds"])
    return answer, seconds


def _without_access(topology: Any, seconds: _Seconds, source: str, target: str, key: str) -> float | None:
    if not key.startswith("latency"):
        return seconds.get((*_FIGURES[key], _From(source, target, _STAGED)))
    host = _beside(topology, source)
    halves = [seconds.get(("latency", _SMALL, _From(*ends, _ENGINE))) for ends in ((source, host), (host, target))]
    return None if None in halves else sum(one for one in halves if one is not None)


def _beside(topology: Any, gpu: str) -> str:
    host = f"host{max(0, topology.device(gpu).numa)}"
    return host if host in topology.ids("host") else "host0"


def _figure(key: str, size: int, seconds: float) -> float:
    """GB/s, both directions together; microseconds."""
    if key.startswith("latency"):
        return seconds * 1e6
    return (2 if key == "both_ways" else 1) * size / seconds / 1e9


def _empty(gpus: int) -> Matrix:
    return [[None] * gpus for _ in range(gpus)]
