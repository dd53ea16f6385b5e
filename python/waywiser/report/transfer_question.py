"""What `waywiser explain` is asked: places, and what must be known or simulated to answer."""

from __future__ import annotations

import json
from typing import Any

from waywiser import _core, stages
from waywiser.errors import InputError
from waywiser.other_nodes import is_elsewhere
from waywiser.profile import COLLECTIVES, Profile
from waywiser.report.matrices import places
from waywiser.results import Results, recorded_machines
from waywiser.topology import load_topology


def refuse_unmeasured(machine: str, operation: str) -> None:
    """Refuses a machine whose paths would first be simulated: such a profile has no collectives."""
    if machine not in recorded_machines():
        load_topology(machine)  # its own error comes first
        hint = f"; waywiser simulate {operation} --machine {machine}" if operation in COLLECTIVES else ""
        raise InputError(f"{operation} is explained only where it was measured, not for a simulated machine{hint}")


def needed_for(source: str, destination: str, operation: str, processes: int) -> dict[str, Any]:
    """What has to be simulated to answer for one transfer."""
    found: dict[str, Any] = {"operations": [operation], "processes": [processes]}
    if operation != "loaded" and not any(map(is_elsewhere, (source, destination))):
        found["places"] = list(dict.fromkeys([source, destination]))
    return found


def links_note(results: Results, source: str, destination: str) -> str:
    """The note if it is unknown whether NVLinks join two GPUs; else empty."""
    if results.topology is None or not (source.startswith("gpu") and destination.startswith("gpu")):
        return ""
    machine = _core.Topology.from_json(json.dumps(results.topology), "topology.json")
    if not {source, destination} <= set(machine.ids("gpu")) or machine.gpu_links_known(source, destination):
        return ""
    return f"note: it is unknown whether NVLinks join {source} and {destination}: paths over NVLinks are missing here"


def plan_of(results: Results, profile: Profile, text: str) -> str:
    """The stored plan if it belongs to the profile, else a new one."""
    plan = results.plan
    if plan is not None and plan.fingerprint == profile.fingerprint and plan.messages():
        return results.text("plan") or ""
    return stages.choose(text)


def check_place(place: str, profile: Profile, results: Results) -> None:
    known = list(places(profile))
    devices = (results.topology or {}).get("devices")
    for device in devices if isinstance(devices, list) else []:
        name = device.get("id") if isinstance(device, dict) and device.get("kind") in ("gpu", "host") else None
        if isinstance(name, str) and name not in known:
            known.append(name)
    if place not in known:
        raise InputError(f"{place!r} is not in {profile.machine}: it has {', '.join(known) or 'nothing measured'}")
