"""What all ranks of a group do together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from waywiser.group.arrays import Stream, all_blocks, made, one_block, stream_for
from waywiser.group.rank import Rank


class Collectives(Rank):
    """The calls that all ranks must make in the same order. An `out` that is left out is made in `data`'s library."""

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._core.barrier()

    def broadcast(self, data: Any, root: int = 0, *, stream: Stream = None) -> Any:
        """Fills `data` of all ranks with that of `root`. Returns `data`."""
        self._core.broadcast(data, root, stream_for(stream, data))
        return data

    def all_reduce(self, data: Any, out: Any = None, op: str = "sum", *, stream: Stream = None) -> Any:
        """Combines the arrays of all ranks, element by element, by sum, prod, min, max or avg; `out` may be `data`."""
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        self._core.all_reduce(data, out, op, used)
        return out

    def reduce(self, data: Any, out: Any = None, op: str = "sum", root: int = 0, *, stream: Stream = None) -> Any:
        """As all_reduce, for `root` only; the others get None."""
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, None, used)
        self._core.reduce(data, out, op, root, used)
        return out

    def reduce_scatter(self, data: Any, out: Any = None, op: str = "sum", *, stream: Stream = None) -> Any:
        """Combines `size` blocks of all ranks; block r goes to rank r. `out` may be left out when `size` divides the
        first dimension."""
        used = stream_for(stream, data, out)
        out = made(data, one_block(data, self.size), used) if out is None else out
        self._core.reduce_scatter(data, out, op, used)
        return out

    def all_gather(
        self, data: Any, out: Any = None, counts: Sequence[int] | None = None, *, stream: Stream = None
    ) -> Any:
        """The blocks of all ranks one after the other; `counts` gives their sizes where they differ."""
        used = stream_for(stream, data, out)
        out = made(data, all_blocks(data, self.size, counts), used) if out is None else out
        self._core.all_gather(data, out, None if counts is None else list(counts), used)
        return out

    def gather(
        self,
        data: Any,
        out: Any = None,
        root: int = 0,
        counts: Sequence[int] | None = None,
        *,
        stream: Stream = None,
    ) -> Any:
        """As all_gather, for `root` only; the others get None. With `stream`, all arrays are on GPUs, at all ranks."""
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, all_blocks(data, self.size, counts), used)
        self._core.gather(data, out, root, None if counts is None else list(counts), used, stream is not None)
        return out

    def scatter(
        self, data: Any, out: Any, root: int = 0, counts: Sequence[int] | None = None, *, stream: Stream = None
    ) -> Any:
        """Block r of the root's `data` goes to rank r; the others give None. `stream` as in gather."""
        given = data if self.rank == root else None
        sizes = None if counts is None else list(counts)
        self._core.scatter(given, out, root, sizes, stream_for(stream, given, out), stream is not None)
        return out

    def all_to_all(self, data: Any, out: Any = None, *, stream: Stream = None) -> Any:
        """Block r goes to rank r; what rank r sends here becomes block r of `out`."""
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        self._core.all_to_all(data, out, used)
        return out

    def all_to_all_v(
        self, data: Any, give: Sequence[int], out: Any, take: Sequence[int], *, stream: Stream = None
    ) -> Any:
        """all_to_all of blocks with `give[r]` elements to and `take[r]` elements from rank r."""
        self._core.all_to_all_v(data, list(give), out, list(take), stream_for(stream, data, out))
        return out
