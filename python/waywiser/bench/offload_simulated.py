"""`waywiser bench offload --machine`: the seven points of the experiment with a remote GPU, between simulated nodes.

A client on one node, the server on the other. Arrays go over the network into memory of the server's host, and from
there by a copy to its GPU (parts 1 and 2 of the published experiment: pageable, pinned), or straight into the GPU (part
3). The steps of a request follow each other. An addition has three accesses to the GPU's memory, a copy within it two.
What client and server do besides moving bytes takes no time; the request to add has a message there and one back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from waywiser import _core
from waywiser.bench.offload import LOCAL, LOCAL_PINNED, Case, Run
from waywiser.errors import InputError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.costs import costs_json
from waywiser.simulator.sweep import path_in

_MESSAGE = 8
_HOST, _GPU = "host0", "gpu0"
_RDMA = {"InfiniBand": "ucx transports=ib", "RoCE": "ucx transports=roce"}
_COPIES = {"pageable": "copy_engine memory=pageable", "pinned": "copy_engine"}
_SETTINGS = " gdr={} gdrcopy=on nics=1"


class _Way(NamedTuple):
    """A path from place to place; over the network or within the server."""

    path: str
    source: str
    destination: str

    def asked(self) -> dict[str, Any]:
        mechanism, parameters = path_in(self.path)
        ends = {"source": self.source, "destination": self.destination, "processes": 1}
        return {
            "path": {"mechanism": mechanism, **ends, "parameters": parameters},
            "from_node": 0,
            "to_node": int(mechanism == "ucx"),
        }

    def back(self) -> _Way:
        return self._replace(source=self.destination, destination=self.source)


class _Road(NamedTuple):
    """How an array reaches the GPU: over the wire, then by a copy, or by one of them."""

    wire: _Way | None
    copy: _Way | None
    message: _Way | None  # how a request reaches the server


def _roads(topology: Any) -> dict[str, _Road]:
    local = {LOCAL: "pageable", LOCAL_PINNED: "pinned"}
    roads = {name: _Road(None, _Way(_COPIES[kind], _HOST, _GPU), None) for name, kind in local.items()}
    wires = {name: path + _SETTINGS.format("on") for name, path in _RDMA.items()}
    wires["IP over InfiniBand"] = "ucx transports=network-tcp"
    names = [topology.device(nic).name for nic in topology.ids("nic")]
    if ethernet := [name for name in names if name.startswith(("eth", "en"))]:
        wires["Ethernet"] = f"ucx transports=network-tcp device={ethernet[0]}"
    for name, path in wires.items():
        wire = _Way(path, _HOST, _HOST)
        for part, copy in _COPIES.items():
            roads[f"{name}, {part}"] = _Road(wire, _Way(copy, _HOST, _GPU), wire)
        for gdr in ("on", "off") if name in _RDMA else ():
            direct = _Way(_RDMA[name] + _SETTINGS.format(gdr), _HOST, _GPU)
            roads[f"{name}, direct, gdr {gdr}"] = _Road(direct, None, wire)
    return roads


def simulated_cases(
    topology: Any, sizes: Sequence[int], times: Sequence[int]
) -> tuple[list[Case], dict[str, str], list[Assumption]]:
    """Cases by size, count and road; why roads are left out; what was assumed. Raises InputError: there is no GPU."""
    if not topology.ids("gpu"):
        raise InputError(f"offload: {topology.name} has no GPU")
    roads = _roads(topology)
    inside = _Way(_COPIES["pinned"], _GPU, _GPU)
    ways = list(dict.fromkeys([inside, *(way for road in roads.values() for way in _ways(road))]))
    request: dict[str, Any] = {
        "cluster": {"nodes": 2},
        "paths": [way.asked() for way in ways],
        "operations": ["latency"],
    }
    request["sizes"] = sorted({_MESSAGE, *sizes})
    answer = json.loads(
        _core.simulate(topology, costs_json({}, topology.name), json.dumps(request), lambda *_: True, [])
    )
    found = dict(zip(ways, answer["results"], strict=True))
    left_out = {}
    for name, road in roads.items():
        if why := [found[way]["unavailable"] for way in _ways(road) if "unavailable" in found[way]]:
            left_out[name] = str(why[0])
    took = {
        way: {int(point["bytes"]): float(point["seconds"]) for point in one["points"]} for way, one in found.items()
    }
    cases = [
        Case(name, size // 4, count, _run(road, took, size, 1.5 * count * took[inside][size]), 0)
        for size in sizes
        for count in times
        for name, road in roads.items()
        if name not in left_out
    ]
    return cases, left_out, added([], answer)


def _ways(road: _Road) -> Iterator[_Way]:
    for way in (road.wire, road.copy, road.message):
        if way is not None:
            yield way
            yield way.back()


def _run(road: _Road, took: dict[_Way, dict[int, float]], size: int, device: float) -> Run:
    def of(way: _Way | None, back: bool = False, nbytes: int = size) -> float:
        return took[way.back() if back else way][nbytes] if way is not None else 0.0

    copies, output = 2 * of(road.copy), of(road.copy, back=True)
    client_input, client_output = copies + 2 * of(road.wire), output + of(road.wire, back=True)
    message = of(road.message, nbytes=_MESSAGE) + of(road.message, back=True, nbytes=_MESSAGE)
    seconds = (client_input, copies, device + message, device, device, output, client_output)
    return Run(seconds, client_input + device + message + client_output)
