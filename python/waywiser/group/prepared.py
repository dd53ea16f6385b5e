"""Exchanges and collectives that are prepared once and started often."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from waywiser.errors import InputTypeError
from waywiser.group.arrays import stream_for
from waywiser.group.types import Array, Stream

if TYPE_CHECKING:
    from waywiser import _core


class Indexed(NamedTuple):
    """Elements of a contiguous array, in the order of a list: `length` elements from each index on.

    `indices`: integers, in elements of the array counted in C order. Only in an `Exchange` of `prepare_exchange`.
    """

    array: Array
    indices: Sequence[int] | Array
    length: int = 1


class Exchange(NamedTuple):
    """What one rank gives to a neighbour and takes from it; see `Group.neighbor_exchange`, `Group.prepare_exchange`.

    `rank`: the neighbour; an entry with PROC_NULL is ignored. Data that this rank gives with `give_tag` match what the
    neighbour takes with an equal `take_tag`.
    """

    rank: int
    give: Array | Indexed
    take: Array | Indexed
    give_tag: int = 0
    take_tag: int = 0


class Prepared:
    """An exchange with fixed neighbours, or a collective, of fixed arrays: call `start()` and `wait()` any number of
    times; it keeps its arrays.

    All ranks of the group start it equally often; a start counts as a collective. On GPUs that reach each other an
    exchange is one kernel, whatever the number of neighbours.
    """

    def __init__(self, core: _core.Prepared, arrays: Sequence[tuple[Any, Any]]) -> None:
        self._core = core
        self._arrays = arrays

    def start(self, *, stream: Stream = None) -> None:
        """Begins a start. With `stream` it is enqueued there, needs no `wait()`, and can be captured in a graph.

        Raises as every call of a group; InputError for `stream` with host arrays.
        """
        if stream is not None:
            self._core.start(stream_for(stream), [])
            return
        streams = {stream_for(None, *pair) for pair in self._arrays}
        self._core.start(None, list(streams - {None}))

    def wait(self) -> None:
        """Waits until the operation begun by `start()` is complete. Raises as every call of a group."""
        self._core.wait()

    def __call__(self) -> None:
        """Starts it and waits. Raises as every call of a group."""
        self.start()
        self.wait()

    @property
    def why_staged(self) -> str:
        """Why GPU arrays go through messages of the hosts; empty if they do not. Raises nothing."""
        return str(self._core.why_staged)

    @property
    def why_copied(self) -> str:
        """Why a message to this rank's GPU that goes not by LL is copied out of a receive buffer; empty if other ranks
        store all such messages straight into the arrays, or if `why_staged` has a reason. Raises nothing."""
        return str(self._core.why_copied)

    def explain(self) -> str:
        """What carries out a start, and by which algorithms this rank's messages go: "one kernel of 4 blocks; gives 2
        by direct(piece=16K); takes 2 by LL". Raises nothing."""
        return str(self._core.explain())


def part_for_core(given: Any) -> Any:
    """The part as the core expects it: indices as an array of 64-bit integers."""
    if not isinstance(given, Indexed):
        return given
    indices: Any = given.indices
    kind = getattr(getattr(indices, "dtype", None), "kind", None)
    if kind not in (None, "i", "u"):
        raise InputTypeError(f"indices are integers, not {indices.dtype}")
    try:
        listed = indices if kind else array("q", map(index, indices))
    except (TypeError, OverflowError) as error:
        raise InputTypeError(f"indices are integers: {error}") from None
    return (given.array, listed, given.length)


def array_of(given: Any) -> Any:
    """The array, or the array whose elements are listed."""
    return given.array if isinstance(given, Indexed) else given
