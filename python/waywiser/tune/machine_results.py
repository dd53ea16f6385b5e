"""The results of a machine: of a folder, recorded, tuned, or simulated now."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from waywiser.apply.node_switches import OPERATIONS, SIZES
from waywiser.errors import InputError
from waywiser.results import DEFAULT, Results, recorded, recorded_machines
from waywiser.simulator.cluster import Cluster
from waywiser.topology.load import load_topology
from waywiser.tune.campaign import Request, measure_into


def results_of(folder: Path = DEFAULT, machine: str | None = None, for_settings: bool = False, **only: Any) -> Results:
    """The results in `folder`, or those of a machine: recorded ones, else what `tune` has simulated in `folder`, else
    simulated now: all paths, those that settings are chosen by (`for_settings`), or `only` those of some operations,
    places or numbers of processes (as in Request)."""
    if machine is None:
        return Results(folder)
    if machine in recorded_machines():
        return recorded(machine)
    return _tuned(folder, machine) or simulated(machine, for_settings=for_settings, **only)


def _tuned(folder: Path, machine: str, nodes: Sequence[str] = ()) -> Results | None:
    """Simulated results in `folder` of the same machine, with paths to nodes of these types; None if there are none."""
    results = Results(folder, f"machine {machine}, simulated in {folder}")
    try:
        profile = results.profile
    except InputError:  # the folder may hold another machine
        return None
    if profile is None:
        return None
    wanted = {load_topology(one).fingerprint for one in nodes}
    same = profile.simulated and profile.fingerprint == load_topology(machine).fingerprint
    return results if same and profile.other_nodes and wanted <= set(profile.other_nodes) else None


def node_results(folder: Path, cluster: Cluster) -> dict[str, Results]:
    """The results of each type of node, as `tune --cluster` has left them in `folder`, else simulated now as far as
    settings are chosen by them."""
    found = {}
    for name in cluster.machines:
        types = cluster.types_reached(name)
        at = folder / Path(name).stem if cluster.others else folder
        found[name] = _tuned(at, name, types) or simulated(name, cluster.beginning_with(name), for_settings=True)
    return found


def simulated(machine: str, cluster: Cluster | None = None, for_settings: bool = False, **only: Any) -> Results:
    """Simulated results of another machine, in a folder that exists as long as the process.

    They include paths to the other nodes of `cluster`; without a cluster to a second node of its type, if it has NICs.
    """
    request = Request(machine=machine, **only)
    if for_settings:
        request.operations, request.max_bytes = list(OPERATIONS), SIZES[-1]
    topology = request.topology()
    request.cluster = None if request.places else cluster or pair_of_nodes(machine, topology)
    folder = Path(tempfile.mkdtemp(prefix="waywiser-simulated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    results = Results(folder, f"machine {machine}, simulated")
    measure_into(results, topology, request)
    return results


def pair_of_nodes(machine: str, topology: Any) -> Cluster | None:
    """Two nodes of a machine; None if it has no NIC with a known rate."""
    ports = [link for link in topology.links if link.kind == "network" and (link.achievable or link.nominal)]
    return Cluster(machine, {"nodes": 2}) if ports else None
