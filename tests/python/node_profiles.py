"""Simulated profiles of node types with paths to other nodes, made once for all tests of a run."""

from __future__ import annotations

import fcntl
from functools import cache
from pathlib import Path

from waywiser import stages
from waywiser.apply.facts import Machine
from waywiser.apply.node_switches import OPERATIONS, SIZES
from waywiser.apply.setting import Settings
from waywiser.profile import Profile
from waywiser.profile_reader import read_profile
from waywiser.simulator.cluster import Cluster
from waywiser.simulator.cluster_file import parse_cluster
from waywiser.topology import load_topology
from waywiser.tune.campaign import Request

STUDIED = ("hse-a", "hse-c", "hse-e")
FAR = {"hse-e": ["gpu2"]}  # not below the switch of a NIC
MIXED = "nodes: [2 x hse-a, 2 x hse-c, 2 x hse-e]\n"
folder: list[Path] = []  # of the workers of a run; conftest.py


@cache
def text_of(machine: str, mixed: bool = False) -> str:
    """The profile of a GPU at each distance from its NIC and the first host memory, with paths to other nodes: JSON."""
    file = folder[0] / f"node-{machine}{'-mixed' if mixed else ''}.json"
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker makes it
        if not file.exists():
            made = file.with_suffix(".new")
            made.write_text(_simulated(machine, mixed))
            made.rename(file)
    return file.read_text()


def _simulated(machine: str, mixed: bool) -> str:
    cluster = parse_cluster(MIXED, "mixed.yaml").beginning_with(machine) if mixed else Cluster(machine, {"nodes": 2})
    request = Request(machine=machine, cluster=cluster)
    topology = request.topology()
    options = {**request.options(), "places": ["gpu0", *FAR.get(machine, ()), "host0"], "processes": [1]}
    options |= {"operations": list(OPERATIONS), "min_bytes": SIZES[0], "max_bytes": SIZES[-1]}
    return stages.measure(topology, options, None, stages.Watch(lambda *_: None), request.simulation(topology))


def gpu_profile_of(cluster: Cluster) -> Profile:
    """The paths from the first GPU of a cluster's first type to the other nodes only."""
    request = Request(machine=cluster.machine, cluster=cluster, quick=True)
    topology = request.topology()
    options = {**request.options(), "places": ["gpu0"], "processes": [1]}
    options |= {"operations": list(OPERATIONS), "min_bytes": SIZES[0], "max_bytes": SIZES[-1]}
    text = stages.measure(topology, options, None, stages.Watch(lambda *_: None), request.simulation(topology))
    return read_profile(text.encode(), cluster.machine)


@cache
def profile_of(machine: str, mixed: bool = False) -> Profile:
    return read_profile(text_of(machine, mixed).encode(), machine)


def machine_of(machine: str, purpose: str = "mixed", mixed: bool = False) -> Machine:
    return Machine(load_topology(machine), profile_of(machine, mixed), purpose)


def accepts(target: str, variables: object) -> str:
    return ""


def values(settings: Settings) -> dict[str, str]:
    return {one.name: one.value for one in settings.settings}
