"""GPUs and arrays in their memory: for programs without PyTorch or CuPy, for windows, and for tests without a GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from waywiser.errors import Error, InputError

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    from waywiser import _core
    from waywiser.group.types import ElementType

DLPACK_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6, "bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12}


class Gpus:
    """The GPUs that this process uses: cuda_gpus() or virtual_gpus()."""

    def __init__(self, core: _core.Gpus) -> None:
        self._core = core

    @property
    def backend(self) -> Literal["cuda", "virtual_gpu"]:
        """`cuda`, or `virtual_gpu`: host threads whose results are right and whose times mean nothing.

        Raises nothing.
        """
        return cast(Literal["cuda", "virtual_gpu"], self._core.backend)

    def __len__(self) -> int:
        return int(self._core.count)

    def empty(self, shape: int | Sequence[int], dtype: ElementType = float, gpu: int = 0) -> GpuArray:
        """An uninitialised array in GPU memory; `dtype` is anything that numpy.dtype accepts, except objects.

        Raises InputError for another `dtype`, UnavailableError for a GPU that does not exist, DeviceError if there is
        too little memory.
        """
        return GpuArray(self, (shape,) if isinstance(shape, int) else tuple(shape), dtype, gpu)

    def open_stream(self, gpu: int = 0) -> GpuStream:
        """A stream of a GPU. Raises UnavailableError for a GPU that does not exist, DeviceError."""
        return GpuStream(self, gpu)

    def array(self, values: numpy.typing.ArrayLike, gpu: int = 0) -> GpuArray:
        """A copy in GPU memory of a NumPy array, or of anything that numpy.asarray accepts: same shape and type.

        Raises as empty.
        """
        copied = _as_numpy(values, None)
        array = self.empty(copied.shape, copied.dtype, gpu)
        array.fill(copied)
        return array


class GpuStream:
    """Ordered work of one GPU, for `stream=` of a group's calls."""

    def __init__(self, gpus: Gpus, gpu: int) -> None:
        self._core = gpus._core.open_stream(gpu)

    @property
    def cuda_stream(self) -> int:
        """Its cudaStream_t as a number, for other libraries; 0 on a virtual GPU. Raises nothing."""
        return int(self._core.number)

    def copy(self, destination: GpuArray, source: GpuArray) -> None:
        """Enqueues a copy of the whole array. Raises InputError if the sizes in bytes differ, DeviceError."""
        if destination.nbytes != source.nbytes:
            raise InputError(f"{source.nbytes} bytes into {destination.nbytes}")
        self._core.copy(destination._memory, source._memory, source.nbytes)

    def synchronize(self, timeout: float = 60) -> None:
        """Waits until all enqueued work is done. Raises DeviceError if it fails, DeadlineError if it takes more than
        `timeout` seconds.
        """
        self._core.synchronize(timeout)


class GpuArray:
    """An array in the memory of one GPU, which the host cannot touch: `fill()` and `numpy()` copy.

    `torch.from_dlpack(array)` and `cupy.from_dlpack(array)` share its memory.
    """

    def __init__(
        self, gpus: Gpus, shape: tuple[int, ...], dtype: Any, gpu: int, memory: _core.GpuMemory | None = None
    ) -> None:
        self.gpus = gpus
        self.gpu = gpu
        self.shape = shape
        self.dtype = _checked_type(dtype)
        self._memory = gpus._core.allocate(gpu, self.nbytes) if memory is None else memory

    @property
    def size(self) -> int:
        """The number of elements. Raises nothing."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes. Raises nothing."""
        return self.size * self.dtype.itemsize

    def fill(self, values: numpy.typing.ArrayLike) -> None:
        """Copies values from the host, broadcast to the array's shape by NumPy's rules. Raises InputError if they
        cannot be broadcast, DeviceError.
        """
        import numpy

        given = _as_numpy(values, self.dtype)
        try:
            spread = numpy.broadcast_to(given, self.shape)
        except ValueError:
            raise InputError(f"values of shape {given.shape} cannot fill an array of shape {self.shape}") from None
        self._memory.write(_as_bytes(numpy.ascontiguousarray(spread)))

    def numpy(self) -> numpy.ndarray[Any, Any]:
        """A copy on the host, of the same shape and type. Raises DeviceError."""
        import numpy

        values = numpy.empty(self.shape, self.dtype)
        self._memory.read(_as_bytes(values))
        return values

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        data = (self._memory.address, False)
        return {"shape": self.shape, "typestr": self.dtype.str, "data": data, "strides": None, "version": 3}

    def __dlpack__(self, **options: Any) -> Any:
        code = DLPACK_CODES.get(self.dtype.name, DLPACK_CODES.get(self.dtype.kind))
        if code is None:
            raise InputError(f"DLPack has no type for {self.dtype}")
        view: Any = self._memory.view(list(self.shape), code, 8 * self.dtype.itemsize)
        return view.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self._memory.device)

    def __repr__(self) -> str:
        return f"<waywiser.GpuArray: {self.shape} of {self.dtype} on gpu{self.gpu} ({self.gpus.backend})>"


def _checked_type(dtype: Any) -> numpy.dtype[Any]:
    import numpy

    try:
        checked: numpy.dtype[Any] = numpy.dtype(dtype)
    except (TypeError, ValueError):
        raise InputError(f"dtype is what numpy.dtype takes, not {dtype!r:.60}") from None
    if checked.hasobject:
        raise InputError("dtype is a type of numbers: a GPU has no Python objects")
    return checked


def _as_numpy(values: Any, dtype: numpy.dtype[Any] | None) -> numpy.ndarray[Any, Any]:
    import numpy

    try:
        return numpy.asarray(values, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        wanted = "numbers" if dtype is None else str(dtype)
        raise InputError(f"values that are no array of {wanted}: {' '.join(str(error).split())}") from None


def _as_bytes(values: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """The bytes of a contiguous array of any type."""
    import numpy

    return values.reshape(-1).view(numpy.uint8)


def cuda_gpus() -> Gpus:
    """The machine's GPUs, in the order of their PCI addresses. Raises UnavailableError with the reason if there are
    none, DeviceError.
    """
    from waywiser import _core

    return Gpus(_core.open_cuda_gpus())


def virtual_gpus(count: int, memory: int = 1 << 30, delay: float = 0) -> Gpus:
    """GPUs made of host threads, for tests: as strict as real ones about memory access.

    Each has `memory` bytes; work in a stream completes `delay` seconds after it is enqueued. Raises InputError for an
    impossible number.
    """
    from waywiser import _core

    return Gpus(_core.open_virtual_gpus(count, memory, delay))


def find_gpus(virtual: int = 1) -> Gpus:
    """cuda_gpus(), or this many virtual ones if there are none: `backend` says which. Raises as virtual_gpus."""
    try:
        return cuda_gpus()
    except Error:
        return virtual_gpus(virtual)
