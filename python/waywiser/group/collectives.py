"""What all ranks of a group do together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from waywiser.group.arrays import all_blocks, made, one_block, stream_for, whole_numbers
from waywiser.group.rank import Rank
from waywiser.group.types import A, Array, B, ReduceOp, Stream

if TYPE_CHECKING:
    import numpy

    D = TypeVar("D", bound=numpy.generic)

Counts = Sequence[int]


class Collectives(Rank):
    """The calls that all ranks must make in the same order, with arrays of the same type and operation.

    An `out` that is left out is made in `data`'s library, in the same memory. N is the `size` of the group.
    """

    def barrier(self) -> None:
        """Returns when all ranks have called it. Raises as every call."""
        self._core.barrier()

    def broadcast(self, data: A, root: int = 0, *, stream: Stream = None) -> A:
        """Fills `data` of all ranks with that of `root`; shapes may differ, numbers of elements not. Returns `data`.

        Raises as every call; InputError for an array that cannot be written to.
        """
        self._core.broadcast(data, root, stream_for(stream, data))
        return data

    @overload
    def all_reduce(self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None) -> A: ...
    @overload
    def all_reduce(self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None) -> B: ...
    def all_reduce(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Any:
        """Combines the arrays of all ranks, element by element, by sum, prod, min, max or avg: of (2, 3) comes (2, 3).

        `out` may be `data`. Of bools a sum says whether any is true, a product whether all are. Returns `out`. Raises
        as every call; InputError for another `op`, for an average of bools, and for min and max of complex numbers.
        """
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        self._core.all_reduce(data, out, op, used)
        return out

    @overload
    def reduce(
        self, data: A, out: None = None, op: ReduceOp = "sum", root: int = 0, *, stream: Stream = None
    ) -> A | None: ...
    @overload
    def reduce(
        self, data: Array, out: B | None, op: ReduceOp = "sum", root: int = 0, *, stream: Stream = None
    ) -> B | None: ...
    def reduce(
        self, data: Any, out: Any = None, op: ReduceOp = "sum", root: int = 0, *, stream: Stream = None
    ) -> Any:  # fmt: skip
        """As all_reduce, for `root` only: of (2, 3) comes (2, 3) there; the others get None. Raises as all_reduce."""
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, None, used)
        self._core.reduce(data, out, op, root, used)
        return out

    @overload
    def reduce_scatter(self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None) -> A: ...
    @overload
    def reduce_scatter(self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None) -> B: ...
    def reduce_scatter(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Any:
        """Combines the N equal blocks of all ranks; block r goes to rank r: of (2 * N, 3) comes (2, 3).

        Returns `out`, which may be left out when N divides the first dimension. Raises as all_reduce; InputTypeError
        when it does not.
        """
        used = stream_for(stream, data, out)
        out = made(data, one_block(data, self.size), used) if out is None else out
        self._core.reduce_scatter(data, out, op, used)
        return out

    @overload
    def all_gather(
        self, data: numpy.ndarray[Any, numpy.dtype[D]], out: None = None, counts: Counts | None = None, *,
        stream: Stream = None,
    ) -> numpy.ndarray[Any, numpy.dtype[D]]: ...  # fmt: skip
    @overload
    def all_gather(
        self, data: A, out: None = None, counts: Counts | None = None, *, stream: Stream = None
    ) -> A: ...  # fmt: skip
    @overload
    def all_gather(self, data: Array, out: B, counts: Counts | None = None, *, stream: Stream = None) -> B: ...
    def all_gather(
        self, data: Any, out: Any = None, counts: Counts | None = None, *, stream: Stream = None
    ) -> Any:  # fmt: skip
        """The blocks of all ranks one after the other: of (2, 3) comes (N, 2, 3).

        `counts`: how many elements each rank gives, where they differ; then what comes is (sum(counts),). Returns
        `out`. Raises as every call; InputError for `counts` that are not N or do not fit to the arrays.
        """
        used = stream_for(stream, data, out)
        sizes = None if counts is None else whole_numbers("counts", counts)
        out = made(data, all_blocks(data, self.size, sizes), used) if out is None else out
        self._core.all_gather(data, out, sizes, used)
        return out

    @overload
    def gather(
        self, data: numpy.ndarray[Any, numpy.dtype[D]], out: None = None, root: int = 0,
        counts: Counts | None = None, *, stream: Stream = None,
    ) -> numpy.ndarray[Any, numpy.dtype[D]] | None: ...  # fmt: skip
    @overload
    def gather(
        self, data: A, out: None = None, root: int = 0, counts: Counts | None = None, *, stream: Stream = None
    ) -> A | None: ...
    @overload
    def gather(
        self, data: Array, out: B | None, root: int = 0, counts: Counts | None = None, *, stream: Stream = None
    ) -> B | None: ...
    def gather(
        self, data: Any, out: Any = None, root: int = 0, counts: Counts | None = None, *, stream: Stream = None
    ) -> Any:
        """As all_gather, for `root` only: of (2, 3) comes (N, 2, 3) there; the others get None.

        With `stream`, all arrays are on GPUs, at all ranks. Raises as all_gather.
        """
        sizes = None if counts is None else whole_numbers("counts", counts)
        used = stream_for(stream, data, out)
        if self.rank != root:
            out = None
        elif out is None:
            out = made(data, all_blocks(data, self.size, sizes), used)
        self._core.gather(data, out, root, sizes, used, stream is not None)
        return out

    def scatter(
        self, data: Array | None, out: B, root: int = 0, counts: Counts | None = None, *, stream: Stream = None
    ) -> B:
        """Block r of the root's `data` goes to rank r: of (N, 2, 3) comes (2, 3); the others give None as `data`.

        `counts`: how many elements each rank takes, where they differ. `stream` as in gather. Returns `out`. Raises as
        all_gather.
        """
        given = data if self.rank == root else None
        sizes = None if counts is None else whole_numbers("counts", counts)
        self._core.scatter(given, out, root, sizes, stream_for(stream, given, out), stream is not None)
        return out

    @overload
    def all_to_all(self, data: A, out: None = None, *, stream: Stream = None) -> A: ...
    @overload
    def all_to_all(self, data: Array, out: B, *, stream: Stream = None) -> B: ...
    def all_to_all(self, data: Any, out: Any = None, *, stream: Stream = None) -> Any:
        """Block r of N goes to rank r, what rank r sends here becomes block r of `out`: of (N, 3) comes (N, 3).

        `out` is not `data`. Returns it. Raises as every call; InputError when N does not divide the number of elements.
        """
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        self._core.all_to_all(data, out, used)
        return out

    def all_to_all_v(self, data: Array, give: Counts, out: B, take: Counts, *, stream: Stream = None) -> B:
        """all_to_all of blocks with `give[r]` elements to and `take[r]` elements from rank r, one after the other.

        Returns `out`. Raises as every call; InputError for numbers that are not N or do not fit to the arrays.
        """
        gives, takes = whole_numbers("give", give), whole_numbers("take", take)
        self._core.all_to_all_v(data, gives, out, takes, stream_for(stream, data, out))
        return out
