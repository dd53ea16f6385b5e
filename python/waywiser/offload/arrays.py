"""Arrays on a GPU of another machine."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError

if TYPE_CHECKING:
    import numpy

    from waywiser.offload.owner import Owner

_LARGE = 64 << 20  # bytes


class RemoteArray:
    """An array on a remote GPU. `numpy.asarray` and libraries that take DLPack get it; it is freed when nothing refers
    to it any more.

    `shape` and `dtype`: None for a result of `run` that was not got yet.
    """

    def __init__(
        self, gpu: Owner, number: int, shape: tuple[int, ...] | None = None, dtype: numpy.dtype[Any] | None = None
    ) -> None:
        self._gpu, self._number = gpu, number
        self.shape, self.dtype = shape, dtype

    def get(self, out: numpy.ndarray[Any, Any] | None = None) -> numpy.ndarray[Any, Any]:
        """A copy on the host, after all earlier requests: a new array, or `out`, which has this array's shape and
        type and is contiguous. Raises as synchronize, and InputError for another `out`.
        """
        return self._get(0, out)

    def _get(self, stream: int, out: numpy.ndarray[Any, Any] | None = None) -> numpy.ndarray[Any, Any]:
        if out is not None and self.shape is not None and (out.shape, out.dtype) != (self.shape, self.dtype):
            raise InputError(f"{self.shape} of {self.dtype} for room of {out.shape} of {out.dtype}")
        nbytes = _LARGE  # a result whose size is not known yet
        if self.shape is not None and self.dtype is not None:
            nbytes = math.prod(self.shape) * self.dtype.itemsize
        values = self._gpu._get(self._number, nbytes, stream, out)
        self.shape, self.dtype = values.shape, values.dtype
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        if copy is False:
            raise InputError("an array of a remote GPU is always copied")
        values = self.get()
        return values if dtype is None else values.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return self.get().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # what get() returns is in host memory

    def __del__(self) -> None:
        self._gpu._freed.append(self._number)  # told before the next request: this may be any thread

    def __repr__(self) -> str:
        return f"<waywiser.RemoteArray: {self.shape} of {self.dtype} on {self._gpu.name}>"


def checked_type(dtype: Any) -> numpy.dtype[Any]:
    """A type of numbers that travels, in this machine's byte order. Raises InputError."""
    import numpy

    try:
        checked: numpy.dtype[Any] = numpy.dtype(dtype).newbyteorder("=")
    except TypeError:
        raise InputError(f"{dtype!r:.60} is no type of numbers") from None
    if checked.kind not in "biufc" or checked.itemsize > 8 * (2 if checked.kind == "c" else 1):
        raise InputError(f"{checked} is no type of numbers that travels to a GPU")
    return checked


def number(name: str, value: Any) -> float:
    """The number that a function is given by name. Raises InputError."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} is a number, not {value!r:.60}") from None
