"""A rank of NVSHMEM, called through ctypes. Needs libnvshmem_host and the driver, nothing else of CUDA.

`python -m waywiser.bench.nvshmem_rank SOCKET RANK SIZE FILE gpu [MODULE]`; FILE is where the ranks meet, MODULE the
kernels that make calls (nvshmem_kernels.py).
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from waywiser.bench.cuda_memory import CudaDevice, GpuMemory
from waywiser.bench.nccl_communicators import hear, tell_all
from waywiser.bench.nvshmem_kernels import NvshmemKernels
from waywiser.bench.nvshmem_library import UniqueId, init_attributes, open_libnvshmem, unique_id
from waywiser.bench.python_rank import serve
from waywiser.bench.rank_request import BOTH_WAYS, MESSAGES, NotThere, Place, Request
from waywiser.bench.symmetric_slots import SymmetricSlots
from waywiser.look.cuda_driver import CudaError, check, driver, gpu_count

_WITH_UNIQUE_ID = 1 << 3  # NVSHMEMX_INIT_WITH_UNIQUEID
_WORLD, _SET, _EQUAL = 0, 9, 0  # NVSHMEM_TEAM_WORLD, NVSHMEM_SIGNAL_SET, NVSHMEM_CMP_EQ
_SCRATCH = "NVSHMEM_REDUCE_SCRATCH_SIZE"
_SCRATCH_BYTES = 1 << 19
# No multicast; its own collectives, unless they are left to NCCL; only ranks of this machine; enough memory if the heap
# cannot grow.
_ALWAYS = {"NVSHMEM_DISABLE_NVLS": "1"}
_UNLESS_SET = {"NVSHMEM_DISABLE_NCCL": "1", "NVSHMEM_REMOTE_TRANSPORT": "none", "NVSHMEM_SYMMETRIC_SIZE": "2G"}


class _Symmetric(GpuMemory):
    """A view of a buffer that another owner frees."""

    def __init__(self, pointer: int, count: int, kind: Any) -> None:
        self._library = driver()
        self.count, self.kind = count, numpy.dtype(kind)
        self._pointer = ctypes.c_uint64(pointer)

    def __del__(self) -> None:
        pass


class Nvshmem:
    """Calls run in the order of the device's stream; `finish` waits."""

    memory = "gpu"

    def __init__(self, rank: int, size: int, file: str, module: str = "") -> None:
        os.environ.update(_ALWAYS | {name: os.environ.get(name, value) for name, value in _UNLESS_SET.items()})
        self.rank, self.size = rank, size
        self._device = CudaDevice(rank % gpu_count())
        self._stream = self._device.stream
        self._library = open_libnvshmem()
        numbers = [ctypes.c_int() for _ in range(3)]
        self._library.nvshmemx_vendor_get_version_info(*numbers)
        self.version = "NVSHMEM " + ".".join(str(number.value) for number in numbers)
        self._by_nccl = os.environ["NVSHMEM_DISABLE_NCCL"] == "0"
        if self._by_nccl:
            self.version += ", collectives by NCCL where it takes that"
        self._join(Path(file))
        self._slots = SymmetricSlots(self._allocate, self._library.nvshmem_free)
        self._signals = self._found(self._library.nvshmem_calloc(2 * size, 8), 16 * size)
        self.kernels: NvshmemKernels | None = None
        if module:
            words = self._found(self._library.nvshmem_calloc(3, 8), 24)
            self.kernels = NvshmemKernels(self._library, Path(module), self._stream, rank, words)
        self._turns = [0] * size  # messages exchanged with each rank
        self._partner: int | None = None
        self.barrier()

    def _join(self, file: Path) -> None:
        made = unique_id()
        if self.rank == 0:
            self._check("nvshmemx_get_uniqueid", ctypes.addressof(made))
            tell_all(file, bytes(made))
        told = UniqueId.from_buffer_copy(hear(file))
        attributes = init_attributes()
        at = ctypes.addressof(attributes)
        self._check("nvshmemx_set_attr_uniqueid_args", self.rank, self.size, ctypes.addressof(told), at)
        self._check("nvshmemx_hostlib_init_attr", _WITH_UNIQUE_ID, at)

    def _check(self, function: str, *arguments: Any) -> None:
        if code := getattr(self._library, function)(*arguments):
            raise RuntimeError(f"{function} failed ({code})")

    def _allocate(self, size: int) -> int:
        return self._found(self._library.nvshmem_malloc(size), size)

    def _found(self, pointer: int | None, size: int) -> int:
        if not pointer:
            raise RuntimeError(f"NVSHMEM does not have {size} bytes of symmetric memory")
        return pointer

    def array(self, count: int, numbers: bool, memory: str) -> GpuMemory:
        kind = numpy.dtype(numpy.float32 if numbers else numpy.uint8)
        return _Symmetric(self._slots.take(count * kind.itemsize), count, kind)

    def write(self, array: GpuMemory, values: Any) -> None:
        array.write(values)
        self.finish()

    def read(self, array: GpuMemory) -> Any:
        return array.read()

    def barrier(self) -> None:
        self._library.nvshmemx_barrier_all_on_stream(self._stream)
        self.finish()

    def finish(self) -> None:
        self._device.synchronize()

    def record(self, calls: Callable[[], None]) -> Callable[[], None]:
        """Signals alternate between two values, so messages need a graph for each value that can come first."""
        partner = self._partner
        if partner is None:
            return self._device.record(calls)
        before, graphs = self._turns[partner], []
        for first in (0, 1):
            self._turns[partner] = first
            graphs.append(self._device.record(calls))
        messages, self._turns[partner] = self._turns[partner] - 1, before

        def launch() -> None:
            graphs[self._turns[partner] % 2]()
            self._turns[partner] += messages

        return launch

    def _try_to_record_signals(self) -> None:
        """Checks the driver's functions first: if they fail inside NVSHMEM, it ends the process."""
        library = driver()
        told = (self._stream, ctypes.c_uint64(self._signals), ctypes.c_uint64(0), ctypes.c_uint(0))

        def calls() -> None:
            check(library, "cuStreamWriteValue64_v2", *told)
            check(library, "cuStreamWaitValue64_v2", *told)

        try:
            self._device.record(calls)
        except CudaError as error:
            raise NotThere(f"its signals cannot be recorded in a graph: {error}") from error

    def _bound(self, function: str, *arguments: Any) -> Callable[[], None]:
        """One call with these arguments, then the stream."""
        called = getattr(self._library, function)
        fixed = (*arguments, self._stream)

        def call() -> None:
            if code := called(*fixed):
                raise RuntimeError(f"{function} failed ({code})")

        return call

    def call(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        self._partner = None
        if request.operation in MESSAGES and self._by_nccl:
            raise NotThere("is timed with nvshmem")
        if request.operation in MESSAGES:
            return self._message(request, place, give, take)
        n, into, out_of = request.bytes, take.pointer, give.pointer
        if request.operation == "barrier":
            return self._bound("nvshmemx_barrier_all_on_stream")
        if request.operation == "broadcast":
            return self._bound("nvshmemx_broadcastmem_on_stream", _WORLD, into, into, n, 0)
        if request.operation == "all_reduce":
            return self._bound("nvshmemx_float_sum_reduce_on_stream", _WORLD, into, out_of, n // 4)
        if request.operation == "reduce_scatter":
            self._need_scratch(2 * n * self.size)
            return self._bound("nvshmemx_float_sum_reducescatter_on_stream", _WORLD, into, out_of, n // 4)
        if request.operation == "all_gather":
            return self._bound("nvshmemx_fcollectmem_on_stream", _WORLD, into, out_of, n)
        if request.operation == "all_to_all":
            return self._bound("nvshmemx_alltoallmem_on_stream", _WORLD, into, out_of, n)
        raise NotThere("NVSHMEM has nothing like it on a stream")

    def _need_scratch(self, wanted: int) -> None:
        """The minimum size: with less, an assertion of NVSHMEM ends the kernel."""
        told = os.environ.get(_SCRATCH, "")
        if wanted > (int(told) if told.isdecimal() else _SCRATCH_BYTES):
            raise NotThere(f"needs {_SCRATCH}={wanted}")

    def _message(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        if request.operation == "overlap":
            raise NotThere("work on a stream overlaps by itself")
        if request.mode == "graph":
            self._try_to_record_signals()
        other, stream = place.other, self._stream
        self._partner = other
        pair = _Pair(self._library, stream, self._turns, other).at(self._signals, self.rank)
        puts, puts_with_signal = self._library.nvshmemx_putmem_on_stream, self._library.nvshmemx_putmem_signal_on_stream
        message = (take.pointer, give.pointer, request.bytes)

        def send(value: int) -> None:
            puts_with_signal(*message, pair.theirs[0], value, _SET, other, stream)

        def ping_pong() -> None:
            value = pair.next()
            if place.first:
                send(value)
                pair.wait(0, value)
            else:
                pair.wait(0, value)
                send(value)

        both = request.operation in BOTH_WAYS
        gives, takes = both or place.first, both or not place.first

        def streaming() -> None:  # then an answer, so that no signal is overwritten before it is seen
            value = pair.next()
            if gives:
                for _ in range(request.window - 1):
                    puts(*message, other, stream)
                send(value)
            if takes:
                pair.wait(0, value)
                pair.answer(value)
            if gives:
                pair.wait(1, value)

        return ping_pong if "latency" in request.operation else streaming


class _Pair:
    """Signals between this rank and another: of messages (0) and of answers (1)."""

    def __init__(self, library: Any, stream: ctypes.c_void_p, turns: list[int], other: int) -> None:
        self._library, self._stream, self._turns, self.other = library, stream, turns, other

    def at(self, signals: int, here: int) -> _Pair:
        """`signals`: for each kind, one signal per rank that sets it."""
        size = len(self._turns)
        self._mine = [signals + 8 * (kind * size + self.other) for kind in range(2)]
        self.theirs = [signals + 8 * (kind * size + here) for kind in range(2)]
        return self

    def next(self) -> int:
        """The value of this turn's signals: 1 or 2, alternating."""
        self._turns[self.other] += 1
        return 1 + self._turns[self.other] % 2

    def wait(self, kind: int, value: int) -> None:
        self._library.nvshmemx_signal_wait_until_on_stream(self._mine[kind], _EQUAL, value, self._stream)

    def answer(self, value: int) -> None:
        self._library.nvshmemx_signal_op_on_stream(self.theirs[1], value, _SET, self.other, self._stream)


def main() -> None:
    """Arguments: socket, rank, size, file, memory, and a module of kernels if they make calls."""
    serve(sys.argv[1], Nvshmem(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], "".join(sys.argv[6:7])))


if __name__ == "__main__":
    main()
