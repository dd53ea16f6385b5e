"""CUDA kernels that a client gives to a server of GPUs."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path
from typing import Any

from waywiser.errors import InputError
from waywiser.offload.arrays import RemoteArray

_LARGEST = 4 << 20


class CudaKernel:
    """A kernel for `RemoteGpu.launch`: `name` in `code`, which is CUDA source (C++17), PTX, or the bytes of a
    cubin or a fatbin.

    The kernel is declared `extern "C" __global__`. A server compiles the same code once for each client.

    Raises InputError for an empty name or one of more than 64 bytes, for no code, and for more than 4 MiB.
    """

    def __init__(self, code: str | bytes, name: str) -> None:
        self.code = code.encode() if isinstance(code, str) else bytes(code)
        self.name = name
        if not self.code or len(self.code) > _LARGEST:
            raise InputError(f"the code of a kernel has 1 to {_LARGEST} bytes, not {len(self.code)}")
        if not 1 <= len(name.encode()) <= 64:
            raise InputError(f"{name!r:.80}: the name of a kernel has 1 to 64 bytes")

    def __repr__(self) -> str:
        return f"<waywiser.CudaKernel: {self.name}>"


def lengths_of(what: str, given: int | tuple[int, ...]) -> tuple[int, int, int]:
    """x, y and z, those that are not given as 1. Raises InputError."""
    lengths = given if isinstance(given, tuple) else (given,)
    if not 1 <= len(lengths) <= 3 or not all(isinstance(each, int) and 1 <= each < 1 << 31 for each in lengths):
        raise InputError(f"{what}={given!r:.60}: write one to three whole numbers, from 1")
    x, y, z = (*lengths, 1, 1)[:3]
    return x, y, z


def bits_of(number: int, value: Any) -> tuple[str, int]:
    """The type and the bits of the argument of this number, from 1. Raises InputError for what is no number."""
    import numpy

    if isinstance(value, bool) or not isinstance(value, (int, float, numpy.generic)):
        raise InputError(f"argument {number} of a kernel is an array of this GPU or a number, not {value!r:.60}")
    if not isinstance(value, numpy.generic):
        if isinstance(value, int) and not -(1 << 31) <= value < 1 << 31:
            raise InputError(f"argument {number} is no int32: write numpy.int64({value!r:.60})")
        value = numpy.int32(value) if isinstance(value, int) else numpy.float64(value)
    kind, size = value.dtype.kind, value.dtype.itemsize
    if kind not in "iuf" or size not in (4, 8):
        raise InputError(f"argument {number} is a {value.dtype}: a kernel takes int32, int64, float32 and float64")
    (bits,) = struct.unpack("<Q", value.tobytes().ljust(8, b"\0"))
    return f"{'float' if kind == 'f' else 'int'}{8 * size}", bits


def arguments_of(gpu: object, given: tuple[Any, ...]) -> list[tuple[str, int]]:
    """What a kernel is given: arrays of the GPU by their numbers, numbers by their bits. Raises InputError."""
    taken = []
    for place, value in enumerate(given, 1):
        if not isinstance(value, RemoteArray):
            taken.append(bits_of(place, value))
            continue
        if value._gpu is not gpu:
            raise InputError("an array of another remote GPU: get() it first")
        taken.append(("array", value._number))
    return taken


def load_nvrtc() -> None:
    """Loads the NVRTC of NVIDIA's package, if it is installed, so that the core finds it. Raises nothing."""
    import ctypes

    found = importlib.util.find_spec("nvidia")
    for folder in (found.submodule_search_locations or []) if found else []:
        for library in sorted(Path(folder).glob("c*/lib/libnvrtc.so.1[23]"), reverse=True):
            try:
                ctypes.CDLL(str(library))
            except OSError:
                continue
            return
