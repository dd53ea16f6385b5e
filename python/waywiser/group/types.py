"""The argument types of a group's calls: arrays by their protocols, streams, and words from closed sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Union

if TYPE_CHECKING:
    import numpy

    from waywiser.group.gpus import GpuStream


class DLPackArray(Protocol):
    """NumPy, PyTorch, CuPy, JAX and most others."""

    @property
    def __dlpack__(self) -> Callable[..., Any]: ...


class CudaArray(Protocol):
    """Numba, and other libraries with GPU memory."""

    @property
    def __cuda_array_interface__(self) -> Any: ...


class BufferArray(Protocol):
    """bytearray, memoryview, array.array."""

    @property
    def __buffer__(self) -> Callable[..., memoryview]: ...


# Any array, in host memory or in that of a GPU.
Array = Union[DLPackArray, CudaArray, BufferArray]  # noqa: UP007 - for Python 3.10

A = TypeVar("A", bound=Array)
B = TypeVar("B", bound=Array)


class TorchStream(Protocol):
    """torch.cuda.Stream."""

    @property
    def cuda_stream(self) -> int: ...


class CupyStream(Protocol):
    """cupy.cuda.Stream."""

    @property
    def ptr(self) -> int: ...


class CudaCoreStream(Protocol):
    """A stream of cuda.core, and of any library with its protocol."""

    @property
    def __cuda_stream__(self) -> Any: ...


# A CUDA stream as an integer or as an object of its library; None: the one that the arrays are used in now.
Stream = Union[int, "GpuStream", TorchStream, CupyStream, CudaCoreStream, None]

ReduceOp = Literal["sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor"]
OnFailure = Literal["trap", "raise", "abort"]

# The types of elements that a group can send. NumPy knows bfloat16 and float8 once ml_dtypes is imported.
ElementName = Literal[
    "float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
    "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "complex64", "complex128",
]  # fmt: skip
# The type of an array's elements: a name, `float`, `numpy.float32`; numpy.dtype(...) for any other.
ElementType = Union[ElementName, type[Any], "numpy.dtype[Any]"]
