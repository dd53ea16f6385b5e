"""One-sided access to memory that all ranks have exposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from waywiser.errors import InputTypeError
from waywiser.group.arrays import stream_for
from waywiser.group.rank import Rank
from waywiser.group.types import A, Array, Stream

if TYPE_CHECKING:
    from waywiser import _core


class Window(Generic[A]):
    """An array of each rank that the others may read and write: see `Group.expose`. It keeps this rank's array."""

    def __init__(self, core: _core.Window, array: A) -> None:
        self._core = core
        self.array = array

    def bytes_of(self, rank: int) -> int:
        """The number of bytes that a rank has exposed. Raises InputError for a rank that does not exist."""
        return int(self._core.bytes_of(rank))


class Windows(Rank):
    """The one-sided calls of a group. Offsets are in bytes from the beginning of the other rank's array."""

    def expose(self, array: A, *, symmetric: bool = False) -> Window[A]:
        """All ranks call it. `array`: at all ranks in host memory, or at all on a GPU; then they must be on one
        machine. Its elements may have any type. It must live until all ranks have finished their accesses: a barrier
        tells when. Some collectives save a copy if their outputs are in exposed GPU memory.

        `symmetric`, for GPU memory: the program promises that the arrays of a collective lie at equal offsets of one
        such window at all ranks, or in none at any rank. Then long collectives between them stage nothing: copy engines
        write straight into the outputs, and kernels that add up read the inputs of others. All ranks give it, and
        arrays of equally many bytes. A call that breaks the promise fails.

        Raises as every call; UnavailableError for arrays of GPUs if ranks are on several machines, or if the memory
        cannot be shared between processes, such as memory of CUDA's virtual memory management; InputError at all ranks
        for symmetric windows of unequal sizes, or if only some ranks ask for them.
        """
        return Window(self._core.expose(array, bool(symmetric)), array)

    def put(self, data: Array, window: Window[Any], to: int, offset: int = 0, *, stream: Stream = None) -> None:
        """Writes an array into the memory of rank `to`, `offset` bytes from its beginning, whatever the types of the
        two; returns when `data` may be changed again.

        Raises as every call; InputError if the data do not fit into the window, UnavailableError if the job encrypts
        and `to` is on another machine.
        """
        self._core.put(data, _core_of(window), to, offset, stream_for(stream, data))

    def get(self, out: A, window: Window[Any], source: int, offset: int = 0, *, stream: Stream = None) -> A:
        """Fills `out` from the memory of rank `source`, `offset` bytes from its beginning. Returns `out`.

        Raises as put.
        """
        self._core.get(out, _core_of(window), source, offset, stream_for(stream, out))
        return out

    def signal(self, window: Window[Any], to: int, offset: int, value: int) -> None:
        """Writes `value` (0 to 2^64 - 1) into 8 bytes, `offset` bytes from the beginning, after all earlier puts of
        this rank to that rank have arrived.

        Raises as put; InputError for an `offset` that is not a multiple of 8.
        """
        self._core.signal(_core_of(window), to, offset, value)

    def wait(self, window: Window[Any], offset: int, at_least: int) -> None:
        """Waits until the 8 bytes at `offset` (in bytes) of this rank's own memory hold a number of at least
        `at_least`.

        Raises as signal.
        """
        self._core.wait(_core_of(window), offset, at_least)

    def flush(self) -> None:
        """Returns when all puts and signals of this rank have arrived. Raises as every call."""
        self._core.flush()


def _core_of(window: Window[Any]) -> _core.Window:
    if not isinstance(window, Window):
        raise InputTypeError(f"window is what expose() returns, not {type(window).__name__}")
    return window._core
