"""One-sided access to memory that all ranks have exposed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from waywiser.group.arrays import Stream, stream_for
from waywiser.group.gpus import GpuArray
from waywiser.group.rank import Rank

if TYPE_CHECKING:
    from waywiser import _core


class Window:
    """An array of each rank that the others may read and write: see `Group.expose`. It keeps this rank's array."""

    def __init__(self, core: _core.Window, array: Any) -> None:
        self._core = core
        self.array = array

    def bytes_of(self, rank: int) -> int:
        """How many bytes a rank has exposed."""
        return int(self._core.bytes_of(rank))


class Windows(Rank):
    """The one-sided calls of a group. Offsets are in bytes from the beginning of the other rank's array."""

    def expose(self, array: Any) -> Window:
        """All ranks call it. `array` of the host, or a GpuArray; then all ranks must be on one machine. It must live
        until all ranks have done what they do with it: a barrier says when. Some collectives with outputs in a
        GpuArray that is exposed take a copy less."""
        if isinstance(array, GpuArray):
            return Window(self._core.expose_gpu(array._memory), array)
        return Window(self._core.expose(array), array)

    def put(self, data: Any, window: Window, to: int, offset: int = 0, *, stream: Stream = None) -> None:
        """Writes an array into the memory of rank `to`; returns when `data` may be changed again."""
        self._core.put(data, window._core, to, offset, stream_for(stream, data))

    def get(self, out: Any, window: Window, source: int, offset: int = 0, *, stream: Stream = None) -> Any:
        """Fills `out` from the memory of rank `source`. Returns `out`."""
        self._core.get(out, window._core, source, offset, stream_for(stream, out))
        return out

    def signal(self, window: Window, to: int, offset: int, value: int) -> None:
        """Writes 8 bytes after all earlier puts of this rank to that rank have arrived; `offset` is a multiple of 8."""
        self._core.signal(window._core, to, offset, value)

    def wait(self, window: Window, offset: int, at_least: int) -> None:
        """Until the 8 bytes at `offset` of this rank's own memory are a number of at least `at_least`."""
        self._core.wait(window._core, offset, at_least)

    def flush(self) -> None:
        """Returns when all puts and signals of this rank have arrived."""
        self._core.flush()
