"""Ranks that talk to each other: `group = waywiser.join()` in a program that mpirun, srun, torchrun or `waywiser run`
starts.

Arrays are anything with the buffer protocol or DLPack in host memory: NumPy arrays, PyTorch tensors, `array.array`,
`bytearray`. They must be contiguous; types are float64, float32, float16, bfloat16, int8 to int64, uint8 and bool.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from collections.abc import Generator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from waywiser import _core


class Exchange(NamedTuple):
    """What one rank gives to a neighbour and takes from it; see `Group.neighbor_exchange`."""

    rank: int
    give: Any
    take: Any
    give_tag: int = 0
    take_tag: int = 0


class Future:
    """Something that a group has begun: `wait()` for it, ask `done()`, or `await` it. It keeps its arrays."""

    def __init__(self, core: _core.Future, result: Any = None) -> None:
        self._core = core
        self._result = result

    def done(self) -> bool:
        """Whether it is complete; gives everything that the group has under way a turn."""
        return bool(self._core.done())

    def wait(self) -> Any:
        """Returns the array that it fills, if any. Raises Error as the call itself would."""
        self._core.wait()
        return self._result

    def __await__(self) -> Generator[Any, None, Any]:
        while not self.done():
            yield from asyncio.sleep(0).__await__()
        return self._result


class Group:
    """The ranks of a job, or a part of them, as one of them sees it.

    All calls raise Error when they wait longer than `timeout` seconds, when a rank has died, and when the ranks' calls
    do not fit together; the message names rank, call and peer. The collectives must be called by all ranks in the same
    order. Where `out` is left out, NumPy makes the array that is returned.
    """

    def __init__(self, core: _core.Group) -> None:
        self._core = core
        self._end = weakref.finalize(self, _end, core)

    @property
    def rank(self) -> int:
        """This rank, 0 to `size` - 1."""
        return int(self._core.rank)

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return int(self._core.size)

    @property
    def timeout(self) -> float:
        """Seconds that any call may wait."""
        return float(self._core.timeout)

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._core.timeout = seconds

    def close(self) -> None:
        """Waits until all ranks have closed; happens by itself at the end of the program."""
        self._end.detach()
        self._core.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._core.abort(_words(error))
        self.close()

    def __repr__(self) -> str:
        return f"<waywiser.Group: rank {self.rank} of {self.size}>"

    def send(self, data: Any, to: int, tag: int = 0) -> None:
        """Sends an array; returns when it may be changed again."""
        self._core.send(data, to, tag)

    def recv(self, out: Any, source: int, tag: int = 0) -> Any:
        """Fills `out` with what `source` sends; size and type must agree. Returns `out`."""
        self._core.recv(out, source, tag)
        return out

    def sendrecv(self, data: Any, to: int, out: Any, source: int, tag: int = 0) -> Any:
        """Sends to one rank and receives from another at the same time. Returns `out`."""
        self._core.sendrecv(data, to, out, source, tag)
        return out

    def start_send(self, data: Any, to: int, tag: int = 0) -> Future:
        """Begins to send; `data` must not be changed until the future is done."""
        return Future(self._core.start_send(data, to, tag))

    def start_recv(self, out: Any, source: int, tag: int = 0) -> Future:
        """Begins to receive."""
        return Future(self._core.start_recv(out, source, tag), out)

    def neighbor_exchange(self, neighbors: Sequence[Exchange]) -> None:
        """Gives to and takes from each neighbour at the same time."""
        self._core.neighbor_exchange([tuple(each) for each in neighbors])

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._core.barrier()

    def broadcast(self, data: Any, root: int = 0) -> Any:
        """Fills `data` of all ranks with that of `root`. Returns `data`."""
        self._core.broadcast(data, root)
        return data

    def all_reduce(self, data: Any, out: Any = None, op: str = "sum") -> Any:
        """Combines the arrays of all ranks, element by element, by sum, prod, min, max or avg; `out` may be `data`."""
        out = _like(data) if out is None else out
        self._core.all_reduce(data, out, op)
        return out

    def start_all_reduce(self, data: Any, out: Any = None, op: str = "sum") -> Future:
        """Begins an all_reduce; the future gives `out`."""
        out = _like(data) if out is None else out
        return Future(self._core.start_all_reduce(data, out, op), out)

    def reduce(self, data: Any, out: Any = None, op: str = "sum", root: int = 0) -> Any:
        """As all_reduce, for `root` only; the others get None."""
        if self.rank != root:
            out = None
        elif out is None:
            out = _like(data)
        self._core.reduce(data, out, op, root)
        return out

    def reduce_scatter(self, data: Any, out: Any, op: str = "sum") -> Any:
        """Combines `size` blocks of all ranks; block r goes to rank r."""
        self._core.reduce_scatter(data, out, op)
        return out

    def all_gather(self, data: Any, out: Any = None, counts: Sequence[int] | None = None) -> Any:
        """The blocks of all ranks one after the other; `counts` gives their sizes where they differ."""
        out = _blocks(data, self.size, counts) if out is None else out
        self._core.all_gather(data, out, None if counts is None else list(counts))
        return out

    def gather(self, data: Any, out: Any = None, root: int = 0, counts: Sequence[int] | None = None) -> Any:
        """As all_gather, for `root` only; the others get None."""
        if self.rank != root:
            out = None
        elif out is None:
            out = _blocks(data, self.size, counts)
        self._core.gather(data, out, root, None if counts is None else list(counts))
        return out

    def scatter(self, data: Any, out: Any, root: int = 0, counts: Sequence[int] | None = None) -> Any:
        """Block r of the root's `data` goes to rank r; the others give None."""
        self._core.scatter(data if self.rank == root else None, out, root, None if counts is None else list(counts))
        return out

    def all_to_all(self, data: Any, out: Any = None) -> Any:
        """Block r goes to rank r; what rank r sends here becomes block r of `out`."""
        out = _like(data) if out is None else out
        self._core.all_to_all(data, out)
        return out

    def all_to_all_v(self, data: Any, give: Sequence[int], out: Any, take: Sequence[int]) -> Any:
        """all_to_all of blocks with `give[r]` elements to and `take[r]` elements from rank r."""
        self._core.all_to_all_v(data, list(give), out, list(take))
        return out

    def split(self, color: int, key: int = 0) -> Group | None:
        """The group of the ranks with the same color, in the order of key and rank; None for a color below 0."""
        part = self._core.split(color, key)
        return None if part is None else Part(part, self)


class Part(Group):
    """A group made by split: it ends with the group that it was made from."""

    def __init__(self, core: _core.Group, whole: Group) -> None:
        self._core = core
        self._whole = whole

    def close(self) -> None:
        """Nothing: the whole group is what closes."""


def join(timeout: float | None = None) -> Group:
    """The group of all ranks that the launcher has started; alone without one.

    `timeout`: seconds that any call may wait; WAYWISER_TIMEOUT or 60 when it is left out.
    """
    from waywiser import _core

    return Group(_core.join(timeout))


def _end(core: _core.Group) -> None:
    """At the end of the program, or of the last reference."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        core.abort(_words(error))
    core.close()


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _like(data: Any) -> Any:
    import numpy

    return numpy.empty_like(_numpy(data))


def _blocks(data: Any, size: int, counts: Sequence[int] | None) -> Any:
    import numpy

    array = _numpy(data)
    if counts is not None:
        return numpy.empty(sum(counts), array.dtype)
    return numpy.empty((size, *array.shape), array.dtype)


def _numpy(data: Any) -> Any:
    import numpy

    if not isinstance(data, numpy.ndarray):
        raise TypeError(f"give out= as well: for a {type(data).__name__} it is not made")
    return data
