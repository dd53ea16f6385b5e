"""A rank of NCCL itself, called through ctypes. Needs libnccl and the driver, nothing else of CUDA.

`python -m waywiser.bench.nccl_rank SOCKET RANK SIZE FILE gpu`; FILE is where the ranks meet.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from waywiser.bench.cuda_memory import CudaDevice, GpuMemory
from waywiser.bench.nccl_communicators import Communicators
from waywiser.bench.python_rank import serve
from waywiser.bench.rank_request import BOTH_WAYS, MESSAGES, NotThere, Place, Request
from waywiser.look.cuda_driver import gpu_count
from waywiser.look.nccl_library import find_libnccl

_BYTE, _FLOAT, _SUM = 1, 7, 0  # ncclUint8, ncclFloat32, ncclSum


class Nccl:
    """Calls run in the order of the device's stream; `finish` waits."""

    memory = "gpu"

    def __init__(self, rank: int, size: int, file: str) -> None:
        self.rank, self.size = rank, size
        self._device = CudaDevice(rank % gpu_count())
        self._library = ctypes.CDLL(find_libnccl())
        number = ctypes.c_int()
        self._check(self._library.ncclGetVersion(ctypes.byref(number)))
        self.version = f"NCCL {number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}"
        self._communicators = Communicators(self._library, self._check, rank, size, Path(file))
        self._use("")
        self._stream = self._device.stream
        self._token = self._device.array(4, numpy.float32)
        self.barrier()

    def _use(self, way: str) -> None:
        self._comm = self._communicators.of(way, self.version.removeprefix("NCCL "))

    def _check(self, result: int) -> None:
        if result != 0:
            self._library.ncclGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"NCCL: {self._library.ncclGetErrorString(result).decode()}")

    def array(self, count: int, numbers: bool, memory: str) -> GpuMemory:
        return self._device.array(count, numpy.float32 if numbers else numpy.uint8)

    def write(self, array: GpuMemory, values: Any) -> None:
        array.write(values)
        self.finish()

    def read(self, array: GpuMemory) -> Any:
        return array.read()

    def barrier(self) -> None:
        self._all_reduce(self._token, self._token)()
        self.finish()

    def finish(self) -> None:
        self._device.synchronize()

    def record(self, calls: Callable[[], None]) -> Callable[[], None]:
        return self._device.record(calls)

    def _bound(self, function: str, *arguments: Any) -> Callable[[], None]:
        """One call with these arguments, then communicator and stream, converted once."""
        called = getattr(self._library, function)
        fixed = (*arguments, self._comm, self._stream)

        def call() -> None:
            if result := called(*fixed):
                self._check(result)

        return call

    def _all_reduce(self, give: Any, take: Any) -> Callable[[], None]:
        return self._bound("ncclAllReduce", _at(give), _at(take), _count(give), _FLOAT, _SUM)

    def _send(self, array: Any, peer: int, at: int = 0, count: int | None = None) -> Callable[[], None]:
        return self._bound("ncclSend", _at(array, at), _count(array, count), _BYTE, peer)

    def _recv(self, array: Any, peer: int, at: int = 0, count: int | None = None) -> Callable[[], None]:
        return self._bound("ncclRecv", _at(array, at), _count(array, count), _BYTE, peer)

    def _group(self, calls: list[Callable[[], None]]) -> Callable[[], None]:
        start, end = self._library.ncclGroupStart, self._library.ncclGroupEnd

        def call() -> None:
            start()
            for one in calls:
                one()
            self._check(end())

        return call

    def call(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        self._use(request.way)
        if request.operation in MESSAGES:
            return self._message(request, place, give, take)
        size, n = self.size, ctypes.c_size_t(request.bytes)
        floats = ctypes.c_size_t(request.bytes // 4)
        operation = request.operation
        if operation == "broadcast":
            return self._bound("ncclBroadcast", _at(take), _at(take), n, _BYTE, 0)
        if operation == "reduce":
            return self._bound("ncclReduce", _at(give), _at(take), floats, _FLOAT, _SUM, 0)
        if operation == "all_reduce":
            return self._all_reduce(give, take)
        if operation == "reduce_scatter":
            return self._bound("ncclReduceScatter", _at(give), _at(take), floats, _FLOAT, _SUM)
        if operation == "all_gather":
            return self._bound("ncclAllGather", _at(give), _at(take), n, _BYTE)
        block = request.bytes
        everyone = range(size)
        if operation == "all_to_all":
            sends = [self._send(give, peer, peer * block, block) for peer in everyone]
            return self._group(sends + [self._recv(take, peer, peer * block, block) for peer in everyone])
        if operation == "gather":
            receives = [self._recv(take, peer, peer * block, block) for peer in everyone] if self.rank == 0 else []
            return self._group([self._send(give, 0), *receives])
        if operation == "scatter":
            sends = [self._send(give, peer, peer * block, block) for peer in everyone] if self.rank == 0 else []
            return self._group([*sends, self._recv(take, 0)])
        if operation == "neighbor_exchange" and size > 2:
            after, before = (self.rank + 1) % size, (self.rank - 1) % size
            sends = [self._send(give, before, 0, block), self._send(give, after, block, block)]
            return self._group([*sends, self._recv(take, before, 0, block), self._recv(take, after, block, block)])
        raise NotThere("NCCL has nothing like it")

    def _message(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        if request.operation == "overlap":
            raise NotThere("work on a stream overlaps by itself")
        send, receive = self._send(give, place.other), self._recv(take, place.other)
        if "latency" in request.operation:
            one, two = (send, receive) if place.first else (receive, send)

            def ping_pong() -> None:
                one()
                two()

            return ping_pong
        both = request.operation in BOTH_WAYS
        window = range(request.window)
        return self._group(
            [send for _ in window if both or place.first] + [receive for _ in window if both or not place.first]
        )


def _at(array: GpuMemory, offset: int = 0) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.pointer + offset)


def _count(array: GpuMemory, count: int | None = None) -> ctypes.c_size_t:
    return ctypes.c_size_t(array.count if count is None else count)


def main() -> None:
    """Arguments: socket, rank, size, file, memory."""
    serve(sys.argv[1], Nccl(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))


if __name__ == "__main__":
    main()
