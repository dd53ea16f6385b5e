"""Where the nodes of a job lie in the network of a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Collection

TOGETHER = "together"
PLACEMENTS = (TOGETHER, "spread", "random")


def places_of(placement: str, nodes: int, everywhere: int, taken: Collection[int] = ()) -> list[int]:
    """Of the places from 0 to `everywhere` that are not taken, those of so many nodes.

    Nodes that follow each other in a job are neighbours (together), as far apart as can be (spread), or anywhere but
    the same every time (random)."""
    order = list(range(everywhere))
    if placement == "spread":
        bits = max(1, (everywhere - 1).bit_length())
        order.sort(key=lambda place: int(f"{place:0{bits}b}"[::-1], 2))
    elif placement == "random":
        order.sort(key=lambda place: hashlib.sha256(str(place).encode()).digest())
    return [place for place in order if place not in taken][:nodes]
