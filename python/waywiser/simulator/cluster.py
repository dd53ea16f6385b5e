"""A cluster: nodes of one or several types, their network, and the job whose operations are simulated."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from waywiser.errors import InputError
from waywiser.simulator.placement import TOGETHER, places_of
from waywiser.units import format_rate

MOST_GPUS = 1 << 18

# Keys and the core's errors about values that only the core can check; a group is the name of a cost.
_SAID = {
    "failed_links": "there is no link .*cables|ha[sv]e? failed",
    "slow_links": "there is no link .*cables",
    "nvlink_domain": "NVLink domain",
    "network": "torus|dragonfly|fat tree",
    "costs": "'([^']+)' is not a cost",
    "placement": "'placement'",
    "job": "^a job of",
    "second_job": "^jobs of|second_job",
    "nodes": "",
}


@dataclass(frozen=True)
class OtherJob:
    """A second training job on nodes of its own: the words of `simulate step`."""

    nodes: int
    model: str
    parallel: str = ""
    gpu: str = ""
    placement: str = TOGETHER


@dataclass
class Cluster:
    """What the core's simulator needs besides the machines: `network` has the core's keys.

    `machine` is the type of the first node, `others` are the other types; `network["types"]` numbers the types in this
    order.
    """

    machine: str
    network: dict[str, Any]
    others: list[str] = field(default_factory=list)
    job: int = 0  # nodes of the job; 0: all
    placement: str = ""  # of the job's nodes; empty: as numbered
    places: tuple[int, ...] = ()  # of the job's nodes, instead of a placement
    job_bytes: int = 0
    endless_job: bool = False
    second: OtherJob | None = None
    costs: dict[str, float] = field(default_factory=dict)
    file: str = ""
    lines: dict[str, int] = field(default_factory=dict)  # line of each key and cost

    def located(self, message: str) -> str:
        """The core's message about a value of the file, with the line of the value."""
        if not self.file:
            return message
        for key, words in _SAID.items():
            found = re.search(words, message)
            name = found.group(1) if found and found.groups() else key
            if found and name in self.lines:
                return f"{self.file}, line {self.lines[name]}: {message}"
        return f"{self.file}: {message}"

    @property
    def nodes(self) -> int:  # of the job
        return self.job or int(self.network["nodes"])

    @property
    def placed(self) -> bool:
        return bool(self.job or self.placement or self.places)

    def places_in(self, nodes: int, placement: str = "") -> list[int]:
        """The places of the first so many nodes of the job. A job of all nodes has a network of as many."""
        if self.places and not placement:
            return list(self.places[:nodes])
        everywhere = int(self.network["nodes"]) if self.job else nodes
        return places_of(placement or self.placement, nodes, everywhere)

    def network_of(self, nodes: int, placement: str = "") -> dict[str, Any]:
        """The core's keys for so many nodes of the job."""
        if not self.placed and not placement:
            return {**self.network, "nodes": nodes}
        everywhere = int(self.network["nodes"]) if self.job or self.places else nodes
        return {**self.network, "nodes": everywhere, "places": self.places_in(nodes, placement)}

    @property
    def machines(self) -> list[str]:  # of all types of node
        return [self.machine, *self.others]

    def beginning_with(self, machine: str) -> Cluster:
        """The same cluster, with the type of `machine` as the first one."""
        if machine == self.machine:
            return self
        machines = [machine, *(one for one in self.machines if one != machine)]
        new = {old: machines.index(name) for old, name in enumerate(self.machines)}
        types = [new[one] for one in self.network["types"]]
        return replace(self, machine=machine, others=machines[1:], network={**self.network, "types": types})

    def types_reached(self, machine: str) -> list[str]:
        """The types of all nodes except the first node of this type."""
        types = [self.machines[one] for one in self.network.get("types", [0] * self.nodes)]
        types.remove(machine)
        return list(dict.fromkeys(types))

    def of_one_type(self) -> None:
        """Raises InputError if the nodes differ."""
        if self.others:
            raise InputError(self.located(f"a collective needs nodes of one type, not {', '.join(self.machines)}"))

    def port_note(self, topology: Any) -> str:
        """A line if the port that was asked for is faster than the PCIe link of the machine's NICs; else empty."""
        port = self.network.get("port_rate", 0.0)
        nics = topology.ids("nic")
        rates = [link.achievable or link.nominal for link in topology.links if link.kind == "pcie" and link.b in nics]
        slot = max((rate for rate in rates if rate), default=0.0)
        if not slot or port <= slot:
            return ""
        both = f"the port carries {format_rate(port)}, the PCIe link of the NICs of {topology.name} {format_rate(slot)}"
        return f"note: {both}: the link is the limit"

    def check_size(self, gpus: int) -> None:
        """Raises InputError if nodes with this many GPUs exceed the limit of the simulator."""
        if self.nodes * gpus > MOST_GPUS:
            said = f"{self.nodes} nodes with {gpus} GPUs each are {self.nodes * gpus}"
            raise InputError(self.located(f"{said}; at most {MOST_GPUS} are simulated"))
