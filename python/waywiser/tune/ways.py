"""Times every algorithm of collectives, messages on streams and prepared exchanges between processes of this machine,
for the profile of `waywiser tune`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import waywiser._core as _core
from waywiser.bench.conduct import FROM_KERNEL, Case
from waywiser.bench.operations import OPERATIONS
from waywiser.bench.team import Timed
from waywiser.bench.teams import Setup, our_team
from waywiser.profile import COLLECTIVES, MESSAGE, PREPARED, PUT_MESSAGE
from waywiser.stages import Show
from waywiser.tune.turns import OneWay, take_turns, timed_point

_GPU_WAYS = ("LL", "LL128", "one_shot", "two_shot_LL128", "two_shot", "copy_engine", "nccl", "host")
_MESSAGE_WAYS = ("LL", "LL128", "bulk")
_BLOCKS = ("", "(blocks=32)", "(blocks=16)")
_PREPARED_WAYS = {
    "LL": ("", "(piece=1K)"),
    "LL128": ("", "(piece=15K)", "(blocks=32)"),
    "bulk": ("", "(piece=64K)", "(blocks=32)"),
    "direct": ("", "(piece=64K)", "(blocks=32)", "(blocks=64)"),
}
_GRIDS = ("", "(blocks=16,threads=512)", "(blocks=128,threads=512)")
_LONG_GRIDS = (*_GRIDS, "(blocks=256,threads=512)")
_HOST_SIZES = (8, 1 << 10, 16 << 10, 128 << 10, 1 << 20)
_HOST_MESSAGE_SIZES = (8, 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
_GPU_SIZES = (8, 1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20)
_MOST_OF_EACH_RANK = 16 << 20  # for collectives whose result grows with the number of ranks
# For GPU arrays: clearly slow algorithms are not timed.
_MOST_BY_HOST, _MOST_BY_LL128, _LEAST_BY_SHOTS, _LEAST_BY_COPIES = 1 << 20, 4 << 20, 64 << 10, 64 << 20
# For messages, prepared ones too: LL sends twice the bytes; bulk pieces have a minimum size; few bytes need few blocks.
_MOST_BY_LL, _MOST_BY_LL128_MESSAGES, _LEAST_BY_BULK, _LEAST_OF_BLOCKS = 1 << 20, 64 << 20, 8 << 10, 64 << 10
_MOST_BY_LL128_PREPARED = 4 << 20
_LEAST_OF_LONG_GRIDS = 16 << 20
_MOST_OF_A_BLOCK = 4 << 20  # one block moves no more at a time
_BLOCK_SIZES = (8, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
_VIRTUAL_SIZES = (8, 1 << 10, 64 << 10, 1 << 20)
_ROUNDS = 4
_HOPELESS = 2.0  # slower than the fastest by this factor: timed only once


@dataclass(frozen=True)
class Ranks:
    """The number of processes, and the memory of their arrays."""

    count: int
    memory: str
    backend: str
    operations: tuple[str, ...] = COLLECTIVES

    def ways(self, operation: str, size: int) -> list[str]:
        """The algorithms to time. A group itself rejects those that it cannot run."""
        if self.memory == "host":
            return list(_core.host_ways(operation, self.count))
        if operation == MESSAGE:
            return _message_ways(size)
        if operation == PREPARED:
            return _prepared_ways(size)
        if operation == PUT_MESSAGE:
            return _put_message_ways(size)
        two_shots = {"all_reduce": ("two_shot_LL128", "two_shot"), "broadcast": ("two_shot",)}.get(operation, ())
        found = [way for way in _GPU_WAYS if way in two_shots or "two_shot" not in way]
        if size < _LEAST_BY_COPIES or operation == "reduce":
            found.remove("copy_engine")
        if size > _MOST_BY_HOST:
            found = [way for way in found if way not in ("host", "LL")]
        if size > _MOST_BY_LL128:
            found = [way for way in found if "LL128" not in way]
        if size < _LEAST_BY_SHOTS:
            return [way for way in found if "shot" not in way]
        grids = _LONG_GRIDS if size >= _LEAST_OF_LONG_GRIDS else _GRIDS
        shots = [way + grid for way in found if "shot" in way for grid in grids]
        return [way for way in found if "shot" not in way] + shots

    def sizes(self, operation: str) -> Sequence[int]:
        if self.memory == "host":
            return _HOST_MESSAGE_SIZES if operation == MESSAGE else _HOST_SIZES
        if self.backend == "virtual_gpu":
            return _VIRTUAL_SIZES
        if operation == PUT_MESSAGE:
            return _BLOCK_SIZES
        most = _GPU_SIZES[-1] if operation in ("all_reduce", "broadcast", MESSAGE) else _MOST_OF_EACH_RANK
        if operation in ("all_gather", "all_to_all", "reduce_scatter"):  # long ones go by copy engines
            most = 64 << 20
        return [size for size in _GPU_SIZES if size <= most]


def _message_ways(size: int) -> list[str]:
    blocks = _BLOCKS if size >= _LEAST_OF_BLOCKS else _BLOCKS[:1]
    range_of = {"LL": (0, _MOST_BY_LL), "LL128": (0, _MOST_BY_LL128_MESSAGES), "bulk": (_LEAST_BY_BULK, size)}
    found = [way for way in _MESSAGE_WAYS if range_of[way][0] <= size <= range_of[way][1]]
    return [way + each for way in found for each in blocks]


def _put_message_ways(size: int) -> list[str]:
    range_of = {"LL": (0, _MOST_BY_LL), "LL128": (0, _MOST_OF_A_BLOCK), "stores": (0, size), "bulk": (1 << 10, size)}
    return [way for way, (least, most) in range_of.items() if least <= size <= most]


def _prepared_ways(size: int) -> list[str]:
    most = {"LL": _MOST_BY_LL, "LL128": _MOST_BY_LL128_PREPARED}
    found = {kind: each for kind, each in _PREPARED_WAYS.items() if size <= most.get(kind, size)}
    return [kind + each for kind, parts in found.items() for each in (parts if size >= _LEAST_OF_BLOCKS else parts[:1])]


def ranks_to_time(backend: str, gpus: int) -> list[Ranks]:
    """The numbers of ranks that `tune` times on this machine."""
    if backend == "virtual_gpu":  # too slow for collectives, and their times mean nothing
        return [Ranks(2, "gpu", backend, (MESSAGE, PREPARED, PUT_MESSAGE))] if gpus > 1 else []
    found = [Ranks(2, "host", backend, (*COLLECTIVES, MESSAGE))]
    if backend == "cuda" and gpus > 1:
        ranks = [Ranks(count, "gpu", backend) for count in sorted({2, min(gpus, 8)}, reverse=True)]
        found = [*ranks[:-1], replace(ranks[-1], operations=(*COLLECTIVES, MESSAGE, PREPARED, PUT_MESSAGE)), *found]
    return found


def measured(ranks: Ranks, results: Path, seconds: float, show: Show) -> list[dict[str, Any]]:
    """Series for the profile, in about `seconds`; points without time are left out. Raises TeamError."""
    series: dict[tuple[str, str], list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        gpus = ranks.count if ranks.backend == "virtual_gpu" else 0
        team = our_team(Setup(ranks.count, ranks.backend, gpus, results, Path(folder)))
        try:
            for operation, way, point in _points(team, ranks, time.monotonic() + seconds, show):
                series.setdefault((operation, way), []).append(point)
        finally:
            team.close()
    head = {"memory": ranks.memory, "ranks": ranks.count}
    return [{"operation": name, "way": way, "points": points, **head} for (name, way), points in series.items()]


def _points(team: Timed, ranks: Ranks, until: float, show: Show) -> Iterator[tuple[str, str, dict[str, Any]]]:
    # If the time is short, every operation has the most common sizes.
    cases = sorted(((op, size) for op in ranks.operations for size in ranks.sizes(op)), key=lambda case: case[1])
    started = time.monotonic()
    for done, (operation, size) in enumerate(cases):
        left = until - time.monotonic()
        if left <= 0:
            return
        show(done, len(cases), left, f"{operation} {ranks.memory} {size}")
        share = max(until - started, 0.0) * (done + 1) / len(cases) - (time.monotonic() - started)
        case = Case(OPERATIONS["latency" if operation == MESSAGE else operation], ranks.memory, size)
        for way, point in _timed(team, case, ranks.ways(operation, size), time.monotonic() + share):
            yield operation, way, point


def _timed(team: Timed, case: Case, ways: Sequence[str], until: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Work of GPUs is captured in a graph: otherwise the host's part of a call, which is the same for all algorithms,
    hides their differences."""
    mode = FROM_KERNEL if case.operation.from_kernel else "graph"
    cases = {way: replace(case, mode=mode) if case.memory == "gpu" and way != "host" else case for way in ways}
    teams = {way: OneWay(team, way) for way in ways}
    for way, one in take_turns(teams, cases, until, _ROUNDS, _HOPELESS).items():
        yield way, timed_point(case, one)
