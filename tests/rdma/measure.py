"""One of two ranks that measure the paths between their machines; rank 0 prints a line for each path."""

from __future__ import annotations

import json
import sys
from typing import Any

import waywiser._core as core
from waywiser import stages
from waywiser.other_nodes import device_of, is_elsewhere

OPTIONS = {
    "operations": ["latency"],
    "processes": [1],
    "min_bytes": 64,
    "max_bytes": 4096,
    "quick": True,
    "budget_seconds": float(sys.argv[1]),
}


def leads_to_the_other_host(path: dict[str, Any]) -> bool:
    return is_elsewhere(path["destination"]) and device_of(path["destination"]) == "host0"


def road(path: dict[str, Any]) -> str:
    name = path.get("mechanism", "ucx")
    return f"tls-{path['parameters']['by']}" if name == "tls" else str(path["parameters"]["transports"])


if core.rank_and_size()[0] == 1:
    core.serve_other_machine(stages.peer_program())
else:
    other = core.OtherMachine()
    profile = json.loads(core.measure(core.discover(), json.dumps(OPTIONS), None, None, other))
    other.dismiss()
    for series in profile["series"]:
        if leads_to_the_other_host(series["path"]):
            verified = all(point["verified"] for point in series["points"])
            print("measured", road(series["path"]), series["operation"], verified)
    for path in profile["unavailable"]:
        if leads_to_the_other_host(path):
            print("unavailable", road(path), path["reason"])
    for refused in profile["rejected"]:
        if leads_to_the_other_host(refused["path"]):
            print("rejected", road(refused["path"]), refused["bytes"], refused["reason"])
    print("searched", len(profile["searched"]))
