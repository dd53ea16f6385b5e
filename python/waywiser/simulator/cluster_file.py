"""Cluster files: short YAML with the nodes and the network between them. docs/simulator.md lists the keys."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from waywiser.errors import InputError
from waywiser.files import read_text
from waywiser.simulator.cluster import Cluster, OtherJob
from waywiser.simulator.cluster_words import MOST_NODES, Words
from waywiser.simulator.costs import PORT_WORDS, is_share, port_rate
from waywiser.simulator.placement import PLACEMENTS
from waywiser.topology.load import NAMES_OR_FILES, looks_like_file, machine_names
from waywiser.units import parse_bytes
from waywiser.yaml_text import root_of

MOST_BYTES = 1 << 20
MOST_TYPES = 32
NETWORKS = "switch, fat-tree(2:1), rail-optimised(1:1), dragonfly(GROUPS, ROUTERS, NODES), torus(8, 8, 16)"
_SHAPES = {"dragonfly": (3, 3), "torus": (1, 6)}


class _Reader(Words):
    """The keys of a cluster file."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.folder = Path()
        self.cluster = Cluster("", {"nodes": 0})

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

    def job(self, node: Any) -> None:
        self.cluster.job = int(self.number(node, "job", 1, MOST_NODES, whole=True))

    def placement(self, node: Any) -> None:
        if isinstance(node, yaml.SequenceNode):
            places = [
                int(self.number(one, "placement", 0, MOST_NODES, whole=True)) for one in self.items(node, "placement")
            ]
            self.cluster.places, self.cluster.job = tuple(places), len(places)
            return
        self.cluster.placement = self.placed(node)

    def placed(self, node: Any) -> str:
        allowed = f"{', '.join(PLACEMENTS)}"
        if (word := self.text(node, "placement", allowed)) not in PLACEMENTS:
            raise self.refuse(node, f"'placement' is one of {allowed}, not {word[:40]!r}")
        return word

    def other_job(self, node: Any) -> OtherJob:
        found: dict[str, Any] = {}
        for key, value in self.pairs(node, "second_job"):
            if key == "nodes":
                found[key] = int(self.number(value, key, 1, MOST_NODES, whole=True))
            elif key == "placement":
                found[key] = self.placed(value)
            elif key in ("model", "parallel", "gpu"):
                found[key] = self.text(value, key, "a list as of simulate step")
            else:
                raise self.refuse(value, f"'second_job' has nodes, model, parallel, gpu, placement, not {key[:40]!r}")
        if missing := [key for key in ("nodes", "model") if key not in found]:
            raise self.refuse(node, f"'second_job' needs {missing[0]}")
        return OtherJob(**found)

    def second_job(self, node: Any) -> None:
        if isinstance(node, yaml.MappingNode):
            self.cluster.second = self.other_job(node)
            return
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
    "job": _Reader.job,
    "placement": _Reader.placement,
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
    check_places(reader.cluster)
    return reader.cluster


def check_places(cluster: Cluster) -> None:
    """Raises InputError: the jobs do not fit into the cluster."""
    everywhere, other = int(cluster.network["nodes"]), cluster.second
    if cluster.job > everywhere:
        raise InputError(cluster.located(f"a job of {cluster.job} nodes on {everywhere}"))
    if len(set(cluster.places)) < len(cluster.places) or any(place >= everywhere for place in cluster.places):
        raise InputError(cluster.located(f"'placement' must be different numbers below {everywhere}"))
    if other and (cluster.job or everywhere) + other.nodes > everywhere:
        own = cluster.job or everywhere
        raise InputError(cluster.located(f"jobs of {own} and {other.nodes} nodes on {everywhere}: write job: NODES"))


def read_cluster(file: Path) -> Cluster:
    """The cluster in a file. Raises InputError."""
    return parse_cluster(read_text(file, MOST_BYTES), str(file), file.parent)
