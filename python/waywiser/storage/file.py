"""A file that is read into arrays, or written from them, the way that was measured fastest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from waywiser import _core
from waywiser.errors import InputError
from waywiser.group.arrays import stream_for
from waywiser.storage.usual_plan import file_plan

if TYPE_CHECKING:
    from waywiser.group import Array, Gpus, Stream

A = TypeVar("A", bound="Array")
R = TypeVar("R")


class File:
    """A file or block device, to read ("r") or to write ("w").

    Arrays are contiguous, in host memory or in that of `gpus`; `offset` is in bytes of the file. A call reads or writes
    all bytes, or raises TransferError with path and offset: also if the file ends before. What was enqueued on
    `stream`, else on an array's current stream, comes first; a call is complete when it returns. A file that is written
    gets its name, in the place of the one before, in close(), which the end of a `with` block calls; if the block
    raises, what was there stays. `plan`: a file of `waywiser tune --storage`; else WAYWISER_PLAN, or plan.json of the
    folder of results; without any, defaults. `way`: this way alone, such as "io_uring(depth=8)". Calls of several
    threads take turns.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: Literal["r", "w"] = "r",
        *,
        plan: str | os.PathLike[str] | None = None,
        way: str = "",
        gpus: Gpus | None = None,
    ) -> None:
        if mode not in ("r", "w"):
            raise InputError(f"mode {mode!r}: write 'r' or 'w'")
        rows = _core.FilePlan() if way else file_plan(plan)
        self._core = _core.File(os.fspath(path), mode == "w", rows, way, gpus._core if gpus is not None else None)
        self._worker: ThreadPoolExecutor | None = None

    @property
    def size(self) -> int:
        """Bytes of the file now."""
        return self._core.size()

    def read_into(self, array: A, offset: int = 0, *, stream: Stream = None) -> A:
        """Fills the array, or a slice of one, with the bytes from `offset` on. Returns it."""
        return self._read(array, offset, stream_for(stream, array))

    def write(self, array: Array, offset: int = 0, *, stream: Stream = None) -> None:
        """Writes the bytes of the array from `offset` on. What no call writes is zero."""
        self._core.write([(offset, array, stream_for(stream, array))])

    def read_many(self, parts: Iterable[tuple[int, Array]], *, stream: Stream = None) -> None:
        """Fills many arrays at once, each from its offset."""
        self._core.read([(offset, array, stream_for(stream, array)) for offset, array in parts])

    def write_many(self, parts: Iterable[tuple[int, Array]], *, stream: Stream = None) -> None:
        """Writes many arrays at once, each from its offset on."""
        self._core.write([(offset, array, stream_for(stream, array)) for offset, array in parts])

    def start_read(self, array: A, offset: int = 0, *, stream: Stream = None) -> Future[A]:
        """read_into() in a thread of this file, in the order of the calls; `result()` returns the array."""
        used = stream_for(stream, array)  # of this thread
        return self._started(lambda: self._read(array, offset, used))

    def start_write(self, array: Array, offset: int = 0, *, stream: Stream = None) -> Future[None]:
        """write() in a thread of this file; leave the array as it is until `result()` has returned."""
        used = stream_for(stream, array)
        return self._started(lambda: self._core.write([(offset, array, used)]))

    def _read(self, array: A, offset: int, used: Any) -> A:
        self._core.read([(offset, array, used)])
        return array

    def way(self, nbytes: int, offset: int = 0, to_gpu: bool = False) -> str:
        """The way that a call for so many bytes takes now: what is cached may go another way, and arrays in GPU memory
        too."""
        return self._core.way(offset, nbytes, to_gpu)

    def close(self) -> None:
        """Waits for what was started. A written file is on the device under its name then; TransferError if not, or if
        a write has failed: then the one before stays."""
        self._end_worker()
        self._core.close()

    def discard(self) -> None:
        """Ends without replacing anything."""
        self._end_worker()
        self._core.discard()

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _started(self, call: Callable[[], R]) -> Future[R]:
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "waywiser-file")
        return self._worker.submit(call)

    def _end_worker(self) -> None:
        if self._worker is not None:
            self._worker.shutdown()
            self._worker = None
