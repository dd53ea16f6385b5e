"""Memory of equal size at all ranks, for one-sided communication: the calls of the host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from waywiser.errors import InputTypeError
from waywiser.group.arrays import stream_for
from waywiser.group.gpus import GpuArray, Gpus, _checked_type
from waywiser.group.types import Array, ElementType, Stream

if TYPE_CHECKING:
    import numpy

    from waywiser import _core
    from waywiser.group.group import Group

SignalOp = Literal["set", "add"]
Comparison = Literal["==", "!=", ">", ">=", "<", "<="]


class HeapTeam:
    """Ranks of a heap that meet in barriers: `Heap.world`, `Heap.split`, `Heap.split_strided`, `Heap.split_2d`."""

    def __init__(self, core: _core.HeapTeam) -> None:
        self._core = core

    @property
    def rank(self) -> int:
        """The number of this rank in the team. Raises nothing."""
        return int(self._core.rank)

    @property
    def size(self) -> int:
        """The number of ranks in the team. Raises nothing."""
        return int(self._core.size)

    def terms(self) -> bytes:
        """The bytes of a kernel's parameter of type waywiser::one_sided::TeamTerms. Raises nothing."""
        return bytes(self._core.terms())


class Heap:
    """`nbytes` of zeros at each rank of a group, which all ranks read and write; an offset, in bytes, names the same
    place at all of them.

    All ranks make it together, with one `name` (1 to 63 characters), all in host memory, or each on its GPU `gpu`: at
    most 64 ranks. Teams are made by all ranks too; all else is local. It keeps its group. It must live until all ranks
    have finished their accesses: a barrier tells when.

    The calls of communication take `stream=`, a stream of the heap's GPU: then they are only enqueued, and can be
    captured in a graph. Without it they are over when they return.

    Raises as every call of a group; at all ranks InputError if names, sizes or kinds of places differ, UnavailableError
    for more than 64 ranks, DeviceError if a rank has too little memory.
    """

    def __init__(self, group: Group, name: str, nbytes: int, *, gpu: int | None = None) -> None:
        from waywiser import _core

        self._core = _core.Heap(group._core, name, nbytes, gpu)
        self._gpu = gpu

    @property
    def name(self) -> str:
        """What all ranks call it. Raises nothing."""
        return str(self._core.name)

    @property
    def nbytes(self) -> int:
        """The number of bytes of each rank. Raises nothing."""
        return int(self._core.nbytes)

    def array(
        self, shape: int | Sequence[int], dtype: ElementType = float, offset: int = 0
    ) -> numpy.ndarray[Any, Any] | GpuArray:
        """The memory of this rank from `offset` on, as a NumPy array or as a GpuArray, which keep the heap.

        Raises InputError for what lies outside, and for another `dtype` than numbers.
        """
        import numpy

        whole = (shape,) if isinstance(shape, int) else tuple(shape)
        element = _checked_type(dtype)
        nbytes = math.prod(whole) * element.itemsize
        if self._gpu is None:
            found: numpy.ndarray[Any, Any] = numpy.asarray(self._core.host_part(offset, nbytes))
            return found.view(element).reshape(whole)
        return GpuArray(Gpus(self._core.gpus()), whole, element, self._gpu, self._core.part(offset, nbytes))

    def address(self, rank: int) -> int:
        """Where the memory of a rank begins, for kernels of this rank's GPU, or for this process in host memory.

        Raises InputError for a rank that does not exist, UnavailableError with `why_proxied`.
        """
        return int(self._core.address(rank))

    def why_proxied(self, rank: int) -> str:
        """Why this rank's stores do not reach the memory of another one, in one line; empty if they do. The progress
        threads carry accesses to such a rank, which takes longer.

        Raises InputError for a rank that does not exist.
        """
        return str(self._core.why_proxied(rank))

    def inbox_bytes(self, most: int) -> int:
        """The bytes of the heap that an inbox takes for messages of at most `most` bytes, which kernels put by
        `put_message`. Raises InputError for a negative number.
        """
        return int(self._core.inbox_bytes(most))

    def why_no_lines(self) -> str:
        """Why messages of kernels do not go by LL128, in one line; empty if those of some sizes may. Raises nothing."""
        return str(self._core.why_no_lines())

    def terms(self, stream: Stream = None) -> bytes:
        """The bytes of a kernel's parameter of type waywiser::one_sided::HeapTerms, for kernels in a stream of the
        heap's GPU: `nvrtc_options` says how they are compiled.

        Raises InputError for a heap in host memory.
        """
        return bytes(self._core.terms(stream_for(stream)))

    def put(self, data: Array, to: int, offset: int = 0, *, stream: Stream = None) -> None:
        """Copies an array, which is where the heap is, into the memory of rank `to`. With `stream` the array must stay
        as it is until the stream has come so far. A signal to the same rank after it is seen after it.

        Raises InputError for what lies outside and for an array in another place; DeviceError.
        """
        before = stream_for(None, data) if stream is None else None
        self._core.put(data, to, offset, stream_for(stream), before)

    def signal(self, to: int, offset: int, value: int, op: SignalOp = "set", *, stream: Stream = None) -> None:
        """Sets the 8 bytes at `offset` of rank `to` to `value` (0 to 2^64 - 1), or adds it to them, after all earlier
        puts of this rank in the same stream have arrived.

        Raises as put; InputError for an `offset` that is not a multiple of 8.
        """
        self._core.signal(to, offset, value, op, stream_for(stream))

    def wait(
        self,
        offset: int,
        value: int,
        comparison: Comparison = ">=",
        *,
        source: int | None = None,
        stream: Stream = None,
    ) -> None:
        """Waits until the 8 bytes at `offset` of this rank's own memory compare so with `value`. `source`: the rank
        that is to change them, for the error.

        Raises as signal; DeadlineError if they do not in time, with a stream at the next `synchronize()`.
        """
        self._core.wait(offset, comparison, value, source, stream_for(stream))

    def wait_and_take(self, offset: int, count: int, *, source: int | None = None, stream: Stream = None) -> None:
        """Waits until the 8 bytes at `offset` of this rank's own memory are at least `count`, and subtracts that: for
        graphs, with signals that add.

        Raises as wait.
        """
        self._core.wait_and_take(offset, count, source, stream_for(stream))

    def barrier(self, team: HeapTeam, *, stream: Stream = None) -> None:
        """All members of the team call it equally often. What they did before it is there after it.

        Raises DeadlineError, with a stream at the next `synchronize()`.
        """
        if not isinstance(team, HeapTeam):
            raise InputTypeError(f"team is what world() or split() return, not {type(team).__name__}")
        self._core.barrier(team._core, stream_for(stream))

    def set_deadline(self, seconds: float) -> None:
        """The limit of each wait from now on; at first the group's timeout. Raises InputError unless it is more than 0
        and at most 1e9.
        """
        self._core.set_deadline(seconds)

    def check(self) -> None:
        """Raises DeadlineError if a wait of this rank in a stream has not ended in time, InputError after an access
        outside the heap, TransferError if the group has failed.
        """
        self._core.check()

    def synchronize(self, stream: Stream = None) -> None:
        """Waits until all enqueued work of the stream is done, and what the progress thread carries. Raises as check;
        DeviceError.
        """
        self._core.synchronize(stream_for(stream))

    def world(self) -> HeapTeam:
        """The team of all ranks; all call it. Raises at all ranks UnavailableError with 64 teams."""
        return HeapTeam(self._core.world())

    def split(self, color: int, key: int = 0) -> HeapTeam | None:
        """The team of the ranks with the same `color`, in the order of `key`, then rank; None for a color below 0. All
        ranks call it.

        Raises as world.
        """
        return _team(self._core.split(color, key))

    def split_strided(self, start: int, stride: int, size: int) -> HeapTeam | None:
        """The team of the ranks start, start + stride, ..., `size` of them; None for the others. All ranks call it.

        Raises as world; InputError for ranks that do not exist.
        """
        return _team(self._core.split_strided(start, stride, size))

    def split_2d(self, columns: int) -> tuple[HeapTeam, HeapTeam]:
        """The row and the column of this rank in a grid of so many columns. All ranks call it.

        Raises as world; InputError for an impossible number.
        """
        row, column = self._core.split_2d(columns)
        return HeapTeam(row), HeapTeam(column)


def _team(core: _core.HeapTeam | None) -> HeapTeam | None:
    return None if core is None else HeapTeam(core)
