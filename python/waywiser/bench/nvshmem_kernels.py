"""Calls of NVSHMEM that a kernel makes: nvshmem_calls.cu, compiled with its device library and launched."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waywiser.bench.nvshmem_library import find_libnvshmem
from waywiser.bench.rank_request import NotThere, Request
from waywiser.bench.team import TeamError
from waywiser.look.cuda_driver import CudaError, check, driver

_SOURCE = Path(__file__).with_name("nvshmem_calls.cu")
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_...
_PATIENCE = 240.0
_MOST_THREADS, _FEW_THREADS = 512, 32
_MOST_BLOCKS, _BYTES_OF_A_BLOCK = 16, 8 << 10  # as kernel_blocks in src/waywiser/bench/from_kernel

Parameter = ctypes.c_uint64


def compiled_for_nvshmem(folder: Path) -> Path:
    """A module with the kernels, for the first GPU. Raises TeamError with one line."""
    library = Path(find_libnvshmem())
    device, headers = library.with_name("libnvshmem_device.a"), library.parent.parent / "include"
    for needed in (device, headers / "nvshmem.h"):
        if not needed.is_file():
            raise TeamError(f"its calls in kernels need {needed}, which is not there")
    compiler, architecture = find_nvcc(), f"-arch={_architecture()}"
    made, module = folder / "nvshmem_calls.o", folder / "nvshmem_calls.cubin"
    _compile([compiler, "-std=c++17", architecture, "-rdc=true", f"-I{headers}", "-c", str(_SOURCE), "-o", str(made)])
    _compile([compiler, architecture, "-dlink", str(made), str(device), "-cubin", "-o", str(module)])
    return module


def find_nvcc() -> str:
    """PATH's, that of /usr/local/cuda, else the wheel's. Raises TeamError."""
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    wheels = sorted(Path(sysconfig.get_paths()["purelib"]).glob("nvidia/cu*/bin/nvcc"))
    if found is None and not wheels:
        raise TeamError("its calls in kernels need nvcc to compile them: it is not in PATH")
    return found or str(wheels[-1])


def _architecture() -> str:
    numbers = [ctypes.c_int(), ctypes.c_int()]
    try:
        for number, attribute in zip(numbers, (_CAPABILITY_MAJOR, _CAPABILITY_MINOR), strict=True):
            check(driver(), "cuDeviceGetAttribute", ctypes.byref(number), attribute, 0)
    except CudaError as error:
        raise TeamError(str(error)) from error
    return f"sm_{numbers[0].value}{numbers[1].value}"


def _compile(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TeamError(f"{command[0]} cannot compile {_SOURCE.name}: {error}") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[:300]
        raise TeamError(f"{command[0]} cannot compile {_SOURCE.name}: {said}")


class NvshmemKernels:
    """The module in this process. `words`: three symmetric words of 64 bits, zeros: signal, atomics, messages."""

    def __init__(self, library: Any, file: Path, stream: ctypes.c_void_p, rank: int, words: int) -> None:
        self._driver, self._stream, self._rank, self._words = driver(), stream, rank, words
        self._made = [0, 0, 0]  # of each word
        module = ctypes.c_void_p()
        check(self._driver, "cuModuleLoad", ctypes.byref(module), os.fsencode(file))
        self._module = module
        if code := library.nvshmemx_cumodule_init(module):
            raise RuntimeError(f"nvshmemx_cumodule_init failed ({code})")

    def calls_of(self, request: Request, give: Any, take: Any) -> Callable[[int], bool]:
        """Launches a kernel that makes so many calls; whether the other ranks wait at a barrier meanwhile.

        Raises NotThere.
        """
        bytes_ = Parameter(request.bytes)
        blocks = max(1, min(_MOST_BLOCKS, request.bytes // _BYTES_OF_A_BLOCK))
        first = self._rank == 0

        def moves(calls: int) -> bool:
            if first and request.operation == "put":
                self._launch("put", blocks, _MOST_THREADS, take.pointer, give.pointer, bytes_, calls)
            if first and request.operation == "get":
                self._launch("get", blocks, _MOST_THREADS, take.pointer, give.pointer, bytes_, calls)
            return True

        def messages(calls: int) -> bool:
            begin = self._count(2, calls)
            threads = max(_FEW_THREADS, min(_MOST_THREADS, (request.bytes // 8 + 31) // 32 * 32))
            self._launch("put_message", 1, threads, take.pointer, give.pointer, bytes_, self._word(2), begin, calls)
            return False

        def signals(calls: int) -> bool:
            self._launch("signal", 1, _FEW_THREADS, self._word(0), self._count(0, calls), calls)
            return False

        def atomics(calls: int) -> bool:
            self._count(1, calls)
            if first:
                self._launch("atomics", 1, _FEW_THREADS, self._word(1), calls)
            return True

        def barriers(calls: int) -> bool:
            self._launch("barrier", 1, _FEW_THREADS, calls)
            return False

        known = {
            "put": moves, "get": moves, "put_message": messages, "signal": signals, "atomics": atomics,
            "barrier": barriers,
        }  # fmt: skip
        if request.operation not in known:
            raise NotThere("is not timed from inside a kernel")
        return known[request.operation]

    def is_right(self, operation: str) -> bool:
        """Whether the word of rank 1 has what the calls so far have made of it."""
        if self._rank != 1 or operation not in ("signal", "atomics"):
            return True
        which, seen = ("signal", "atomics").index(operation), ctypes.c_uint64()
        check(self._driver, "cuMemcpyDtoH_v2", ctypes.byref(seen), Parameter(self._word(which)), ctypes.c_size_t(8))
        return seen.value == self._made[which]

    def _word(self, which: int) -> int:
        return self._words + 8 * which

    def _count(self, which: int, calls: int) -> int:
        """The number of the first of so many more calls."""
        self._made[which] += calls
        return self._made[which] - calls + 1

    def _launch(self, name: str, blocks: int, threads: int, *parameters: Any) -> None:
        function = ctypes.c_void_p()
        check(self._driver, "cuModuleGetFunction", ctypes.byref(function), self._module, f"waywiser_{name}".encode())
        held = [each if isinstance(each, Parameter) else Parameter(each) for each in parameters]
        places = (ctypes.c_void_p * len(held))(*(ctypes.addressof(each) for each in held))
        shape = (*map(ctypes.c_uint, (blocks, 1, 1)), *map(ctypes.c_uint, (threads, 1, 1)))
        check(self._driver, "cuLaunchKernel", function, *shape, ctypes.c_uint(0), self._stream, places, None)
