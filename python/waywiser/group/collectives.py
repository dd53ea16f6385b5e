"""What all ranks of a group do together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from waywiser.group.arrays import Stream, library_of, settled
from waywiser.group.future import Future
from waywiser.group.rank import Rank


class Collectives(Rank):
    """The calls that all ranks must make in the same order. An `out` that is left out is made in `data`'s library."""

    def barrier(self) -> None:
        """Returns when all ranks have called it."""
        self._core.barrier()

    def broadcast(self, data: Any, root: int = 0, *, stream: Stream = None) -> Any:
        """Fills `data` of all ranks with that of `root`. Returns `data`."""
        settled(stream, data)
        self._core.broadcast(data, root)
        return data

    def all_reduce(self, data: Any, out: Any = None, op: str = "sum", *, stream: Stream = None) -> Any:
        """Combines the arrays of all ranks, element by element, by sum, prod, min, max or avg; `out` may be `data`."""
        number = settled(stream, data, out)
        out = _made(data, None, number) if out is None else out
        self._core.all_reduce(data, out, op)
        return out

    def start_all_reduce(self, data: Any, out: Any = None, op: str = "sum", *, stream: Stream = None) -> Future:
        """Begins an all_reduce; the future gives `out`."""
        number = settled(stream, data, out)
        out = _made(data, None, number) if out is None else out
        return Future(self._core.start_all_reduce(data, out, op), out)

    def reduce(self, data: Any, out: Any = None, op: str = "sum", root: int = 0, *, stream: Stream = None) -> Any:
        """As all_reduce, for `root` only; the others get None."""
        number = settled(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = _made(data, None, number)
        self._core.reduce(data, out, op, root)
        return out

    def reduce_scatter(self, data: Any, out: Any = None, op: str = "sum", *, stream: Stream = None) -> Any:
        """Combines `size` blocks of all ranks; block r goes to rank r. `out` may be left out when `size` divides the
        first dimension."""
        number = settled(stream, data, out)
        out = _made(data, _one_block(data, self.size), number) if out is None else out
        self._core.reduce_scatter(data, out, op)
        return out

    def all_gather(
        self, data: Any, out: Any = None, counts: Sequence[int] | None = None, *, stream: Stream = None
    ) -> Any:
        """The blocks of all ranks one after the other; `counts` gives their sizes where they differ."""
        number = settled(stream, data, out)
        out = _made(data, _all_blocks(data, self.size, counts), number) if out is None else out
        self._core.all_gather(data, out, None if counts is None else list(counts))
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
        """As all_gather, for `root` only; the others get None."""
        number = settled(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = _made(data, _all_blocks(data, self.size, counts), number)
        self._core.gather(data, out, root, None if counts is None else list(counts))
        return out

    def scatter(
        self, data: Any, out: Any, root: int = 0, counts: Sequence[int] | None = None, *, stream: Stream = None
    ) -> Any:
        """Block r of the root's `data` goes to rank r; the others give None."""
        settled(stream, data, out)
        self._core.scatter(data if self.rank == root else None, out, root, None if counts is None else list(counts))
        return out

    def all_to_all(self, data: Any, out: Any = None, *, stream: Stream = None) -> Any:
        """Block r goes to rank r; what rank r sends here becomes block r of `out`."""
        number = settled(stream, data, out)
        out = _made(data, None, number) if out is None else out
        self._core.all_to_all(data, out)
        return out

    def all_to_all_v(
        self, data: Any, give: Sequence[int], out: Any, take: Sequence[int], *, stream: Stream = None
    ) -> Any:
        """all_to_all of blocks with `give[r]` elements to and `take[r]` elements from rank r."""
        settled(stream, data, out)
        self._core.all_to_all_v(data, list(give), out, list(take))
        return out


def _made(data: Any, shape: tuple[int, ...] | None, stream: int | None) -> Any:
    return library_of(data).empty(data, shape, stream)


def _all_blocks(data: Any, size: int, counts: Sequence[int] | None) -> tuple[int, ...]:
    return (sum(counts),) if counts is not None else (size, *getattr(data, "shape", ()))


def _one_block(data: Any, size: int) -> tuple[int, ...]:
    first, *rest = getattr(data, "shape", (0,)) or (0,)
    if first % size:
        raise TypeError(f"give out= as well: {first} rows cannot be shared out to {size} ranks")
    return (first // size, *rest)
