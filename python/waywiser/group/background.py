"""Collectives in the background: begun here, done when their future is."""

from __future__ import annotations

from typing import Any

from waywiser.group.arrays import Stream, all_blocks, made, one_block, stream_for
from waywiser.group.future import Future
from waywiser.group.rank import Rank


class Background(Rank):
    """The collectives as futures, which give `out`; all ranks begin them in the same order.

    GPU arrays go through host memory here: no call may wait for another rank, as a kernel would.
    """

    def start_barrier(self) -> Future:
        """Done when all ranks have called it."""
        return Future(self._core.start_barrier())

    def start_broadcast(self, data: Any, root: int = 0, *, stream: Stream = None) -> Future:
        """Begins a broadcast; the future gives `data`."""
        return Future(self._core.start_broadcast(data, root, stream_for(stream, data)), data)

    def start_all_reduce(self, data: Any, out: Any = None, op: str = "sum", *, stream: Stream = None) -> Future:
        """Begins an all_reduce."""
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        return Future(self._core.start_all_reduce(data, out, op, used), out)

    def start_reduce(
        self, data: Any, out: Any = None, op: str = "sum", root: int = 0, *, stream: Stream = None
    ) -> Future:  # fmt: skip
        """Begins a reduce; the futures of others than `root` give None."""
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, None, used)
        return Future(self._core.start_reduce(data, out, op, root, used), out)

    def start_reduce_scatter(self, data: Any, out: Any = None, op: str = "sum", *, stream: Stream = None) -> Future:
        """Begins a reduce_scatter."""
        used = stream_for(stream, data, out)
        out = made(data, one_block(data, self.size), used) if out is None else out
        return Future(self._core.start_reduce_scatter(data, out, op, used), out)

    def start_all_gather(self, data: Any, out: Any = None, *, stream: Stream = None) -> Future:
        """Begins an all_gather of equal blocks."""
        used = stream_for(stream, data, out)
        out = made(data, all_blocks(data, self.size, None), used) if out is None else out
        return Future(self._core.start_all_gather(data, out, used), out)

    def start_all_to_all(self, data: Any, out: Any = None, *, stream: Stream = None) -> Future:
        """Begins an all_to_all; `out` is not `data`."""
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        return Future(self._core.start_all_to_all(data, out, used), out)

    def start_gather(self, data: Any, out: Any = None, root: int = 0, *, stream: Stream = None) -> Future:
        """Begins a gather of equal blocks; the futures of others than `root` give None."""
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, all_blocks(data, self.size, None), used)
        return Future(self._core.start_gather(data, out, root, used), out)

    def start_scatter(self, data: Any, out: Any, root: int = 0, *, stream: Stream = None) -> Future:
        """Begins a scatter of equal blocks; others than `root` give None as `data`."""
        given = data if self.rank == root else None
        return Future(self._core.start_scatter(given, out, root, stream_for(stream, given, out)), out)
