"""What `--vary` changes of a collective besides `gdr`, `nodes` and `algorithm`: the network, its taper, PXN, the ranks
of a node, the places of the nodes in the network."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from waywiser.errors import InputError
from waywiser.simulator.placement import PLACEMENTS

# What `--vary` takes for collectives.
AXES = ("gdr", "nodes", "network", "taper", "pxn", "ranks", "algorithm", "placement")
NETWORKS = ("switch", "fat-tree", "rail-optimised")
TAPERS = (1, 2, 4)


class Variant(NamedTuple):
    """Changes of a collective, and words for them; none for the ranks of a node, which every row has."""

    label: str
    network: dict[str, Any]
    settings: dict[str, Any]


def variants_of(vary: Sequence[str], network: dict[str, Any], gpus: int) -> list[Variant]:
    """All combinations; empty if none of them varies. Raises InputError."""
    if {"ranks", "nodes"} <= set(vary):
        raise InputError("--vary ranks,nodes: both change the number of GPUs: write one of them")
    kind = network.get("kind", "switch")
    if "placement" in vary and kind == "switch" and not {"network", "taper"} & set(vary):
        raise InputError("--vary placement: below one switch all places are alike: add taper, or write --cluster FILE")
    axes = [list(_steps(name, gpus)) for name in vary if name not in ("gdr", "nodes", "algorithm")]
    if not axes:
        return []
    found = []
    for steps in itertools.product(*axes):
        changed: dict[str, Any] = {}
        settings: dict[str, Any] = {}
        for _, network_of, settings_of in steps:
            changed |= network_of
            settings |= settings_of
        if changed.get("taper", 1) > 1 and changed.get("kind") == "switch":
            continue  # a switch has no taper
        if "taper" in changed and "kind" not in changed and kind == "switch":
            changed["kind"] = "fat-tree"
        if changed.get("kind") == "switch":
            changed["taper"] = 1
        found.append(Variant(", ".join(label for label, *_ in steps if label), changed, settings))
    return found


def _steps(name: str, gpus: int) -> list[Variant]:
    if name == "network":
        return [Variant(kind, {"kind": kind}, {}) for kind in NETWORKS]
    if name == "taper":
        return [Variant(f"{taper}:1", {"taper": float(taper)}, {}) for taper in TAPERS]
    if name == "placement":
        return [Variant(placement, {}, {"placement": placement}) for placement in PLACEMENTS]
    if name == "pxn":
        return [Variant(f"pxn {word}", {}, {"pxn": word == "on"}) for word in ("off", "on")]
    counts = [*(1 << power for power in range(10) if 1 << power < gpus), gpus]
    return [Variant("", {}, {"order": list(range(count))}) for count in counts]
