"""What the conductor asks of a rank in Python, a rank's role in it, and what its library must offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

FROM_KERNEL = "kernel"  # the mode in which a kernel makes all calls of a sample
MESSAGES = ("latency", "multi_latency", "bandwidth", "message_rate", "bidirectional", "multi_bandwidth", "overlap")
BOTH_WAYS = ("bidirectional", "overlap")


class NotThere(Exception):
    """The library has no such operation."""


@dataclass(frozen=True)
class Request:
    """A slice, as in src/waywiser/bench/bench_request.hpp."""

    operation: str
    input: str
    output: str
    bytes: int
    window: int
    calls: int
    samples: int
    seed: int
    compute: float
    mode: str = "blocking"
    way: str = ""  # of the library's own, if one is asked for

    @staticmethod
    def read(line: str) -> Request:
        words = line.split()
        bytes_, window, calls, samples, seed, nanoseconds = (int(word) for word in words[3:9])
        return Request(
            words[0], words[1], words[2], bytes_, window, calls, samples, seed, nanoseconds * 1e-9, *words[9:11]
        )


@dataclass(frozen=True)
class Place:
    """This rank's role in an operation. `other`: the second rank of its pair."""

    rank: int
    size: int
    operation: str

    @property
    def half(self) -> int:
        return self.size // 2 if self.operation.startswith("multi_") else 1

    @property
    def taking_part(self) -> bool:
        return self.operation not in MESSAGES or self.rank < 2 * self.half

    @property
    def first(self) -> bool:
        return self.rank < self.half

    @property
    def other(self) -> int:
        return self.rank + self.half if self.first else self.rank - self.half


class Library(Protocol):
    """The interface of a library. Arrays are its own kind, of bytes, or of float32 for sums."""

    rank: int
    size: int
    version: str
    memory: str  # the only memory that it supports: "host" or "gpu"

    def array(self, count: int, numbers: bool, memory: str) -> Any: ...

    def write(self, array: Any, values: Any) -> None:
        """An array of the library from a NumPy array."""
        ...

    def read(self, array: Any) -> Any:
        """A copy as a NumPy array."""
        ...

    def barrier(self) -> None: ...

    def finish(self) -> None:
        """Returns when all calls so far are complete."""
        ...

    def call(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        """One call. Raises NotThere."""
        ...

    def record(self, calls: Callable[[], None]) -> Callable[[], None]:
        """Captures the work that `calls` enqueues in a CUDA graph; the result launches it. Raises NotThere."""
        ...


class KernelCalls(Protocol):
    """The calls of a library that kernels make."""

    def calls_of(self, request: Request, give: Any, take: Any) -> Callable[[int], bool]: ...

    def is_right(self, operation: str) -> bool: ...
