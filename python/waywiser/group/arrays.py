"""Arrays of NumPy, PyTorch, CuPy and this package: makes an array like another one, and finds the stream in use.

No library is imported here: an array exists only if its program has imported its library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

from waywiser.errors import InputError, InputTypeError
from waywiser.group.gpus import GpuArray, GpuStream
from waywiser.group.types import Stream

if TYPE_CHECKING:
    import numpy


Memory = tuple[Any, ...]  # two arrays with equal ones are the same to a call


class Library:
    """What a group needs to know about a library of arrays. This class serves arrays that only have the protocols."""

    def empty(self, like: Any, shape: Sequence[int] | None, stream: Any) -> Any:
        """A new array in the same memory, of the same type, and of the same shape unless `shape` is given."""
        raise InputTypeError(f"give out= as well: for a {type(like).__name__} it is not made")

    def stream(self, array: Any) -> int | None:
        """The stream in which `array` is in use; None for host memory, and if unknown."""
        interface = getattr(array, "__cuda_array_interface__", None)
        stream = interface.get("stream") if isinstance(interface, dict) else None
        return None if stream is None else int(stream)

    def memory(self, array: Any) -> Memory | None:
        """Address, shape, type and all else that decides how a call takes `array`; None if it does not tell."""
        told = getattr(array, "__cuda_array_interface__", None)
        if not isinstance(told, dict):
            return None
        return told["data"], told["shape"], told["typestr"], told.get("strides"), told.get("stream")

    def on_host(self, array: Any, index: Any) -> numpy.ndarray[Any, Any]:
        """`array[index]` as an array of NumPy."""
        import numpy

        values: numpy.ndarray[Any, Any] = numpy.asarray(array)[index]
        return values


class NumPy(Library):
    """numpy.ndarray."""

    def empty(self, like: Any, shape: Sequence[int] | None, stream: Any) -> Any:
        import numpy

        return numpy.empty(like.shape if shape is None else tuple(shape), like.dtype)

    def stream(self, array: Any) -> int | None:
        return None

    def memory(self, array: Any) -> Memory | None:
        return array.__array_interface__["data"], array.shape, array.dtype, array.strides

    def on_host(self, array: Any, index: Any) -> numpy.ndarray[Any, Any]:
        values: numpy.ndarray[Any, Any] = array[index]
        return values


class PyTorch(Library):
    """torch.Tensor on the host or on a GPU."""

    def empty(self, like: Any, shape: Sequence[int] | None, stream: Any) -> Any:
        import torch

        shape = like.shape if shape is None else tuple(shape)
        if not like.is_cuda or not isinstance(stream, int) or stream == self.stream(like):
            return torch.empty(shape, dtype=like.dtype, device=like.device)
        # Memory of the stream that fills it: PyTorch may reuse what its own current stream has let go of.
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=like.device)):
            return torch.empty(shape, dtype=like.dtype, device=like.device)

    def stream(self, array: Any) -> int | None:
        if not array.is_cuda:
            return None
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream)

    def memory(self, array: Any) -> Memory | None:
        lazy = (array.requires_grad, array.is_conj(), array.is_neg())
        return array.data_ptr(), array.shape, array.dtype, array.stride(), array.device, *lazy

    def on_host(self, array: Any, index: Any) -> numpy.ndarray[Any, Any]:
        values: numpy.ndarray[Any, Any] = array.detach()[index].cpu().numpy()
        return values


class CuPy(Library):
    """cupy.ndarray."""

    def empty(self, like: Any, shape: Sequence[int] | None, stream: Any) -> Any:
        import cupy

        with like.device:
            return cupy.empty(like.shape if shape is None else tuple(shape), like.dtype)

    def stream(self, array: Any) -> int | None:
        return int(sys.modules["cupy"].cuda.get_current_stream(array.device.id).ptr)

    def memory(self, array: Any) -> Memory | None:
        return array.data.ptr, array.shape, array.dtype, array.strides

    def on_host(self, array: Any, index: Any) -> numpy.ndarray[Any, Any]:
        values: numpy.ndarray[Any, Any] = array[index].get()
        return values


class Ours(Library):
    """waywiser.GpuArray: complete between two calls."""

    def empty(self, like: Any, shape: Sequence[int] | None, stream: Any) -> Any:
        return like.gpus.empty(like.shape if shape is None else shape, like.dtype, like.gpu)

    def stream(self, array: Any) -> int | None:
        return None

    def on_host(self, array: Any, index: Any) -> numpy.ndarray[Any, Any]:
        values: numpy.ndarray[Any, Any] = array.numpy()[index]
        return values


_BY_NAME: dict[str, Library] = {"numpy.ndarray": NumPy(), "torch.Tensor": PyTorch(), "cupy.ndarray": CuPy()}
_BY_TYPE: dict[type, Library] = {GpuArray: Ours()}
_ANY = Library()


def library_of(array: Any) -> Library:
    """The library that an array belongs to; arrays of derived types belong to that of their base."""
    kind = type(array)
    known = _BY_TYPE.get(kind)
    if known is None:
        names = (f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in kind.__mro__)
        known = next((_BY_NAME[name] for name in names if name in _BY_NAME), _ANY)
        _BY_TYPE[kind] = known
    return known


def stream_number(stream: Any) -> int:
    """The CUDA stream of an integer, of a torch.cuda.Stream, a cupy.cuda.Stream or a cuda.core stream."""
    if isinstance(stream, int):
        return stream
    for name in ("cuda_stream", "ptr"):
        number = getattr(stream, name, None)
        if isinstance(number, int):
            return number
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return int((protocol() if callable(protocol) else protocol)[1])
    raise InputTypeError(
        f"a stream is an integer or an object of PyTorch, CuPy or cuda.core, not a {type(stream).__name__}"
    )


def stream_for(stream: Stream, *arrays: Any) -> Any:
    """The stream of a call, as the core expects it: the given one, else the stream in which the arrays are in use."""
    if stream is not None:
        return stream._core if isinstance(stream, GpuStream) else stream_number(stream)
    for array in arrays:
        number = None if array is None else library_of(array).stream(array)
        if number is not None:
            return number
    return None


def made(data: Any, shape: tuple[int, ...] | None, stream: Any) -> Any:
    """A new array like `data`, with another shape unless that is None, which `stream` will fill."""
    return library_of(data).empty(data, shape, stream)


def whole_numbers(name: str, values: Sequence[int]) -> list[int]:
    """The number of elements of each rank."""
    try:
        numbers = [index(value) for value in values]
    except TypeError:
        raise InputTypeError(f"{name}= are whole numbers, one of each rank") from None
    if numbers and min(numbers) < 0:
        raise InputError(f"{name}= has {min(numbers)}: a number of elements is not below 0")
    return numbers


def all_blocks(data: Any, size: int, counts: Sequence[int] | None) -> tuple[int, ...]:
    """The shape of all ranks' arrays together."""
    return (sum(counts),) if counts is not None else (size, *getattr(data, "shape", ()))


def one_block(data: Any, size: int) -> tuple[int, ...]:
    """The shape of one rank's part of `data`."""
    first, *rest = getattr(data, "shape", (0,)) or (0,)
    if first % size:
        raise InputTypeError(f"give out= as well: {first} rows cannot be shared out to {size} ranks")
    return (first // size, *rest)
