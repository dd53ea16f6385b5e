"""The measured rate of each pair of GPUs, for placement: from the survey of all pairs in a profile."""

from __future__ import annotations

from pathlib import Path

from waywiser import _core
from waywiser.errors import InputError
from waywiser.profile import Pair, Profile
from waywiser.results import Results, recorded, recorded_machines


def pair_rates(profile: Profile) -> dict[Pair, float]:
    """Bytes per second one way of each pair of GPUs that was itself measured; empty for a simulation."""
    if profile.simulated or profile.backend == "virtual_gpu":
        return {}
    return {
        one.path.pair: one.points[-1].rate
        for one in profile.survey
        if one.operation == "streaming" and one.path.processes == 1 and all(p.startswith("gpu") for p in one.path.pair)
    }


def rates_for(topology: _core.Topology, folder: Path, machine: str | None = None) -> dict[Pair, float]:
    """The rates from the results in `folder`, or of a recorded machine, if they belong to this machine; else none."""
    results = recorded(machine) if machine in recorded_machines() else Results(folder)
    try:
        profile = results.profile
    except InputError:
        return {}
    return pair_rates(profile) if profile and profile.fingerprint == topology.fingerprint else {}
