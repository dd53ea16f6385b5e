"""Collectives in the background: they return a future at once, and are complete when it is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from waywiser.group.arrays import all_blocks, made, one_block, stream_for
from waywiser.group.future import Future
from waywiser.group.rank import Rank
from waywiser.group.types import A, Array, B, ReduceOp, Stream

if TYPE_CHECKING:
    import numpy

    D = TypeVar("D", bound=numpy.generic)


class Background(Rank):
    """The collectives as futures, which return `out`; all ranks begin them in the same order.

    Arrays, shapes and errors here are those of the call without `start_`; the future's `wait()` raises later errors.
    The arrays must not be changed until the future is done. Earlier work in the current stream of GPU arrays, or in
    `stream`, is waited for; then kernels or NCCL run in a stream of the group, and the first call sets them up with all
    ranks. `start_gather`, `start_scatter`, `start_scan`, `start_exscan`, and calls for which `why_staged` has a reason,
    go through host memory.
    """

    def start_barrier(self) -> Future[None]:
        """Done when all ranks have called it. Raises as every call."""
        return Future(self._core.start_barrier(), None)

    def start_broadcast(self, data: A, root: int = 0, *, stream: Stream = None) -> Future[A]:
        """Begins a broadcast; the future returns `data`. Raises as broadcast."""
        return Future(self._core.start_broadcast(data, root, stream_for(stream, data)), data)

    @overload
    def start_all_reduce(
        self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None
    ) -> Future[A]: ...
    @overload
    def start_all_reduce(self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None) -> Future[B]: ...
    def start_all_reduce(
        self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None
    ) -> Future[Any]:
        """Begins an all_reduce: (2, 3) gives (2, 3). Raises as all_reduce."""
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        return Future(self._core.start_all_reduce(data, out, op, used), out)

    @overload
    def start_reduce(
        self, data: A, out: None = None, op: ReduceOp = "sum", root: int = 0, *, stream: Stream = None
    ) -> Future[A | None]: ...
    @overload
    def start_reduce(
        self, data: Array, out: B | None, op: ReduceOp = "sum", root: int = 0, *, stream: Stream = None
    ) -> Future[B | None]: ...
    def start_reduce(
        self, data: Any, out: Any = None, op: ReduceOp = "sum", root: int = 0, *, stream: Stream = None
    ) -> Future[Any]:
        """Begins a reduce; the futures of ranks other than `root` return None. Raises as reduce."""
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, None, used)
        return Future(self._core.start_reduce(data, out, op, root, used), out)

    @overload
    def start_scan(self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Future[A]: ...
    @overload
    def start_scan(self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None) -> Future[B]: ...
    def start_scan(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Future[Any]:
        """Begins a scan: (2, 3) gives (2, 3). The hosts carry it out. Raises as scan."""
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        return Future(self._core.start_scan(data, out, op, used), out)

    @overload
    def start_exscan(
        self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None
    ) -> Future[A | None]: ...
    @overload
    def start_exscan(
        self, data: Array, out: B | None, op: ReduceOp = "sum", *, stream: Stream = None
    ) -> Future[B | None]: ...
    def start_exscan(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Future[Any]:
        """Begins an exscan; the future of rank 0 returns None. The hosts carry it out. Raises as exscan."""
        used = stream_for(stream, data, out)
        if self.rank == 0:
            out = None
        elif out is None:
            out = made(data, None, used)
        return Future(self._core.start_exscan(data, out, op, used), out)

    @overload
    def start_reduce_scatter(
        self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None
    ) -> Future[A]: ...
    @overload
    def start_reduce_scatter(
        self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None
    ) -> Future[B]: ...  # fmt: skip
    def start_reduce_scatter(
        self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None
    ) -> Future[Any]:
        """Begins a reduce_scatter: (2 * N, 3) gives (2, 3). Raises as reduce_scatter."""
        used = stream_for(stream, data, out)
        out = made(data, one_block(data, self.size), used) if out is None else out
        return Future(self._core.start_reduce_scatter(data, out, op, used), out)

    @overload
    def start_all_gather(
        self, data: numpy.ndarray[Any, numpy.dtype[D]], out: None = None, *, stream: Stream = None
    ) -> Future[numpy.ndarray[Any, numpy.dtype[D]]]: ...
    @overload
    def start_all_gather(self, data: A, out: None = None, *, stream: Stream = None) -> Future[A]: ...
    @overload
    def start_all_gather(self, data: Array, out: B, *, stream: Stream = None) -> Future[B]: ...
    def start_all_gather(self, data: Any, out: Any = None, *, stream: Stream = None) -> Future[Any]:
        """Begins an all_gather of equal blocks: (2, 3) gives (N, 2, 3). Raises as all_gather."""
        used = stream_for(stream, data, out)
        out = made(data, all_blocks(data, self.size, None), used) if out is None else out
        return Future(self._core.start_all_gather(data, out, used), out)

    @overload
    def start_all_to_all(self, data: A, out: None = None, *, stream: Stream = None) -> Future[A]: ...
    @overload
    def start_all_to_all(self, data: Array, out: B, *, stream: Stream = None) -> Future[B]: ...
    def start_all_to_all(self, data: Any, out: Any = None, *, stream: Stream = None) -> Future[Any]:
        """Begins an all_to_all: (N, 3) gives (N, 3); `out` must not be `data`. Raises as all_to_all."""
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        return Future(self._core.start_all_to_all(data, out, used), out)

    @overload
    def start_gather(
        self, data: numpy.ndarray[Any, numpy.dtype[D]], out: None = None, root: int = 0, *, stream: Stream = None
    ) -> Future[numpy.ndarray[Any, numpy.dtype[D]] | None]: ...
    @overload
    def start_gather(self, data: A, out: None = None, root: int = 0, *, stream: Stream = None) -> Future[A | None]: ...
    @overload
    def start_gather(self, data: Array, out: B | None, root: int = 0, *, stream: Stream = None) -> Future[B | None]: ...
    def start_gather(self, data: Any, out: Any = None, root: int = 0, *, stream: Stream = None) -> Future[Any]:
        """Begins a gather of equal blocks: (2, 3) gives (N, 2, 3) at `root`; the other futures return None.

        Raises as gather.
        """
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, all_blocks(data, self.size, None), used)
        return Future(self._core.start_gather(data, out, root, used), out)

    def start_scatter(self, data: Array | None, out: B, root: int = 0, *, stream: Stream = None) -> Future[B]:
        """Begins a scatter of equal blocks: (N, 2, 3) gives (2, 3); ranks other than `root` pass None as `data`.

        Raises as scatter.
        """
        given = data if self.rank == root else None
        return Future(self._core.start_scatter(given, out, root, stream_for(stream, given, out)), out)
