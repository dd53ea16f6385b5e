"""`waywiser tune --storage KIND --machine NAME`: the ways to files of a machine that is not here."""

from __future__ import annotations

import json

import waywiser._core as _core
from waywiser.simulator.assumptions import lines
from waywiser.simulator.storage import seconds, storage_of
from waywiser.topology import load_topology
from waywiser.tune.storage_tuning import SIZES, StorageTimes
from waywiser.tune.storage_ways import GPU, HOST, LARGEST_PART, MANY, WORKS, Why, ways_of

ALL_SERVE: Why = {
    **dict.fromkeys(("buffered", "io_uring", "direct"), (HOST, None, None)),
    "mmap": (HOST, None, "only to read"),
    "cufile": (GPU, None, None),
}
_ANY_NUMBER = 1 << 16


def partner_of(asked: str) -> str:
    """How plans call it; no file system here has such a name."""
    return f"storage {asked}, simulated"


def simulated_times(machine: str, asked: str) -> StorageTimes:
    """Of all ways that `tune --storage` would time there. Raises InputError."""
    topology = load_topology(machine)
    storage = storage_of(topology, asked)
    times = StorageTimes(partner_of(asked), notes=lines(storage.assumed), simulated=topology)
    for end in (HOST,) if storage.link_rate is None else (HOST, GPU):
        for work in WORKS:
            sizes = [size for size in SIZES if work != MANY or size <= LARGEST_PART]
            offers = {size: ways_of(end, work, size, ALL_SERVE, _ANY_NUMBER) for size in sizes}
            for way in dict.fromkeys(way for ways in offers.values() for way in ways):
                offered = [size for size, ways in offers.items() if way in ways]
                points = [_point(size, seconds(storage, end, work, way, size)) for size in offered]
                row = {"operation": work, "way": way, "points": points, "memory": end, "ranks": 2}
                times.series.append({**row, "partner": times.storage})
    return times


def _point(size: int, taken: float) -> dict[str, object]:
    (one,) = _core.contest(1, lambda *_: [taken], least=1, most=1)
    point: dict[str, object] = json.loads(one.point(size))
    return {**point, "verified": False}
