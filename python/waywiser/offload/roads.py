"""Which road carries arrays fastest to and from a server's GPU, by their size: measured, kept in the plan, chosen."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from waywiser import _core
from waywiser.errors import CorruptionError, InputError
from waywiser.files import read_bytes
from waywiser.offload.client import DATA_ROADS
from waywiser.plan import PlanRow, read_plan
from waywiser.results import DEFAULT
from waywiser.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from waywiser.offload.client import DataRoad, RemoteGpu
    from waywiser.stages import Show

Direction = Literal["input", "output"]
DIRECTIONS: tuple[Direction, ...] = ("input", "output")
SIZES = tuple(1 << bits for bits in (12, 16, 20, 23, 26))  # bytes
_LEAST, _MOST = 3, 25  # rounds of a size


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


def operation(direction: Direction, plain: bool) -> str:
    """How plans call it. `plain`: the bytes of arrays go unencrypted to another machine, by --data-plain."""
    return f"remote_{direction}_plain" if plain else f"remote_{direction}"


class Roads:
    """The rows of a plan for one GPU of a server. Raises InputError if a direction was not measured, or for an unknown
    road."""

    def __init__(self, rows: Sequence[PlanRow]) -> None:
        self._rows = {
            (direction, plain): [row for row in rows if row.operation == operation(direction, plain)]
            for direction in DIRECTIONS
            for plain in (False, True)
        }
        for direction in DIRECTIONS:
            if not self.rows(direction) and not self.rows(direction, plain=True):
                raise InputError(f"no road was measured for {direction}")
        for row in rows:
            if row.way not in DATA_ROADS:
                raise InputError(f"{row.way!r} is not one of the roads {', '.join(DATA_ROADS)}")

    def rows(self, direction: Direction, plain: bool = False) -> list[PlanRow]:
        """Those of one direction, ascending sizes."""
        return sorted(self._rows[direction, plain], key=lambda row: row.from_bytes)

    def best(self, direction: Direction, nbytes: int, plain: bool = False) -> DataRoad:
        """The road of the plan for an array of so many bytes. `plain`: unencrypted, if that was measured."""
        rows = self.rows(direction, plain) or self.rows(direction, not plain)
        return cast("DataRoad", next((row for row in rows if nbytes <= row.to_bytes), rows[-1]).way)

    def prices(self) -> list[Price]:
        """What encryption costs, at all sizes that were measured with it and without it."""
        found = []
        for direction in DIRECTIONS:
            secret, plain = (
                {size: seconds for row in self.rows(direction, of) for size, seconds in row.expected}
                for of in (False, True)
            )
            found += [
                Price(direction, size, secret[size], plain[size]) for size in sorted(secret.keys() & plain.keys())
            ]
        return found


def measured(gpu: RemoteGpu, sizes: Sequence[int], budget: float, show: Show) -> list[dict[str, Any]]:
    """Times all roads in one contest, and compares what comes back with what went. Returns series for a profile,
    one for each direction and road: the seconds until the server has an array, or until the client has it.

    Leaves out sizes of which the server does not hold two arrays. Raises CorruptionError for other bytes, InputError if
    no size is left, and as every call of the GPU.
    """
    import numpy

    sizes = [size for size in sizes if 2 * size <= gpu.memory]
    if not sizes:
        raise InputError("no road was measured: the server does not hold two arrays of the smallest size")
    draw = numpy.random.default_rng(0)
    cases = [(direction, road) for direction in DIRECTIONS for road in DATA_ROADS]
    points: dict[tuple[Direction, DataRoad], list[dict[str, Any]]] = {case: [] for case in cases}

    other: dict[tuple[Direction, DataRoad], float] = {}  # the time back of a turn there, or there of a turn back

    def seconds(direction: Direction, road: DataRoad, size: int) -> list[float]:
        if (direction, road) in other:
            return [other.pop((direction, road))]
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
        other["input", road], other["output", road] = there - begin, end - there
        return [other.pop((direction, road))]

    for done, size in enumerate(sizes):
        show(done, len(sizes), budget * (1 - done / len(sizes)), f"{size} bytes")

        def take(which: int, _calls: int, _counts: bool, size: int = size) -> list[float]:
            return seconds(*cases[which], size)

        found = _core.contest(len(cases), take, least=_LEAST, most=_MOST, seconds=budget / len(sizes))
        for case, one in zip(cases, found, strict=True):
            points[case].append(json.loads(one.point(size)))
    show(len(sizes), len(sizes), 0.0, "")
    return [
        {"operation": operation(direction, gpu._plain), "memory": "gpu", "ranks": 2, "way": road, "points": of}
        for (direction, road), of in points.items()
    ]


def usual_file() -> Path:
    """The plan in which `waywiser tune --remote` keeps roads, and programs look for them."""
    return Path(os.environ.get("WAYWISER_RESULTS") or DEFAULT) / "plan.json"


def partner(address: str, gpu: int) -> str:
    """How plans call a GPU of a server."""
    return f"{address} gpu{gpu}"


def kept(file: Path, address: str, gpu: int) -> Roads | None:
    """The rows of a plan for a server's GPU; None if there is no file or no such row. Raises InputError for an invalid
    one."""
    if not file.exists():
        return None
    rows = read_plan(read_bytes(file), str(file)).rows
    mine = [row for row in rows if row.partner == partner(address, gpu)]
    try:
        return Roads(mine) if mine else None
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def keep(file: Path, address: str, gpu: int, series: Sequence[dict[str, Any]], label: str = "") -> Roads:
    """Chooses from what was measured, and writes the rows into the plan, in place of what it has of this server's GPU.
    `label`: what the times are, if they are not a GPU's; each row says it. Raises InputError."""
    from waywiser.partner_rows import chosen_plan, keep_rows

    name = partner(address, gpu)
    chosen = chosen_plan([{**one, "partner": name} for one in series], "host")
    for row in chosen["rows"] if label else ():
        row["why"] += f"; {label}"
    return Roads([row for row in keep_rows(file, name, chosen).rows if row.partner == name])


def times_of(series: Sequence[dict[str, Any]]) -> Iterator[tuple[Direction, bool, int, dict[str, float]]]:
    """For each direction, encryption (`plain`) and size the seconds of each road."""
    for direction in DIRECTIONS:
        for plain in (False, True):
            times: dict[int, dict[str, float]] = {}
            for one in series:
                for point in one["points"] if one["operation"] == operation(direction, plain) else ():
                    times.setdefault(point["bytes"], {})[one["way"]] = point["seconds"]
            for size, seconds in sorted(times.items()):
                yield direction, plain, size, seconds
