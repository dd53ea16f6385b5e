"""Communicators of NCCL, one for each way that a request names: the tuner gets a plan that has only this way."""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import waywiser._core as _core

PLAN = "WAYWISER_NCCL_PLAN"
_OPERATIONS = ("all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter")
_NO_END = (1 << 63) - 1
_MOST = 24  # communicators at a time, each with its memory on the GPU
_PATIENCE = 60.0


class UniqueId(ctypes.Structure):
    """NCCL's ncclUniqueId."""

    _fields_ = (("internal", ctypes.c_byte * 128),)


def plan_of(way: str, ranks: int, version: str) -> str:
    """A plan for this machine in which NCCL of this version takes one way for all collectives and sizes."""
    machine = _core.discover()
    row = {"memory": "gpu", "ranks": ranks, "partner": f"NCCL {version}", "from_bytes": 0, "to_bytes": _NO_END}
    taken = {"ways": [{"way": way, "ratio": 1.0}], "expected": [], "why": "it is measured"}
    head = {"schema": "waywiser.plan", "version": 3, "fingerprint": machine.fingerprint, "machine": machine.name}
    rows = [{"operation": operation, **row, **taken} for operation in _OPERATIONS]
    return json.dumps({**head, "backend": "cuda", "simulated": False, "other_nodes": [], "rows": rows})


def handed_out(text: str, file: Path) -> dict[str, str]:
    """Writes the plan; the variable by which a rank of NCCL gets it."""
    file.write_text(text)
    return {PLAN: f"{_core.plan_hash(text, 'NCCL')}:{file}"}


class Communicators:
    """Made when they are first asked for, by all ranks alike; the oldest one goes when there are too many."""

    def __init__(self, library: Any, check: Callable[[int], None], rank: int, size: int, meeting: Path) -> None:
        self._library, self._check = library, check
        self._rank, self._size, self._meeting = rank, size, meeting
        self._made: dict[str, ctypes.c_void_p] = {}
        self._count = 0

    def of(self, way: str, version: str) -> ctypes.c_void_p:
        """`way`: "": as this process was started."""
        if way not in self._made:
            if way:
                file = self._meeting.with_suffix(f".plan-{self._rank}.json")
                os.environ.update(handed_out(plan_of(way, self._size, version), file))
            while len(self._made) >= _MOST:
                oldest = next(name for name in self._made if name)
                self._check(self._library.ncclCommDestroy(self._made.pop(oldest)))
            self._made[way] = self._join()
        return self._made[way]

    def _join(self) -> ctypes.c_void_p:
        made, file = UniqueId(), self._meeting.with_suffix(f".{self._count}")
        self._count += 1
        if self._rank == 0:
            self._check(self._library.ncclGetUniqueId(ctypes.byref(made)))
            tell_all(file, bytes(made))
        told = UniqueId.from_buffer_copy(hear(file))
        found = ctypes.c_void_p()
        self._library.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
        self._check(self._library.ncclCommInitRank(ctypes.byref(found), self._size, told, self._rank))
        return found


def tell_all(file: Path, data: bytes) -> None:
    """Writes the file atomically."""
    part = file.with_name(f"{file.name}.part")
    part.write_bytes(data)
    part.rename(file)


def hear(file: Path) -> bytes:
    deadline = time.monotonic() + _PATIENCE
    while not file.exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"rank 0 has not come within {_PATIENCE:.0f} s")
        time.sleep(0.005)
    return file.read_bytes()
