"""All GPUs of a machine send to each other at once, each pair by its own path: what a shuffle waits for, simulated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from waywiser import _core
from waywiser.errors import InputError, UnavailableError
from waywiser.simulator.assumptions import Assumption, added
from waywiser.simulator.costs import costs_json
from waywiser.simulator.sweep import BETWEEN_NODES, path_in


class Exchange(NamedTuple):
    """Until the last transfer has ended; by which path, as it is written, how many pairs went."""

    seconds: float
    pairs: Mapping[str, int]
    assumed: list[Assumption]


def exchange(topology: Any, paths: Sequence[str], size: int) -> Exchange:
    """Each GPU of one node sends `size` bytes to each other one, by that of `paths` which is fastest for it alone.

    A card carries what its own node sends to it as it does for another node: it is simulated as such. Each direction of
    a link is a hop of its own, so nothing is counted twice but the memory of hosts. Raises InputError for fewer than
    two GPUs, UnavailableError for a pair that none of `paths` serves.
    """
    gpus = topology.ids("gpu")
    if len(gpus) < 2:
        raise InputError(f"{topology.name}: an exchange needs two GPUs, and there {'is 1' if gpus else 'are none'}")
    costs = costs_json({}, topology.name)

    def run(transfers: list[dict[str, Any]]) -> dict[str, Any]:
        request = json.dumps({"cluster": {"nodes": 2}, "transfers": transfers})
        answer: dict[str, Any] = json.loads(_core.simulate_exchange(topology, costs, request))
        return answer

    chosen, taken = [], Counter[str]()
    for distance in range(1, len(gpus)):  # so that not all begin with the same destination
        for place, source in enumerate(gpus):
            destination = gpus[(place + distance) % len(gpus)]
            tried: list[tuple[float, str, dict[str, Any]]] = []
            why = ""
            for path in paths:
                transfer = _transfer(path, source, destination, size)
                try:
                    tried.append((float(run([transfer])["seconds"]), path, transfer))
                except UnavailableError as error:
                    why = str(error)
            if not tried:
                raise UnavailableError(f"{topology.name}: {source} to {destination}: {why}")
            _, path, transfer = min(tried, key=lambda each: each[0])
            chosen.append(transfer)
            taken[path] += 1
    answer = run(chosen)
    return Exchange(float(answer["seconds"]), dict(taken), added([], answer))


def _transfer(path: str, source: str, destination: str, size: int) -> dict[str, Any]:
    mechanism, parameters = path_in(path)
    remote = parameters.get("transports") in BETWEEN_NODES
    told = {
        "mechanism": mechanism, "source": source, "destination": destination,
        "processes": 2 if mechanism == "ucx" and not remote else 1, "parameters": parameters,
    }  # fmt: skip
    return {"path": told, "from_node": 0, "to_node": int(remote), "bytes": size}
