"""One of two ranks that measure the road between their machines; rank 0 prints what it found, a line for each path."""

from __future__ import annotations

import json
import sys

import waywiser._core as core

from waywiser import stages

OPTIONS = {
    "operations": ["latency"],
    "processes": [1],
    "min_bytes": 64,
    "max_bytes": 4096,
    "quick": True,
    "budget_seconds": float(sys.argv[1]),
}

if core.rank_and_size()[0] == 1:
    core.serve_other_machine(stages.peer_program())
else:
    other = core.OtherMachine()
    profile = json.loads(core.measure(core.discover(), json.dumps(OPTIONS), None, None, other))
    other.dismiss()
    for series in profile["series"]:
        if series["path"]["destination"] == "other:host0":
            verified = all(point["verified"] for point in series["points"])
            print("measured", series["path"]["parameters"]["transports"], series["operation"], verified)
    for path in profile["unavailable"]:
        if path["destination"] == "other:host0":
            print("unavailable", path["parameters"]["transports"], path["reason"])
