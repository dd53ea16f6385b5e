"""One-sided communication in kernels of Numba-CUDA: the device functions of waywiser/one_sided.cuh, linked.

    terms = waywiser.numba.Terms(heap, team)

    @cuda.jit
    def put_around(heap, team):
        right = (rank(heap) + 1) % size(heap)
        put_with_signal_block(heap, 4096, 64, 4000, 0, 1, ADD, right)
        wait_until_block(heap, 0, GE, 1, -1)
        barrier_block(heap, team)

    put_around[1, 256, stream](terms.heap, terms.team)

Places are offsets in the heap, in bytes; all numbers but ranks are unsigned. What a call of a warp or a block is, and
what orders what, is as in waywiser/one_sided.cuh: docs/one-sided.md.
"""

from __future__ import annotations

from typing import Any

import numpy
from numba import cuda, types

from waywiser.errors import DeviceError
from waywiser.group.types import Stream
from waywiser.heap import Heap, HeapTeam
from waywiser.installed_library import nvrtc_options

__all__ = [
    "ADD",
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "SET",
    "Terms",
    "atomic_compare_swap",
    "atomic_fetch_add",
    "barrier_block",
    "fence",
    "get",
    "get_block",
    "get_warp",
    "linked_code",
    "put",
    "put_block",
    "put_warp",
    "put_with_signal",
    "put_with_signal_block",
    "put_with_signal_warp",
    "quiet",
    "rank",
    "signal_add",
    "signal_set",
    "size",
    "test",
    "wait_until",
    "wait_until_block",
    "wait_until_warp",
]

EQ, NE, GT, GE, LT, LE = range(6)
SET, ADD = range(2)
SOURCE = '#include "waywiser/heap/device/c_functions.cuh"\n'


class Terms:
    """A heap and a team of it in memory of the present GPU, for kernels: `heap` and `team` are their addresses. It must
    live until the kernels have ended, and be made again after `Heap.set_deadline`.

    Raises InputError for a heap in host memory.
    """

    def __init__(self, heap: Heap, team: HeapTeam, *, stream: Stream = None) -> None:
        parts = [heap.terms(stream), team.terms()]
        padded = len(parts[0]) + -len(parts[0]) % 16
        words = numpy.frombuffer(parts[0].ljust(padded, b"\0") + parts[1], numpy.uint8)
        self._words = cuda.to_device(words)
        self.heap = numpy.uint64(self._words.device_ctypes_pointer.value)
        self.team = numpy.uint64(self._words.device_ctypes_pointer.value + padded)


def linked_code(capability: tuple[int, int] | None = None) -> Any:
    """The device functions, compiled by NVRTC for GPUs of this compute capability, None: of the present GPU; as a value
    of `link=` of `numba.cuda.jit`. The functions of this module link it by themselves.

    Raises DeviceError with the compiler's words.
    """
    return cuda.PTXSource(_ptx(capability or cuda.get_current_device().compute_capability), name="waywiser")


def _ptx(capability: tuple[int, int]) -> bytes:
    from cuda.bindings import nvrtc
    from cuda.pathfinder import find_nvidia_header_directory

    key = (capability[0], capability[1])
    if key in _compiled:
        return _compiled[key]

    def done(answer: tuple[Any, ...]) -> Any:
        code, *values = answer
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise DeviceError(f"NVRTC does not compile the device functions of heaps: {code.name}")
        return values[0] if values else None

    runtime = find_nvidia_header_directory("cudart")
    options = [f"--gpu-architecture=compute_{key[0]}{key[1]}", "--relocatable-device-code=true", *nvrtc_options()]
    if runtime is not None:
        options.append(f"-I{runtime}")
    program = done(nvrtc.nvrtcCreateProgram(SOURCE.encode(), b"waywiser.cu", 0, [], []))
    try:
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if code != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * done(nvrtc.nvrtcGetProgramLogSize(program))
            done(nvrtc.nvrtcGetProgramLog(program, log))
            first = log.rstrip(b"\0 \n").decode(errors="replace").splitlines()[:1]
            raise DeviceError(
                f"NVRTC does not compile the device functions of heaps: {first[0] if first else code.name}"
            )
        ptx = b" " * done(nvrtc.nvrtcGetPTXSize(program))
        done(nvrtc.nvrtcGetPTX(program, ptx))
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    _compiled[key] = ptx.rstrip(b"\0")
    return _compiled[key]


_compiled: dict[tuple[int, int], bytes] = {}


if not hasattr(cuda, "PTXSource"):
    raise ImportError("waywiser.numba needs the package numba-cuda; this numba.cuda is numba's own, without PTXSource")


class _Linked(cuda.PTXSource):  # type: ignore[misc]
    """Compiled when a kernel that uses it is: then there is a present GPU."""

    def __init__(self) -> None:
        super().__init__(b"", name="waywiser")

    @property
    def data(self) -> bytes:
        return _ptx(cuda.get_current_device().compute_capability)


_place = _count = _value = types.uint64
_rank = _flag = types.int32
_link = _Linked()


def _declared(name: str, returns: Any, *arguments: Any) -> Any:
    return cuda.declare_device(f"waywiser_{name}", returns(types.uint64, *arguments), link=_link, abi="c")


rank = _declared("rank", _rank)
size = _declared("size", _rank)
put = _declared("put", _flag, _place, _place, _count, _rank)
put_warp = _declared("put_warp", _flag, _place, _place, _count, _rank)
put_block = _declared("put_block", _flag, _place, _place, _count, _rank)
get = _declared("get", _flag, _place, _place, _count, _rank)
get_warp = _declared("get_warp", _flag, _place, _place, _count, _rank)
get_block = _declared("get_block", _flag, _place, _place, _count, _rank)
_with_signal = (_place, _place, _count, _place, _value, _flag, _rank)
put_with_signal = _declared("put_with_signal", _flag, *_with_signal)
put_with_signal_warp = _declared("put_with_signal_warp", _flag, *_with_signal)
put_with_signal_block = _declared("put_with_signal_block", _flag, *_with_signal)
signal_set = _declared("signal_set", _flag, _place, _value, _rank)
signal_add = _declared("signal_add", _flag, _place, _value, _rank)
wait_until = _declared("wait_until", _flag, _place, _flag, _value, _rank)
wait_until_warp = _declared("wait_until_warp", _flag, _place, _flag, _value, _rank)
wait_until_block = _declared("wait_until_block", _flag, _place, _flag, _value, _rank)
test = _declared("test", _flag, _place, _flag, _value)
atomic_fetch_add = _declared("atomic_fetch_add", types.uint64, _place, _value, _rank)
atomic_compare_swap = _declared("atomic_compare_swap", types.uint64, _place, _value, _value, _rank)
fence = _declared("fence", _flag)
quiet = _declared("quiet", _flag)
barrier_block = _declared("barrier_block", _flag, types.uint64)
