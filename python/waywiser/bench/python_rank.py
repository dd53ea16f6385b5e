"""A rank, in Python, of another library that is timed beside ours: the same steps as src/waywiser/bench.

Each library provides its calls (mpi4py_rank.py, torch_rank.py, nccl_rank.py); this module fills, checks, times and
talks to the conductor. It uses the protocol of src/waywiser/bench/rank_channel.hpp.
"""

from __future__ import annotations

import functools
import socket
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy

from waywiser.bench.rank_request import BOTH_WAYS, FROM_KERNEL, MESSAGES, KernelCalls, Library, NotThere, Place, Request

_MOST_IN_GRAPH = _WARM_UP = 50
_PERIOD = 16
LOOKS = 16
_TO_EACH = ("all_to_all", "scatter", "reduce_scatter")
_FROM_EACH = ("all_to_all", "gather", "all_gather")
_REDUCING = ("reduce", "all_reduce", "reduce_scatter", "scan", "exscan", "overlap_all_reduce")


@functools.lru_cache(maxsize=2)
def _base(words: int) -> Any:
    """Bytes that differ at each place."""
    with numpy.errstate(over="ignore"):
        mixed = numpy.arange(words, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> numpy.uint64(31))


def _pattern(length: int, seed: int) -> Any:
    """Bytes that differ by place and seed. Making long arrays is as fast as copying them."""
    mixed = (seed + 1) * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    mixed = (mixed ^ mixed >> 29) * 0x94D049BB133111EB & 0xFFFFFFFFFFFFFFFF
    return (_base(-(-length // 8)) ^ numpy.uint64(mixed ^ mixed >> 32)).view(numpy.uint8)[:length]


def _sums(count: int, firsts: Iterable[int]) -> Any:
    """The expected sum at each place: each rank gives numbers that rise from its first, modulo a period."""
    one = sum((numpy.arange(_PERIOD) + first) % _PERIOD for first in firsts)
    return numpy.resize(numpy.asarray(one, numpy.float32), count)


def compute_beside(seconds: float, look: Callable[[], object]) -> None:
    """Keeps the processor busy, with polls of the operation under way."""
    start = time.perf_counter()
    for part in range(1, LOOKS + 1):
        until = start + seconds * part / LOOKS
        while time.perf_counter() < until:
            continue
        if seconds > 0:
            look()


class _Exercise:
    """Prepares, runs and checks one operation."""

    def __init__(self, library: Library, request: Request) -> None:
        operation = request.operation
        if {request.input, request.output} != {library.memory}:
            raise NotThere(f"{library.memory} memory only")
        self._library, self._request = library, request
        self.place = Place(library.rank, library.size, operation)
        self._sums = operation in _REDUCING
        block = request.bytes // 4 if self._sums else request.bytes
        self._block = block
        two = 2 if operation == "neighbor_exchange" else 1
        self._given = block * (library.size if operation in _TO_EACH else two)
        self._taken = block * (library.size if operation in _FROM_EACH else two)
        memory = (request.input, request.output)
        if operation in MESSAGES:
            memory = (request.input,) * 2 if self.place.first else (request.output,) * 2
        self.give = library.array(self._given, self._sums, memory[0])
        self.take = library.array(self._taken, self._sums, memory[1])
        self._kernels: KernelCalls | None = getattr(library, "kernels", None) if request.mode == FROM_KERNEL else None
        if self._kernels is not None:
            self._by_kernel = self._kernels.calls_of(request, self.give, self.take)
        elif request.mode == FROM_KERNEL:
            raise NotThere("its kernels are not timed")
        else:
            self.call = library.call(request, self.place, self.give, self.take)
        self._waits = request.mode == "blocking" and {request.input, request.output} != {"host"}
        self._graph: tuple[int, Callable[[], None]] | None = None
        if request.mode == "graph":
            library.record(lambda: None)  # raises at all ranks, also at those that take no part

    def _seed(self, seed: int, source: int, to: int = 0) -> int:
        return seed + 1000003 * source + 7919 * to

    def prepare(self, seed: int) -> None:
        rank, blocks = self.place.rank, self._given // self._block if self._block else 0
        if self._sums:
            self._library.write(self.give, _sums(self._given, [(seed & 0xFFFF) + rank]))
        elif self._request.operation == "broadcast":
            source = 0 if rank == 0 else self.place.size
            self._library.write(self.take, _pattern(self._block, self._seed(seed, source)))
        elif blocks:
            parts = [_pattern(self._block, self._seed(seed, rank, to)) for to in range(blocks)]
            self._library.write(self.give, numpy.concatenate(parts))

    def check(self, seed: int) -> bool:
        if self._kernels is not None and not self._kernels.is_right(self._request.operation):
            return False
        if not self.place.taking_part or not self._block:
            return True
        expected = self._expected(seed)
        if expected is None:
            return True
        return bool(numpy.array_equal(self._library.read(self.take)[: len(expected)], expected))

    def _expected(self, seed: int) -> Any:
        operation, rank, size = self._request.operation, self.place.rank, self.place.size
        if self._sums:
            offset = rank * self._block if operation == "reduce_scatter" else 0
            if (operation == "reduce" and rank != 0) or (operation == "exscan" and rank == 0):
                return None
            summed = {"scan": rank + 1, "exscan": rank}.get(operation, size)
            return _sums(self._block, ((seed & 0xFFFF) + r + offset for r in range(summed)))
        sources: list[tuple[int, int]] = [(0, 0)]
        if operation in ("put", "get"):  # of rank 0
            sources = [(1 - rank, 0)] if rank == (1 if operation == "put" else 0) else []
        elif operation in MESSAGES:
            one_way = operation not in BOTH_WAYS and "latency" not in operation
            sources = [] if one_way and self.place.first else [(self.place.other, 0)]
        elif operation == "scatter":
            sources = [(0, rank)]
        elif operation == "all_to_all":
            sources = [(source, rank) for source in range(size)]
        elif operation == "neighbor_exchange":
            sources = [((rank - 1) % size, 1), ((rank + 1) % size, 0)]
        elif operation == "all_gather" or (operation == "gather" and rank == 0):
            sources = [(source, 0) for source in range(size)]
        elif operation in ("gather", "barrier"):
            sources = []
        parts = [_pattern(self._block, self._seed(seed, *source)) for source in sources]
        return numpy.concatenate(parts) if parts else None

    def run(self, calls: int) -> None:
        if not self.place.taking_part:
            return
        if self._kernels is not None:
            meets = self._by_kernel(calls)
            self._library.finish()
            if meets:
                self._library.barrier()
        elif self._request.mode == "graph":
            each = min(calls, _MOST_IN_GRAPH)
            launch = self._captured(each)
            for _ in range(calls // each):
                launch()
        else:
            self._repeat(calls)
        self._library.finish()

    def _captured(self, calls: int) -> Callable[[], None]:
        if self._graph is None or self._graph[0] != calls:
            self._graph = None
            self.call()  # the set-up of a first call cannot be captured
            self._library.finish()
            self._graph = calls, self._library.record(lambda: self._repeat(calls))
        return self._graph[1]

    def _repeat(self, calls: int) -> None:
        for _ in range(calls):
            self.call()
            if self._waits:
                self._library.finish()


def _slice(library: Library, exercise: _Exercise, request: Request) -> list[float]:
    times = []
    exercise.prepare(request.seed)
    library.barrier()
    exercise.run(min(request.calls, _WARM_UP))
    for sample in range(request.samples):
        seed = request.seed + 1 + sample
        exercise.prepare(seed)
        library.barrier()
        start = time.perf_counter()
        exercise.run(request.calls)
        times.append((time.perf_counter() - start) / request.calls)
        if not exercise.check(seed):
            raise ValueError(f"{request.operation} of {request.bytes} bytes: what arrived is not what was sent")
    library.barrier()
    return times


def serve(path: str, library: Library) -> None:
    """Serves requests until the conductor ends the session."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    exercise: _Exercise | None = None
    known: Request | None = None
    with line, line.makefile("rw", encoding="utf-8") as talk:
        print(f"hello {library.rank} {library.size} {library.version}", file=talk, flush=True)
        for text in talk:
            word, _, rest = text.strip().partition(" ")
            if word != "run":
                return
            request = Request.read(rest)
            try:
                if exercise is None or known is None or _case(known) != _case(request):
                    exercise = None
                    exercise, known = _Exercise(library, request), request
                times = _slice(library, exercise, request)
                print("times", *(f"{seconds:.9g}" for seconds in times), file=talk, flush=True)
            except NotThere as error:
                print("unavailable", " ".join(str(error).split()), file=talk, flush=True)
            except Exception as error:
                print("failed", " ".join(f"{type(error).__name__}: {error}".split())[:300], file=talk, flush=True)
                print(f"rank {library.rank}: {error}", file=sys.stderr)
                raise


def _case(request: Request) -> tuple[object, ...]:
    return (
        request.operation,
        request.input,
        request.output,
        request.bytes,
        request.window,
        request.compute,
        request.mode,
        request.way,
    )
