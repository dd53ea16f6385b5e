"""Machines that verbs name: this one, one of a description, recorded ones, simulated ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from waywiser import _core
from waywiser.apply.facts import Machine
from waywiser.apply.propose import settings_for
from waywiser.apply.setting import Settings
from waywiser.errors import InputError
from waywiser.results import Results
from waywiser.simulator.cluster_file import read_cluster
from waywiser.topology.choose import chosen_topology
from waywiser.topology.load import load_topology
from waywiser.tune.machine_results import node_results, results_of


def machine_named(output: Path, name: str | None, from_: str | None) -> Machine:
    if name:
        return Machine(load_topology(name), results_of(output, name, for_settings=True).needed_profile())
    if from_:
        return Machine(chosen_topology(from_, None))
    topology = _core.discover()
    profile = Results(output).needed_profile()
    if profile.fingerprint != topology.fingerprint:
        raise InputError(f"{output}: its profile is of {profile.machine} ({profile.fingerprint}), not of this machine")
    return Machine(topology, profile)


def machines_named(output: Path, names: str | None, cluster: Path | None, purpose: str) -> list[Machine]:
    """Machines by name, or each (named) type of node of a cluster file with the paths to the others: as `tune` has left
    them, else simulated now."""
    words = [word.strip() for word in (names or "").split(",") if word.strip()]
    if cluster is None:
        return [replace(machine_named(output, word, None), purpose=purpose) for word in words]
    read = read_cluster(cluster)
    found = node_results(output, read)
    for word in words:
        if word not in found:
            raise InputError(f"--machine {word}: {cluster} has {', '.join(found)}")
    chosen = {name: results for name, results in found.items() if not words or name in words}
    return [
        Machine(load_topology(name), one.needed_profile(), purpose, read.beginning_with(name))
        for name, one in chosen.items()
    ]


def elsewhere_settings(output: Path, machine: str | None, cluster: Path | None, purpose: str) -> list[Settings]:
    """Settings of other machines: each type of node of a cluster file, or those that `machine` names."""
    return [settings_for(one, unchecked=True) for one in machines_named(output, machine, cluster, purpose)]
