"""`waywiser tune --storage`: times every way to the files of a folder, from the device and cached, and writing."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import waywiser._core as _core
from waywiser.errors import CorruptionError, InputError
from waywiser.partner_rows import chosen_plan, keep_rows
from waywiser.plan import PlanRow
from waywiser.tune.storage_contest import sizes_between, timed
from waywiser.tune.storage_ways import (
    CACHED,
    GPU,
    HOST,
    LARGEST_PART,
    MANY,
    PARTS,
    READ,
    WORKS,
    WRITE,
    Case,
    Why,
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

            def ways(case: Case) -> list[str]:
                return ways_of(*case, why, processors())

            cells = timed(turns.take, cases, ways, seconds, show, sizes_between(sizes))
    except OSError as error:
        raise InputError(f"--storage {folder}: {error.strerror}") from error
    points: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for (end, work, size), cell in sorted(cells.items()):
        for way, point in cell.points(size).items():
            points.setdefault((end, work, way), []).append(point)
    times.series = [
        {"operation": work, "way": way, "points": of, "memory": end, "ranks": 2, "partner": times.storage}
        for (end, work, way), of in points.items()
    ]
    return times


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
