"""What `bench --with-compute` runs on: arrays, calls and computations of hosts, of virtual GPUs and of CUDA GPUs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy

from waywiser.group.gpus import Gpus, virtual_gpus
from waywiser.group.group import Group
from waywiser.look.job import started

PERIOD = 16  # of the numbers in arrays, so that their sums are exact
_MATRIX = 192  # rows of a matrix on a host
Times = tuple[float, float, float]  # seconds of the calls, of the computation, of both


class Arrays(Protocol):
    """Arrays of float32 of one kind of memory."""

    stream: Any

    def empty(self, count: int) -> Any: ...
    def numbers(self, count: int, first: int) -> Any:
        """first, first + 1, ... modulo a period, as values that can be added."""
        ...

    def join(self, parts: list[Any]) -> Any: ...
    def write(self, array: Any, values: Any) -> None: ...
    def equal(self, array: Any, values: Any) -> bool: ...


class Exercise:
    """The arrays of one collective: filled anew for each sample, and checked after it."""

    def __init__(self, arrays: Arrays, operation: str, length: int, rank: int, size: int) -> None:
        self._arrays, self._operation, self._rank, self._size = arrays, operation, rank, size
        self._count = max(1, length // 4)
        to_each, from_each = operation in ("reduce_scatter", "all_to_all"), operation in ("all_gather", "all_to_all")
        self.give = arrays.empty(self._count * (size if to_each else 1))
        self.take = arrays.empty(self._count * (size if from_each else 1))
        self._given = self._count * (size if to_each else 1)
        self._seed = 0

    def call_of(self, group: Group) -> Callable[[], object]:
        """One call by the group; the sizes are those of a rank's block."""
        stream = {} if self._arrays.stream is None else {"stream": self._arrays.stream}
        call: Any = getattr(group, self._operation)
        if self._operation == "broadcast":
            return lambda: call(self.take, 0, **stream)
        return lambda: call(self.give, self.take, **stream)

    def _of(self, rank: int, count: int, first: int = 0) -> Any:
        return self._arrays.numbers(count, self._seed + 3 * rank + first)

    def fill(self) -> None:
        self._seed += 1
        if self._operation == "broadcast":
            self._arrays.write(self.take, self._of(self._rank, self._count))
        else:
            self._arrays.write(self.give, self._of(self._rank, self._given))

    def is_right(self) -> bool:
        mine = self._rank * self._count if self._operation in ("reduce_scatter", "all_to_all") else 0
        if self._operation == "broadcast":
            return self._arrays.equal(self.take, self._of(0, self._count))
        parts = [self._of(rank, self._count, mine) for rank in range(self._size)]
        return self._arrays.equal(self.take, sum(parts) if "reduce" in self._operation else self._arrays.join(parts))


class Computation(Protocol):
    """`fit` makes it last about so many seconds; `most`: of all ranks. `run` returns its seconds on a host."""

    def fit(self, seconds: float, most: Callable[[float], float]) -> None: ...
    def run(self) -> float: ...
    def is_right(self) -> bool: ...


class Side(Protocol):
    backend: str
    gpus: Gpus | None

    def exercise(self, operation: str, length: int, rank: int, size: int) -> Exercise: ...
    def computation(self, name: str) -> Computation: ...
    def at_once(self, calls: tuple[Callable[[], object], int] | None, computing: Computation | None) -> Times:
        """Runs what is given, at once. The computation begins first."""
        ...


class _HostArrays:
    stream: Any = None

    def empty(self, count: int) -> Any:
        return numpy.empty(count, "f4")

    def numbers(self, count: int, first: int) -> Any:
        return ((numpy.arange(count) + first) % PERIOD).astype("f4")

    def join(self, parts: list[Any]) -> Any:
        return numpy.concatenate(parts)

    def write(self, array: Any, values: Any) -> None:
        array[:] = values

    def equal(self, array: Any, values: Any) -> bool:
        return bool(numpy.array_equal(array, values))


class _VirtualArrays(_HostArrays):
    def __init__(self, gpus: Gpus, gpu: int) -> None:
        self._gpus, self._gpu = gpus, gpu

    def empty(self, count: int) -> Any:
        return self._gpus.empty(count, "float32", self._gpu)

    def write(self, array: Any, values: Any) -> None:
        array.fill(values)

    def equal(self, array: Any, values: Any) -> bool:
        return bool(numpy.array_equal(array.numpy(), values))


class _HostProducts:
    """Products of two matrices on one core."""

    def __init__(self) -> None:
        side = _MATRIX
        self._factors: list[Any] = [
            numpy.sin(numpy.arange(float(side * side)) + shift).reshape(side, side) for shift in (0, 1)
        ]
        self._expected = self._factors[0] @ self._factors[1]
        self._product = numpy.zeros_like(self._expected)
        self._repeats = 1

    def fit(self, seconds: float, most: Callable[[float], float]) -> None:
        self._repeats = 4
        self.run()
        self._repeats = max(1, round(seconds / most(self.run() / 4)))

    def run(self) -> float:
        self._product.fill(0)
        begun = time.perf_counter()
        for _ in range(self._repeats):
            numpy.matmul(
                self._factors[0], self._factors[1], out=self._product
            )  # leaves the interpreter to other threads
        return time.perf_counter() - begun

    def is_right(self) -> bool:
        return bool(numpy.array_equal(self._product, self._expected))


class _HostSide:
    def __init__(self, backend: str, gpus: Gpus | None, gpu: int) -> None:
        self.backend, self.gpus, self._gpu = backend, gpus, gpu

    def exercise(self, operation: str, length: int, rank: int, size: int) -> Exercise:
        arrays = _HostArrays() if self.gpus is None else _VirtualArrays(self.gpus, self._gpu)
        return Exercise(arrays, operation, length, rank, size)

    def computation(self, name: str) -> Computation:
        return _HostProducts()

    def at_once(self, calls: tuple[Callable[[], object], int] | None, computing: Computation | None) -> Times:
        computed: list[float] = []
        thread = threading.Thread(target=lambda: computed.append(computing.run()) if computing else None)
        begun = time.perf_counter()
        thread.start()
        if calls is not None:
            for _ in range(calls[1]):
                calls[0]()
        called = time.perf_counter() - begun
        thread.join()
        return called, computed[0] if computed else 0.0, time.perf_counter() - begun


def host_side(backend: str) -> Side:
    """Of hosts, or of virtual GPUs, whose computations are the host's."""
    job = started()
    return _HostSide(backend, None if backend == "host" else virtual_gpus(job.size), job.rank)
