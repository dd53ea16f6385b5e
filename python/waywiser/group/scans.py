"""The reductions of a group that depend on ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from waywiser.group.arrays import made
from waywiser.group.reducing import Reducing
from waywiser.group.scalars import S, as_array, as_scalar, is_scalar
from waywiser.group.types import A, Array, B, ReduceOp, Stream

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    D = TypeVar("D", bound=numpy.generic)


class Scans(Reducing):
    """The hosts carry them out, for arrays on GPUs too. All ranks make the same calls; `out` as in all_reduce."""

    @overload
    def scan(self, data: S, out: None = None, op: ReduceOp = "sum") -> S: ...
    @overload
    def scan(self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None) -> A: ...
    @overload
    def scan(self, data: Array, out: B, op: ReduceOp = "sum", *, stream: Stream = None) -> B: ...
    def scan(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Any:
        """Combines the arrays of this rank and of all lower ranks, element by element: (2, 3) gives (2, 3).

        The last bits of a floating-point sum depend on the algorithm. `out` may be `data`. Returns `out`. Raises as
        all_reduce; InputError also for avg.
        """
        return self._reduced("scan", data, out, op, stream=stream)

    @overload
    def exscan(self, data: S, out: None = None, op: ReduceOp = "sum") -> S | None: ...
    @overload
    def exscan(self, data: A, out: None = None, op: ReduceOp = "sum", *, stream: Stream = None) -> A | None: ...
    @overload
    def exscan(self, data: Array, out: B | None, op: ReduceOp = "sum", *, stream: Stream = None) -> B | None: ...
    def exscan(self, data: Any, out: Any = None, op: ReduceOp = "sum", *, stream: Stream = None) -> Any:
        """Like scan, but of the lower ranks only: rank 0 gets None, and its `out` is not touched. Raises as scan."""
        return self._reduced("exscan", data, out, op, stream=stream, here=self.rank != 0)

    @overload
    def minloc(self, data: S, locations: int | None = None) -> tuple[S, int]: ...
    @overload
    def minloc(
        self, data: NDArray[D], locations: NDArray[numpy.int64] | None = None
    ) -> tuple[NDArray[D], NDArray[numpy.int64]]: ...
    def minloc(self, data: Any, locations: Any = None) -> tuple[Any, Any]:
        """For each element the least value of all ranks, and the location that its rank gave for it.

        Locations are int64, in the shape of `data`; without them they are ranks. Of ranks with equal values the lowest
        location is taken. (2, 3) gives two new arrays of (2, 3), a number two numbers. Raises as all_reduce;
        UnavailableError for arrays on GPUs.
        """
        return self._located("minloc", data, locations)

    @overload
    def maxloc(self, data: S, locations: int | None = None) -> tuple[S, int]: ...
    @overload
    def maxloc(
        self, data: NDArray[D], locations: NDArray[numpy.int64] | None = None
    ) -> tuple[NDArray[D], NDArray[numpy.int64]]: ...
    def maxloc(self, data: Any, locations: Any = None) -> tuple[Any, Any]:
        """Like minloc, of the greatest value. Raises as minloc."""
        return self._located("maxloc", data, locations)

    def _located(self, call: str, data: Any, locations: Any) -> tuple[Any, Any]:
        import numpy

        if is_scalar(data):
            given = numpy.array(self.rank if locations is None else locations, numpy.int64)
            value, at = self._located(call, as_array(data), given)
            return as_scalar(value, data), int(at)
        if locations is None:
            locations = numpy.full(data.shape, self.rank, numpy.int64)
        found, found_at = made(data, None, None), numpy.empty_like(locations)
        getattr(self._core, call)(data, locations, found, found_at)
        return found, found_at
