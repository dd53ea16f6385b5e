"""`waywiser tune --storage`: times every way to the files of a folder, from the device and cached, and writing."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import waywiser._core as _core
from waywiser.errors import CorruptionError, Error, InputError
from waywiser.partner_rows import chosen_plan, keep_rows
from waywiser.plan import PlanRow
from waywiser.tune.storage_ways import (
    CACHED,
    GPU,
    HOST,
    LARGEST_PART,
    MANY,
    PARTS,
    READ,
    SMALL,
    WORKS,
    WRITE,
    Case,
    Why,
    alike,
    processors,
    ways_of,
)  # fmt: skip

if TYPE_CHECKING:
    import numpy

    from waywiser.group.gpus import Gpus
    from waywiser.stages import Show

SIZES = (4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
_MOST_BYTES, _LEAST_BYTES = 128 << 20, 8 << 20  # of the file that is read
_OF_FREE = 10  # at most this part of the free space, and twice: the file that is read, and one that is written
_LOOKS, _HOPELESS = 3, 2.0  # rounds of all; who is that much slower than the fastest has one
_LEAST, _MOST, _RIVAL = 5, 61, 1.3  # rounds of those that were no slower than that, once


def how_cufile_moves(ends: Sequence[str], why: Why) -> list[str]:
    """A note on whether cuFile really goes past the host here; nothing where it is not measured."""
    if GPU not in ends or why["cufile"][1] is not None:
        return []
    return [f"cufile moves bytes by: {_core.cufile_state()[1]}"]


@dataclass
class StorageTimes:
    """`series` for a profile, of the file system `storage`; `notes`: what could not be measured, and why."""

    storage: str
    series: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    simulated: _core.Topology | None = None  # of this machine


class Turns:
    """What a turn of each work is, on a file whose bytes are known."""

    def __init__(self, folder: Path, nbytes: int, gpus: Gpus | None = None) -> None:
        import numpy

        self._gpus = gpus

        self._draw = numpy.random.default_rng(0)
        self._bytes = self._draw.integers(0, 256, nbytes, numpy.uint8)
        self._memory = numpy.empty(max(nbytes, PARTS * LARGEST_PART), numpy.uint8)
        self._folder, self.path = folder, str(folder / "read")
        made = _core.File(self.path, True, _core.FilePlan(), "buffered")
        made.write([(0, self._bytes, None)])
        made.close()
        self._files: dict[tuple[str, str], _core.File] = {}
        self._written = 0

    def can_be_cold(self) -> bool:
        """Whether the file system lets go of its pages."""
        return self._file(HOST, "buffered").drop_cache()

    def take(self, memory: str, work: str, way: str, size: int) -> float:
        """Seconds of one, of a part where there are many. Raises CorruptionError, and as every call of a file."""
        return self._write(memory, way, size) if work == WRITE else self._read(memory, work, way, size)

    def _core_gpus(self, memory: str) -> _core.Gpus | None:
        return self._gpus._core if memory == GPU and self._gpus is not None else None

    def _file(self, memory: str, way: str) -> _core.File:
        if (memory, way) not in self._files:
            self._files[memory, way] = _core.File(self.path, False, _core.FilePlan(), way, self._core_gpus(memory))
        return self._files[memory, way]

    def _array(self, memory: str, at: int, size: int) -> Any:
        """Zeros; of hosts in memory that has been used before."""
        import numpy

        if memory == GPU and self._gpus is not None:
            return self._gpus.array(numpy.zeros(size, numpy.uint8))
        into = self._memory[at : at + size]
        into[:] = 0
        return into

    def _read(self, memory: str, work: str, way: str, size: int) -> float:
        import numpy

        count = PARTS if work == MANY else 1
        blocks = (len(self._bytes) - size) // 4096 + 1
        offsets = [int(block) * 4096 for block in self._draw.integers(0, blocks, count)]
        step = -(-size // 4096) * 4096
        parts = [(offset, self._array(memory, i * step, size), None) for i, offset in enumerate(offsets)]
        file = self._file(memory, way)
        if work == CACHED:
            self._file(HOST, "buffered").read([(offset, numpy.empty(size, numpy.uint8), None) for offset in offsets])
        else:
            file.drop_cache()
        begin = time.perf_counter()
        file.read(parts)
        seconds = time.perf_counter() - begin
        for offset, array, _ in parts:
            self._compare(array.numpy() if memory == GPU else array, offset, way)
        return seconds / count

    def _write(self, memory: str, way: str, size: int) -> float:
        import numpy

        self._written += 1
        path = self._folder / f"written{self._written % 2}"
        offset = int(self._draw.integers(0, len(self._bytes) - size + 1))
        given: Any = self._bytes[offset : offset + size]
        if memory == GPU and self._gpus is not None:
            given = self._gpus.array(given)
        file = _core.File(str(path), True, _core.FilePlan(), way, self._core_gpus(memory))
        begin = time.perf_counter()
        file.write([(0, given, None)])
        file.synchronize()
        seconds = time.perf_counter() - begin
        file.close()
        self._compare(numpy.fromfile(path, numpy.uint8), offset, way)
        path.unlink()
        return seconds

    def _compare(self, found: numpy.ndarray, offset: int, way: str) -> None:
        import numpy

        if not numpy.array_equal(found, self._bytes[offset : offset + len(found)]):
            raise CorruptionError(f"{self.path}, {way}: {len(found)} bytes at {offset} came back as others")


def room_in(folder: Path) -> int:
    """Bytes of the file that is read; raises InputError if the folder has no room for a measurement."""
    if not folder.is_dir():
        raise InputError(f"--storage {folder}: is no folder")
    free = shutil.disk_usage(folder).free
    room = min(_MOST_BYTES, free // _OF_FREE // 2)
    if room < _LEAST_BYTES:
        raise InputError(f"--storage {folder}: {free} bytes are free: a measurement takes a tenth, and 16M at least")
    return room


def measured(
    folder: Path, seconds: float, show: Show, sizes: Sequence[int] = SIZES, gpus: Gpus | None = None
) -> StorageTimes:
    """Times all ways in about `seconds`, to memory of the host and of the first of `gpus`, and compares all bytes. The
    files are gone afterwards, whatever ends it.

    Raises InputError, CorruptionError, and TransferError if no file can be written there.
    """
    room = room_in(folder)
    try:
        with tempfile.TemporaryDirectory(prefix="waywiser-tune-", dir=folder) as inside:
            turns = Turns(Path(inside), room, gpus)
            times = StorageTimes(_core.storage_of(turns.path))
            ends = (HOST,) if gpus is None else (HOST, GPU)
            why: Why = {name: (end, read, write) for name, end, read, write in _core.storage_mechanisms(turns.path)}
            times.notes += [
                f"{name} does not serve it: {read}" for name, (end, read, _) in why.items() if read and end in ends
            ]
            times.notes += how_cufile_moves(ends, why)
            cold = turns.can_be_cold()
            if not cold:
                times.notes.append("only cached reads are measured: the file system keeps its pages in memory")
            works = [work for work in WORKS if cold or work not in (READ, MANY)]
            cases = [(end, work, size) for end in ends for size in sizes if 2 * size <= room for work in works]
            cases = [(end, work, size) for end, work, size in cases if work != MANY or size <= LARGEST_PART]
            series: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
            slow: set[tuple[str, str, str]] = set()
            for (end, work, size), share in _shares(cases, seconds, show):
                ways = [way for way in ways_of(end, work, size, why, processors()) if (end, work, way) not in slow]
                points = _timed(turns, (end, work, size), ways, share)
                for way, point in points.items():
                    series.setdefault((end, work, way), []).append(point)
                slow |= {(end, work, way) for way in _slow(points)} if size > SMALL else set()
    except OSError as error:
        raise InputError(f"--storage {folder}: {error.strerror}") from error
    times.series = [
        {"operation": work, "way": way, "points": of, "memory": end, "ranks": 2, "partner": times.storage}
        for (end, work, way), of in series.items()
    ]
    return times


def _shares(cases: Sequence[Case], seconds: float, show: Show) -> Iterator[tuple[Case, float]]:
    """Each case with its time: what others leave goes to those that follow."""
    end = time.monotonic() + seconds
    for done, case in enumerate(cases):
        left = end - time.monotonic()
        show(done, len(cases), max(left, 0.0), " ".join(map(str, case)))
        yield case, left / (len(cases) - done)
    show(len(cases), len(cases), 0.0, "")


def _timed(turns: Turns, case: Case, ways: Sequence[str], seconds: float) -> dict[str, dict[str, Any]]:
    """Points of a profile. Ways that do the same are timed as one; those that may be the fastest have most of the time,
    and their points are of that part alone."""
    memory, work, size = case
    firsts: dict[tuple[object, ...], str] = {}
    stands_for = {way: firsts.setdefault(alike(memory, work, way, size), way) for way in ways}
    until = time.monotonic() + max(seconds, 0.0)
    points = _contest(turns, case, list(firsts.values()), 1 if seconds <= 0 else _LOOKS, _LOOKS, seconds / 2)
    best = min((one.median for one in points.values()), default=0.0)
    rivals = [way for way, one in points.items() if min(one.samples) <= _RIVAL * best]
    if seconds > 0:
        points |= _contest(turns, case, rivals, _LEAST, _MOST, until - time.monotonic())
    found = {way: json.loads(one.point(size)) for way, one in points.items()}
    return {way: found[first] for way, first in stands_for.items() if first in found}


def _contest(
    turns: Turns, case: Case, ways: Sequence[str], least: int, most: int, seconds: float
) -> dict[str, _core.Contender]:
    """Of those that serve the case, in rounds."""
    memory, work, size = case

    def take(which: int, _calls: int, _counts: bool) -> list[float] | None:
        try:
            return [turns.take(memory, work, ways[which], size)]
        except CorruptionError:
            raise
        except Error:
            return None

    found = _core.contest(
        len(ways), take, least=least, most=most, seconds=max(seconds, 0.0), looks=1, hopeless=_HOPELESS
    )
    return {way: one for way, one in zip(ways, found, strict=True) if one.offered and one.samples}


def _slow(points: dict[str, dict[str, Any]]) -> set[str]:
    """The ways that are hopeless at a size: larger ones do without them."""
    times = {way: float(point["seconds"]) for way, point in points.items()}
    return {way for way, seconds in times.items() if seconds > _HOPELESS * min(times.values())}


def keep(file: Path, times: StorageTimes) -> list[PlanRow]:
    """Chooses from what was measured, and writes the rows into the plan, in place of those of this file system. Returns
    them. Raises InputError."""
    if not times.series:
        raise InputError("no way to a file was measured")
    chosen = chosen_plan(times.series, "host", simulated=times.simulated)
    plan = keep_rows(file, times.storage, chosen, 2)
    return [row for row in plan.rows if row.partner == times.storage]


def storage_of_path(path: Path) -> str:
    """The file system of a file, or of the folder of one that is not there yet. Raises InputError."""
    if path.exists() and path.is_file():
        return _core.storage_of(os.fspath(path))
    folder = path if path.is_dir() else path.parent
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as inside:
            return _core.storage_of(inside.name)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
