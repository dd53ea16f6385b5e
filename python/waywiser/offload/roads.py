"""Which road carries arrays fastest to and from a server's GPU, by their size: measured, kept in a file, chosen."""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from waywiser.checked import Node
from waywiser.errors import CorruptionError, InputError
from waywiser.file_lock import held_file
from waywiser.files import read_json, write_text_atomically
from waywiser.offload.client import DATA_ROADS
from waywiser.results import DEFAULT
from waywiser.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from waywiser.offload.client import DataRoad, RemoteGpu
    from waywiser.stages import Show

Direction = Literal["input", "output"]
DIRECTIONS: tuple[Direction, ...] = ("input", "output")
SIZES = tuple(1 << bits for bits in (12, 16, 20, 23, 26))  # bytes
SCHEMA = ("waywiser.remote_roads", 1)
NAME = "remote_roads.json"
_LEAST, _MOST = 3, 25  # rounds of a size


@dataclass(frozen=True)
class RoadTime:
    """The median seconds in which an array has gone by a road: until the server has it, or until the client has it.

    `plain`: its bytes went unencrypted to another machine, by --data-plain.
    """

    direction: Direction
    nbytes: int
    road: DataRoad
    seconds: float
    plain: bool = False


class Price(NamedTuple):
    """The seconds of an array by the fastest road, encrypted and not."""

    direction: Direction
    nbytes: int
    encrypted: float
    plain: float


def price_line(price: Price) -> str:
    """In words."""
    times = f"{format_seconds(price.encrypted)} encrypted, {format_seconds(price.plain)} not"
    return f"{price.direction} of {format_bytes(price.nbytes)}: {times}: {price.encrypted / price.plain:.2f} times"


class Roads:
    """The road for each direction and size. Raises InputError if a direction was not measured."""

    def __init__(self, times: Sequence[RoadTime]) -> None:
        self.times = list(times)
        for direction in DIRECTIONS:
            if not any(each.direction == direction for each in self.times):
                raise InputError(f"no road was measured for {direction}")

    def best(self, direction: Direction, nbytes: int, plain: bool = False) -> DataRoad:
        """The fastest road at the measured size that is nearest by its ratio; of equal ones the first of DATA_ROADS."""
        return self.fastest(direction, nbytes, plain).road

    def fastest(self, direction: Direction, nbytes: int, plain: bool = False) -> RoadTime:
        """Of `best`. `plain`: of arrays that go unencrypted, if those were measured."""
        both = [each for each in self.times if each.direction == direction]
        those = [each for each in both if each.plain == plain] or both
        nearest = min({each.nbytes for each in those}, key=lambda size: abs(math.log(max(nbytes, 1) / size)))
        here = [each for each in those if each.nbytes == nearest]
        return min(here, key=lambda each: (each.seconds, DATA_ROADS.index(each.road)))

    def prices(self) -> list[Price]:
        """What encryption costs, at all sizes that were measured with it and without it."""
        sizes = [
            {(each.direction, each.nbytes) for each in self.times if each.plain == plain} for plain in (False, True)
        ]
        return [
            Price(direction, nbytes, *(self.fastest(direction, nbytes, plain).seconds for plain in (False, True)))
            for direction, nbytes in sorted(sizes[0] & sizes[1])
        ]


def measured(gpu: RemoteGpu, sizes: Sequence[int], budget: float, show: Show) -> Roads:
    """Times all roads, which take turns, and compares what comes back with what went. Leaves out sizes of which the
    server does not hold two arrays. Raises CorruptionError for other bytes, InputError if no size is left, and as every
    call of the GPU.
    """
    import numpy

    sizes = [size for size in sizes if 2 * size <= gpu.memory]
    draw = numpy.random.default_rng(0)
    times: list[RoadTime] = []
    for done, size in enumerate(sizes):
        show(done, len(sizes), budget * (1 - done / len(sizes)), f"{size} bytes")
        until = time.monotonic() + budget / len(sizes)
        found: dict[tuple[Direction, DataRoad], list[float]] = {}
        for rounds in range(_MOST + 1):
            if rounds > _LEAST and time.monotonic() > until:
                break
            for road in DATA_ROADS:
                values = draw.integers(0, 256, size, numpy.uint8)
                gpu.use_road(road)
                begin = time.monotonic()
                array = gpu.array(values)
                gpu.synchronize()
                there = time.monotonic()
                back = array.get()
                end = time.monotonic()
                if not numpy.array_equal(back, values):
                    raise CorruptionError(f"{gpu.name}, {road}: {size} bytes came back as others")
                if rounds:  # the first one makes memory
                    found.setdefault(("input", road), []).append(there - begin)
                    found.setdefault(("output", road), []).append(end - there)
        times += [RoadTime(*key, statistics.median(seconds), gpu._plain) for key, seconds in _by_size(found, size)]
    show(len(sizes), len(sizes), 0.0, "")
    return Roads(times)


def _by_size(
    found: dict[tuple[Direction, DataRoad], list[float]], size: int
) -> list[tuple[tuple[Direction, int, DataRoad], list[float]]]:
    return [((direction, size, road), seconds) for (direction, road), seconds in found.items()]


def usual_file() -> Path:
    """Where `waywiser tune --remote` keeps roads, and programs look for them."""
    return Path(os.environ.get("WAYWISER_RESULTS") or DEFAULT) / NAME


def kept(file: Path, address: str, gpu: int) -> Roads | None:
    """What was measured for a server's GPU; None if there is no file. Raises InputError for an invalid one."""
    if not file.exists():
        return None
    found = [each for each in _servers(file) if (each.text("address"), each.integer("gpu")) == (address, gpu)]
    return _roads(found[-1]) if found else None


def keep(file: Path, address: str, gpu: int, name: str, roads: Roads) -> None:
    """Writes what was measured into the file, in place of what it has of this server's GPU. Raises InputError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    times = [
        {"direction": each.direction, "bytes": each.nbytes, "road": each.road, "seconds": each.seconds}
        | ({"plain": True} if each.plain else {})
        for each in roads.times
    ]
    with held_file(file.with_suffix(".lock")) as holder:
        if holder:
            raise InputError(f"{file}: {holder} writes it")
        old = [each.value for each in _servers(file)] if file.exists() else []
        others = [each for each in old if (each["address"], each["gpu"]) != (address, gpu)]
        mine: dict[str, Any] = {"address": address, "gpu": gpu, "name": name, "times": times}
        value = {"schema": SCHEMA[0], "version": SCHEMA[1], "servers": [*others, mine]}
        write_text_atomically(file, json.dumps(value, indent=1) + "\n")


def _servers(file: Path) -> list[Node]:
    whole = Node(read_json(file, *SCHEMA), str(file))
    servers = list(whole.child("servers").elements())
    for each in servers:
        each.text("address")
        each.integer("gpu")
        _roads(each)
    return servers


def _roads(server: Node) -> Roads:
    times = [
        RoadTime(
            cast(Direction, each.word("direction", DIRECTIONS)),
            each.integer("bytes", least=1),
            cast("DataRoad", each.word("road", DATA_ROADS)),
            each.child("seconds").as_number(above_zero=True),
            each.flag("plain", False),
        )
        for each in server.child("times").elements()
    ]
    try:
        return Roads(times)
    except InputError as error:
        raise server.refuse(str(error)) from None
