"""The collective calls of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from waywiser.group.arrays import all_blocks, made, one_block, stream_for, whole_numbers
from waywiser.group.prepared import Prepared
from waywiser.group.reducing import Reducing
from waywiser.group.scalars import S, as_array, as_scalar, is_scalar
from waywiser.group.types import A, Array, B, ReduceOp, Stream

if TYPE_CHECKING:
    import numpy

    D = TypeVar("D", bound=numpy.generic)

Counts = Sequence[int]


class Collectives(Reducing):
    """The calls that all ranks must make in the same order, with arrays of the same type and operation.

    If `out` is omitted, a new array is made in `data`'s library, in the same memory. N is the `size` of the group.
    all_reduce, reduce and broadcast also take a number of Python or NumPy and return a number of the same type; an int
    has 64 bits on the way, and a sum that needs more wraps around.
    """

    def barrier(self) -> None:
        """Returns when all ranks have called it. Raises as every call."""
        self._core.barrier()

    @overload
    def broadcast(self, data: S, root: int = 0) -> S: ...
    @overload
    def broadcast(self, data: A, root: int = 0, *, stream: Stream = None) -> A: ...
    def broadcast(self, data: Any, root: int = 0, *, stream: Stream = None) -> Any:
        """Fills `data` of all ranks with the root's `data`; shapes may differ, but not the numbers of elements. Returns
        `data`.

        Raises as every call; InputError for an array that cannot be written to.
        """
        if is_scalar(data):
            return as_scalar(self.broadcast(as_array(data), root), data)
        self._core.broadcast(data, root, stream_for(stream, data))
        return data

    @overload
    def all_reduce(self, data: S, out: None = None, op: ReduceOp = "sum") -> S: ...
    @overload
    def all_reduce(self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None) -> A: ...
    @overload
    def all_reduce(self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None) -> B: ...
    def all_reduce(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Any:
        """Combines the arrays of all ranks, element by element: (2, 3) gives (2, 3). By sum, prod, min, max or avg;
        integers and bools also by their bits (band, bor, bxor) or by whether they are other than 0 (land, lor, lxor).

        `out` may be `data`. The sum of bools says whether any is true, the product whether all are. Returns `out`.
        Raises as every call; InputError for another `op`, for an average of bools, for min and max of complex numbers,
        and for the bits of what is no integer.
        """
        return self._reduced("all_reduce", data, out, op, stream=stream)

    @overload
    def reduce(self, data: S, out: None = None, op: ReduceOp = "sum", root: int = 0) -> S | None: ...
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
        """Like all_reduce, but only for `root`: (2, 3) gives (2, 3) there; the other ranks get None. Raises as
        all_reduce.
        """
        return self._reduced("reduce", data, out, op, root, stream=stream, here=self.rank == root)

    @overload
    def reduce_scatter(self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None) -> A: ...
    @overload
    def reduce_scatter(self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None) -> B: ...
    def reduce_scatter(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Any:
        """Combines the N equal blocks of all ranks; block r goes to rank r: (2 * N, 3) gives (2, 3).

        Returns `out`, which may be omitted if N divides the first dimension; if N does not, raises InputTypeError.
        Otherwise raises as all_reduce.
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
        """The blocks of all ranks in rank order: (2, 3) gives (N, 2, 3).

        `counts`: the number of elements of each rank, if they differ; then the result is (sum(counts),). Returns `out`.
        Raises as every call; InputError if `counts` does not have N entries or does not match the arrays.
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
        """Like all_gather, but only for `root`: (2, 3) gives (N, 2, 3) there; the other ranks get None.

        With `stream`, the arrays of all ranks must be on GPUs. Raises as all_gather.
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
        """Block r of the root's `data` goes to rank r: (N, 2, 3) gives (2, 3); the other ranks pass None as `data`.

        `counts`: the number of elements for each rank, if they differ. `stream` as in gather. Returns `out`. Raises as
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
        """Block r of N goes to rank r; the block from rank r becomes block r of `out`: (N, 3) gives (N, 3).

        `out` must not be `data`. Returns `out`. Raises as every call; InputError if N does not divide the number of
        elements.
        """
        used = stream_for(stream, data, out)
        out = made(data, None, used) if out is None else out
        self._core.all_to_all(data, out, used)
        return out

    def all_to_all_v(self, data: Array, give: Counts, out: B, take: Counts, *, stream: Stream = None) -> B:
        """all_to_all with consecutive blocks of `give[r]` elements to rank r and `take[r]` elements from rank r.

        Returns `out`. Raises as every call; InputError if the lists do not have N entries or do not match the arrays.
        """
        gives, takes = whole_numbers("give", give), whole_numbers("take", take)
        self._core.all_to_all_v(data, gives, out, takes, stream_for(stream, data, out))
        return out

    def prepare_collective(
        self, operation: str, data: Array | None, out: Array | None = None, op: ReduceOp = "sum", root: int = 0
    ) -> Prepared:
        """The same collective of the same arrays, for repeated starts; all ranks of the group prepare it together.

        `operation`: "all_reduce", "reduce", "reduce_scatter", "broadcast", "all_gather", "all_to_all", "gather",
        "scatter", "scan", "exscan". Each start is that call, with the algorithm that it would take. `out` is needed but
        at ranks that get nothing and in a broadcast, which fills `data`; `data` is not needed at ranks that give
        nothing. Arrays on GPUs are set up as by `prepare`. Raises as all_reduce, at all ranks.
        """
        taken = data if operation == "broadcast" else out
        return Prepared(self._core.prepare_collective(operation, data, taken, op, root), [(data, out)])
