"""Files of a simulated machine: how long each way takes to a device, a RAID 0 of them, or a network file system.

A part of n bytes goes in p = n/c pieces, of which k are under way at once. N equal devices of rate R, I operations a
second and latency L take

    D = L + max(n/(N R), p/(N I), ceil(p/k) (L + c/R) - L)

Past the page cache that is all but for calls and threads. Through it, k is what the kernel reads ahead, two pieces of
each thread, and a thread copies meanwhile at the rate of memcpy; a mapping costs so much a page. A write ends when the
device has the bytes. To a GPU all goes through buffers of b bytes: ceil(n/b) calls, as many at once as there are lanes,
each copied while the next is read; by cuFile no buffer, and no more than the rate of the GPU's link. Not in the model:
file systems, other users of the device, caches in it, two sockets, the number of processors.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError
from waywiser.simulator.assumptions import Assumption
from waywiser.simulator.costs import parts
from waywiser.units import parse_bytes

if TYPE_CHECKING:
    from waywiser._core import Topology


_VALUES = ("read_rate", "write_rate", "read_latency", "write_latency", "read_iops", "write_iops")
# What mechanisms take without parameters: of a piece, and how many at once.
_SHAPES = {
    "buffered": (1 << 20, 1),
    "io_uring": (256 << 10, 32),
    "direct": (1 << 20, 4),
    "mmap": (4 << 20, 1),
    "cufile": (16 << 20, 4),
}
_BOUNCE, _PARTS, _MOST_DEVICES = 2 << 20, 256, 1024


@cache
def _file() -> dict[str, Any]:
    text = resources.files("waywiser").joinpath("simulator").joinpath("storage_parts.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _of_machine(topology: Topology, name: str) -> dict[str, float] | None:
    """What the machine file says of a device of kind storage; its attributes are those of `_VALUES` and devices."""
    if name not in topology.ids("storage"):
        return None
    found = {}
    for key, text in topology.device(name).attributes.items():
        if key not in (*_VALUES, "devices"):
            continue
        try:
            found[key] = float(text)
        except ValueError:
            found[key] = math.nan
        if not 0 < found[key] < math.inf:
            raise InputError(f"{topology.name}, {name}: {key} = {text!r} is not a number above 0")
    return found


@dataclass
class Storage:
    """`name` as asked for. What is not known is in `assumed`."""

    name: str
    values: dict[str, float]
    devices: float
    copy_rate: float
    link_rate: float | None  # between host and GPU; None: there is no GPU
    assumed: list[Assumption]


def storage_of(topology: Topology, asked: str) -> Storage:
    """`asked`: a device of kind storage in the machine file, or [COUNT x] KIND of the package. Raises InputError."""
    counted = re.fullmatch(r"(?:(\d{1,4}) ?x ?)?([a-z0-9-]+)", asked)
    kinds, any_kind = _file()["parts"], _file()["any"]
    known = None if counted is None else _of_machine(topology, counted[2])
    if counted is None or (known is None and counted[2] not in kinds):
        names = ", ".join([*topology.ids("storage"), *kinds])
        raise InputError(f"--storage {asked[:80]!r}: {topology.name} has {names}; also 4 x KIND, a RAID 0")
    count = int(counted[1] or 1)
    if not 1 <= count <= _MOST_DEVICES:
        raise InputError(f"--storage {asked[:80]!r}: 1 to {_MOST_DEVICES} devices")
    values, assumed = {}, []
    for key in _VALUES:
        if known is not None and key in known:
            values[key] = known[key]
            continue
        row = kinds.get(counted[2], {}).get(key) or any_kind[key]
        values[key] = float(row["value"])
        instead = f"{values[key]:g} ({row['source']})"
        assumed.append({"part": asked, "parameter": key, "what": key.replace("_", " "), "assumed": instead})
    copy = next(part["values"]["host.copy_rate"] for part in parts()["parts"] if part["kind"] == "any")
    assumed.append({"part": "its CPU", "parameter": "host.copy_rate", "what": copy["what"], "assumed": copy["assumed"]})
    gpus = topology.ids("gpu")
    link = topology.route("host0", gpus[0]).achievable if gpus else None
    return Storage(asked, values, count * (known or {}).get("devices", 1), float(copy["value"]), link, assumed)


@dataclass(frozen=True)
class Shape:
    """Bytes of a piece, how many at once; the buffer and lanes of GPUs."""

    mechanism: str
    chunk: int
    count: int
    bounce: int
    lanes: int


def shape_of(way: str) -> Shape:
    """What a way to a file does, with what it does where it does not say it."""
    found = re.fullmatch(r"(\w+)(?:\((.*)\))?", way)
    assert found is not None
    given = dict(each.split("=") for each in (found[2] or "").split(",") if each)
    chunk, count = _SHAPES[found[1]]
    count = int(given.get("threads") or given.get("depth") or count)
    chunk, bounce = (parse_bytes(given.get(key, str(size))) for key, size in (("chunk", chunk), ("bounce", _BOUNCE)))
    return Shape(found[1], chunk, count, bounce, int(given.get("lanes", 1)))


def seconds(storage: Storage, memory: str, work: str, way: str, nbytes: int) -> float:
    """Of a part of so many bytes; of one of 256 for `file_read_many`."""
    shape = shape_of(way)
    together = _PARTS if work == "file_read_many" else 1
    whole = nbytes * together
    if memory == "gpu" and storage.link_rate is not None:
        if shape.mechanism == "cufile":
            return max(_to_host(storage, work, shape, whole, together), whole / storage.link_rate) / together
        return _to_gpu(storage, work, shape, whole, max(1, min(whole, shape.bounce) // nbytes)) / together
    return _to_host(storage, work, shape, whole, together) / together


def _to_gpu(storage: Storage, work: str, shape: Shape, whole: int, parts_of_load: int) -> float:
    assert storage.link_rate is not None
    buffer = min(whole, shape.bounce)
    loads = math.ceil(whole / buffer)
    lanes = min(shape.lanes, loads)
    each = _to_host(storage, work, shape, buffer, parts_of_load)
    if work != "file_read_cached":  # the lanes share the device
        piece = min(shape.chunk, buffer // parts_of_load)
        each = max(each, _device(storage, work == "file_write", lanes * buffer, piece, lanes * shape.count))
    copy = buffer / storage.link_rate
    started = float(_file()["host"]["thread"]["value"]) * (lanes - 1)
    return started + math.ceil(loads / lanes) * max(each, lanes * copy) + min(each, copy)


def _device(storage: Storage, write: bool, nbytes: int, piece: int, at_once: int) -> float:
    way = "write" if write else "read"
    rate, latency, iops = (storage.values[f"{way}_{what}"] for what in ("rate", "latency", "iops"))
    pieces = math.ceil(nbytes / piece)
    turns = math.ceil(pieces / max(1, min(at_once, pieces)))
    alone = turns * (latency + min(piece, nbytes) / rate) - latency
    return latency + max(nbytes / (storage.devices * rate), pieces / (storage.devices * iops), alone)


def _to_host(storage: Storage, work: str, shape: Shape, nbytes: int, parts_of_call: int) -> float:
    host = {name: float(row["value"]) for name, row in _file()["host"].items()}
    part = nbytes // parts_of_call
    piece = min(shape.chunk, part)
    pieces = parts_of_call * math.ceil(part / piece)
    threads = 1 if shape.mechanism == "io_uring" else min(shape.count, pieces)
    calls = host["call"] * pieces / threads + host["thread"] * (threads - 1)
    pages = host["page"] * nbytes / 4096 / threads
    copied = nbytes / (storage.copy_rate * threads)
    if shape.mechanism in ("io_uring", "direct", "cufile"):
        return calls + _device(storage, work == "file_write", nbytes, piece, shape.count)
    if work == "file_write":
        return calls + copied + pages + _device(storage, True, nbytes, 1 << 20, 64)
    mapped = pages if shape.mechanism == "mmap" else 0.0
    if work == "file_read_cached":
        return calls + copied + mapped
    ahead = int(host["ahead"])
    window = min(ahead, part)
    return (
        calls
        + mapped
        + max(copied + pages, _device(storage, False, nbytes, window, 2 * threads))
        + window / storage.copy_rate
    )
