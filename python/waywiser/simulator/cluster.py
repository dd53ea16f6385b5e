"""Cluster files: short YAML with the nodes and the network between them. docs/simulator.md lists the keys."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from waywiser.errors import InputError
from waywiser.files import read_text
from waywiser.json_fields import clean
from waywiser.simulator.costs import PORT_WORDS, is_share, port_rate
from waywiser.topology.load import NAMES_OR_FILES, looks_like_file, machine_names
from waywiser.units import format_rate, parse_bytes
from waywiser.yaml_text import root_of

MOST_NODES = 100000
MOST_GPUS = 1 << 18
MOST_BYTES = 1 << 20
MOST_TYPES = 32
NETWORKS = "switch, fat-tree(2:1), rail-optimised(1:1), dragonfly(GROUPS, ROUTERS, NODES), torus(8, 8, 16)"
_YES_NO = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}
_SHAPES = {"dragonfly": (3, 3), "torus": (1, 6)}

# Keys and the core's errors about values that only the core can check; a group is the name of a cost.
_SAID = {
    "failed_links": "there is no link .*cables|ha[sv]e? failed",
    "slow_links": "there is no link .*cables",
    "nvlink_domain": "NVLink domain",
    "network": "torus|dragonfly|fat tree",
    "costs": "'([^']+)' is not a cost",
    "nodes": "",
}


@dataclass
class Cluster:
    """What the core's simulator needs besides the machines: `network` has the core's keys.

    `machine` is the type of the first node, `others` are the other types; `network["types"]` numbers the types in this
    order.
    """

    machine: str
    network: dict[str, Any]
    others: list[str] = field(default_factory=list)
    job_bytes: int = 0
    endless_job: bool = False
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
    def nodes(self) -> int:
        return int(self.network["nodes"])

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


class _Reader:
    """The values of a cluster file, with the line of each for messages."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.folder = Path()
        self.cluster = Cluster("", {"nodes": 0})

    def refuse(self, node: Any, why: str) -> InputError:
        return InputError(f"{self.what}, line {node.start_mark.line + 1}: {clean(why)}")

    def text(self, node: Any, key: str, allowed: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.refuse(node, f"'{key}' must be {allowed}")
        return str(node.value).strip()

    def number(self, node: Any, key: str, least: float, most: float, whole: bool = False) -> float:
        allowed = f"a {'whole ' if whole else ''}number from {least:g} to {most:g}"
        text = self.text(node, key, allowed)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or (whole and value != int(value)):
            raise self.refuse(node, f"'{key}' must be {allowed}, not {str(node.value)[:40]!r}")
        return value

    def flag(self, node: Any, key: str, words: dict[str, bool] = _YES_NO) -> bool:
        allowed = " or ".join([*words][:2])
        if (word := self.text(node, key, allowed).lower()) not in words:
            raise self.refuse(node, f"'{key}' must be {allowed}, not {node.value[:40]!r}")
        return words[word]

    def pairs(self, node: Any, key: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.refuse(node, f"{key} must be a list of NAME: VALUE")
        seen = set()
        for name, value in node.value:
            text = self.text(name, key, "a list of NAME: VALUE")
            if text in seen:
                raise self.refuse(name, f"'{text[:40]}' is given twice")
            seen.add(text)
            yield text, value

    def items(self, node: Any, key: str) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode) or len(node.value) > MOST_NODES:
            raise self.refuse(node, f"'{key}' must be a list, such as [3, 17]")
        return list(node.value)

    # ---- the keys ----
    def nodes(self, node: Any) -> None:
        """COUNT x MACHINE, or a list of these: nodes of several types, numbered in this order."""
        parts = node.value if isinstance(node, yaml.SequenceNode) and 1 <= len(node.value) <= MOST_TYPES else [node]
        types: list[int] = []
        for part in parts:
            count, machine = self.count_of(part)
            if machine not in self.cluster.machines:
                self.cluster.others.append(machine)
            if not types:
                self.cluster.machine, self.cluster.others = machine, []
            types += [self.cluster.machines.index(machine)] * min(count, MOST_NODES + 1)
        if not 1 <= len(types) <= MOST_NODES:
            raise self.refuse(node, f"a cluster has 1 to {MOST_NODES} nodes, not {len(types)}")
        self.cluster.network["nodes"] = len(types)
        if self.cluster.others:
            self.cluster.network["types"] = types

    def count_of(self, node: Any) -> tuple[int, str]:
        allowed = "COUNT x MACHINE, such as 1024 x hse-e, or a list of them"
        found = re.fullmatch(r"(\d{1,6})\s*[x*]\s*(\S.*)", self.text(node, "nodes", allowed))
        if not found:
            raise self.refuse(node, f"'nodes' must be {allowed}, not {str(node.value)[:40]!r}")
        if not 1 <= int(found[1]) <= MOST_NODES:
            raise self.refuse(node, f"a cluster has 1 to {MOST_NODES} nodes, not {found[1]}")
        return int(found[1]), self.known_machine(node, found[2].strip())

    def known_machine(self, node: Any, name: str) -> str:
        if name in machine_names():
            return name
        if not looks_like_file(name):
            raise self.refuse(node, f"{name[:60]!r} is not a machine; {NAMES_OR_FILES} {', '.join(machine_names())}")
        file = self.folder / name
        if "\0" in name or len(name) > 1023 or not file.is_file():
            raise self.refuse(node, f"{name[:60]!r}: there is no such file")
        return str(file)

    def network(self, node: Any) -> None:
        text = self.text(node, "network", NETWORKS)
        found = re.fullmatch(r"([a-z-]+)\s*(?:\(([^()]*)\))?", text)
        kind, inside = (found[1], found[2]) if found else ("", None)
        words = [word.strip() for word in inside.split(",")] if inside else []
        (network := self.cluster.network)["kind"] = kind
        fits = kind == "switch" and not words
        if kind in ("fat-tree", "rail-optimised") and len(words) <= 1:
            part = r"(\d{1,2}(?:\.\d{1,2})?)"
            taper = re.fullmatch(f"{part}:{part}", words[0] if words else "1:1")
            if taper and 1 <= float(taper[2]) <= float(taper[1]) <= 64:
                network["taper"], fits = float(taper[1]) / float(taper[2]), True
        if kind in _SHAPES and all(re.fullmatch(r"[1-9]\d{0,4}", word) for word in words):
            network["shape"] = [int(word) for word in words]
            fits = _SHAPES[kind][0] <= len(words) <= _SHAPES[kind][1]
        if not fits:
            raise self.refuse(node, f"'network' must be one of {NETWORKS}, not {text[:60]!r}")

    def radix(self, node: Any) -> None:
        self.cluster.network["radix"] = int(self.number(node, "radix", 4, 1024, whole=True))

    def nic(self, node: Any) -> None:
        name = self.text(node, "nic", PORT_WORDS)
        rate = port_rate(name)
        if rate is None:
            raise self.refuse(node, f"'nic' must be {PORT_WORDS}, not {name[:40]!r}")
        self.cluster.network["port_rate"] = rate

    def nvlink_domain(self, node: Any) -> None:
        self.cluster.network["nvlink_domain"] = int(self.number(node, "nvlink_domain", 2, 576, whole=True))

    def in_network_reduction(self, node: Any) -> None:
        self.cluster.network["in_network_reduction"] = self.flag(node, "in_network_reduction")

    def failed_links(self, node: Any) -> None:
        for entry in self.items(node, "failed_links"):
            index = int(self.number(entry, "failed_links", 0, 1 << 30, whole=True))
            self.cluster.network.setdefault("sick", []).append({"index": index, "share": 0})

    def routing(self, node: Any) -> None:
        self.cluster.network["adaptive"] = self.flag(node, "routing", {"static": False, "adaptive": True})

    def slow_links(self, node: Any) -> None:
        for name, value in self.pairs(node, "slow_links"):
            if not re.fullmatch(r"\d{1,9}", name):
                raise self.refuse(value, f"'slow_links' must be a list of NUMBER: SHARE, not {name[:40]!r}")
            share = self.number(value, "slow_links", 0.001, 1)
            self.cluster.network.setdefault("sick", []).append({"index": int(name), "share": share})

    def second_job(self, node: Any) -> None:
        size = self.text(node, "second_job", "a size, such as 64M, or endless")
        self.cluster.endless_job = size == "endless"
        try:
            self.cluster.job_bytes = parse_bytes("0" if size == "endless" else size)
        except InputError as error:
            raise self.refuse(node, f"'second_job': {error}") from None

    def costs(self, node: Any) -> None:
        for name, value in self.pairs(node, "costs"):
            self.cluster.costs[name] = self.number(value, name, 0, 1 if is_share(name) else 1e15)
            self.cluster.lines[name] = value.start_mark.line + 1


_KEYS: dict[str, Callable[[_Reader, Any], None]] = {
    "nodes": _Reader.nodes,
    "network": _Reader.network,
    "radix": _Reader.radix,
    "nic": _Reader.nic,
    "nvlink_domain": _Reader.nvlink_domain,
    "in_network_reduction": _Reader.in_network_reduction,
    "routing": _Reader.routing,
    "failed_links": _Reader.failed_links,
    "slow_links": _Reader.slow_links,
    "second_job": _Reader.second_job,
    "costs": _Reader.costs,
}


def parse_cluster(text: str, what: str, folder: Path | None = None) -> Cluster:
    """The cluster in `text`; machine files are relative to `folder`. Raises InputError: one line with file and line."""
    reader = _Reader(what)
    reader.folder = folder or Path()
    reader.cluster.file = what
    root = root_of(text, what)
    if not isinstance(root, yaml.MappingNode):
        raise InputError(f"{what}, line 1: a cluster file is a list of KEY: VALUE; keys are {', '.join(_KEYS)}")
    for key, value in reader.pairs(root, "a cluster file"):
        if key not in _KEYS:
            raise reader.refuse(value, f"{key[:40]!r} is not a key; keys are {', '.join(_KEYS)}")
        reader.cluster.lines[key] = value.start_mark.line + 1
        _KEYS[key](reader, value)
    if not reader.cluster.machine:
        raise InputError(f"{what}, line 1: 'nodes' is missing: write nodes: 1024 x hse-e")
    return reader.cluster


def read_cluster(file: Path) -> Cluster:
    """The cluster in a file. Raises InputError."""
    return parse_cluster(read_text(file, MOST_BYTES), str(file), file.parent)
