"""Arrays on one GPU through the CUDA driver, opened at run time: for ranks in Python that need no more of CUDA."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy

from waywiser.look.cuda_driver import check, driver

_HANDLE = ctypes.c_uint64
_NON_BLOCKING, _THREAD_LOCAL = 1, 1  # CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


class GpuMemory:
    """`count` elements of a NumPy type at `pointer`; freed with the object."""

    def __init__(self, library: Any, count: int, kind: Any) -> None:
        self._library = library
        self.count, self.kind = count, numpy.dtype(kind)
        self._pointer = _HANDLE()
        bytes_ = max(1, count * self.kind.itemsize)
        check(library, "cuMemAlloc_v2", ctypes.byref(self._pointer), ctypes.c_size_t(bytes_))
        check(library, "cuMemsetD8_v2", self._pointer, ctypes.c_ubyte(0), ctypes.c_size_t(bytes_))

    @property
    def pointer(self) -> int:
        return self._pointer.value

    def write(self, values: Any) -> None:
        """Copies a NumPy array into the first elements."""
        given = numpy.ascontiguousarray(values, dtype=self.kind)
        if len(given) > self.count:
            raise ValueError(f"{len(given)} elements do not fit into {self.count}")
        if given.nbytes:
            data = ctypes.c_void_p(given.ctypes.data)
            check(self._library, "cuMemcpyHtoD_v2", self._pointer, data, ctypes.c_size_t(given.nbytes))

    def read(self) -> Any:
        """A copy as a NumPy array."""
        found = numpy.empty(self.count, dtype=self.kind)
        if found.nbytes:
            data = ctypes.c_void_p(found.ctypes.data)
            check(self._library, "cuMemcpyDtoH_v2", data, self._pointer, ctypes.c_size_t(found.nbytes))
        return found

    def __del__(self) -> None:
        if self._pointer.value:
            self._library.cuMemFree_v2(self._pointer)


class _Launch:
    """A graph; destroyed with the object."""

    def __init__(self, library: Any, runnable: ctypes.c_void_p, stream: ctypes.c_void_p) -> None:
        self._library, self._runnable, self._stream = library, runnable, stream

    def __call__(self) -> None:
        check(self._library, "cuGraphLaunch", self._runnable, self._stream)

    def __del__(self) -> None:
        self._library.cuGraphExecDestroy(self._runnable)


class CudaDevice:
    """The GPU of this process, with its primary context current in this thread, and a stream."""

    def __init__(self, number: int) -> None:
        self._library = driver()
        device, context = ctypes.c_int(), ctypes.c_void_p()
        check(self._library, "cuDeviceGet", ctypes.byref(device), number)
        check(self._library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        check(self._library, "cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        check(self._library, "cuStreamCreate", ctypes.byref(self.stream), _NON_BLOCKING)

    def record(self, calls: Callable[[], None]) -> Callable[[], None]:
        """Captures the work that `calls` enqueues in the stream; the result launches it in the stream."""
        graph, runnable = ctypes.c_void_p(), ctypes.c_void_p()
        check(self._library, "cuStreamBeginCapture_v2", self.stream, _THREAD_LOCAL)
        try:
            calls()
        finally:
            check(self._library, "cuStreamEndCapture", self.stream, ctypes.byref(graph))
        check(self._library, "cuGraphInstantiateWithFlags", ctypes.byref(runnable), graph, ctypes.c_ulonglong(0))
        check(self._library, "cuGraphDestroy", graph)
        return _Launch(self._library, runnable, self.stream)

    def array(self, count: int, kind: Any) -> GpuMemory:
        return GpuMemory(self._library, count, kind)

    def synchronize(self) -> None:
        """Waits for all enqueued work."""
        check(self._library, "cuCtxSynchronize")
