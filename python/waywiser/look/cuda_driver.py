"""Calls of the CUDA driver, opened at run time."""

from __future__ import annotations

import ctypes
import os
from typing import Any

_DRIVER = "libcuda.so.1"


class CudaError(RuntimeError):
    """The driver is missing or a call has failed; the message is one line."""


def driver() -> Any:
    """The initialised driver library: WAYWISER_LIBCUDA, else the loader's. Raises CudaError."""
    try:
        library = ctypes.CDLL(os.environ.get("WAYWISER_LIBCUDA") or _DRIVER)
    except OSError as error:
        raise CudaError(f"no NVIDIA driver: {error}") from error
    check(library, "cuInit", 0)
    return library


def check(library: Any, function: str, *arguments: Any) -> None:
    """Calls a function of the driver. Raises CudaError with the driver's message."""
    code = getattr(library, function)(*arguments)
    if code:
        text = ctypes.c_char_p()
        library.cuGetErrorString(code, ctypes.byref(text))
        raise CudaError(f"{function}: {(text.value or b'CUDA error ' + str(code).encode()).decode(errors='replace')}")


def gpu_count() -> int:
    """The number of GPUs that the driver shows. Raises CudaError."""
    number = ctypes.c_int()
    check(driver(), "cuDeviceGetCount", ctypes.byref(number))
    return number.value
