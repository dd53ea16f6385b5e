"""Tables that are dicts of arrays of one length: NumPy's in host memory, PyTorch's there and on GPUs.

What NumPy and PyTorch have under one name is called by it; the rest is here, in two classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from waywiser.errors import InputError, InputTypeError

Columns = Mapping[str, Any]


class NumPyColumns:
    """numpy.ndarray."""

    name = "NumPy"
    is_on_gpu = False
    sends_runs = False  # from where they lie, as parts of one message

    def __init__(self, like: Any) -> None:
        import numpy

        self.np = numpy

    def words(self, array: Any) -> str:
        """The type of an element, where it lies."""
        return f"{array.dtype} in host memory"

    def is_key(self, array: Any) -> bool:
        return array.ndim == 1 and array.dtype.kind in "iub"

    def empty(self, like: Any, rows: int) -> Any:
        return self.np.empty((rows, *like.shape[1:]), like.dtype)

    def numbers(self, values: Any) -> Any:
        return self.np.asarray(values, self.np.int64)

    def arange(self, count: int) -> Any:
        return self.np.arange(count)

    def take(self, array: Any, rows: Any, into: Any = None) -> Any:
        return self.np.take(array, rows, axis=0, out=into)

    def in_one(self, arrays: Sequence[Any], into: Any = None) -> Any:
        return self.np.concatenate(arrays, out=into)

    def contiguous(self, array: Any) -> Any:
        return self.np.ascontiguousarray(array)

    def wide(self, key: Any) -> Any:
        """As int64, of which the bits above the key's are 0."""
        unsigned = key.astype(self.np.uint8) if key.dtype.kind == "b" else key.view(f"u{key.dtype.itemsize}")
        return unsigned.astype(self.np.uint64).view(self.np.int64)

    def sorted(self, keys: Any) -> tuple[Any, Any]:
        """The keys in order, and from which rows they are; stable."""
        order = self.np.argsort(keys, kind="stable")
        return keys[order], order

    def by_part(self, part_of: Any, parts: int) -> tuple[Any, list[int]]:
        """The rows by part, those of one in their order; how many each part has."""
        _, order = self.sorted(part_of.astype(self.np.uint16 if parts <= 1 << 16 else self.np.int64))
        return order, self.np.bincount(part_of, minlength=parts).tolist()

    def places(self, among: Any, keys: Any, *, behind: bool) -> Any:
        """Before which of the sorted keys `among` each key belongs; `behind`: behind those that equal it."""
        return self.np.searchsorted(among, keys, side="right" if behind else "left")

    def repeat(self, values: Any, counts: Any) -> Any:
        return self.np.repeat(values, counts)

    def running(self, counts: Any) -> Any:
        """The sum of all before each."""
        return self.np.cumsum(counts) - counts

    def chosen(self, mask: Any) -> Any:
        return self.np.flatnonzero(mask)

    def joined(self, tables: Sequence[Columns]) -> dict[str, Any]:
        """One behind the other."""
        if len(tables) == 1:
            return dict(tables[0])
        return {name: self.in_one([each[name] for each in tables]) for name in tables[0]}

    def to_host(self, array: Any) -> Any:
        return array

    def from_host(self, array: Any) -> Any:
        return array


class TorchColumns:
    """torch.Tensor, in host memory or on one GPU."""

    name = "PyTorch"

    def __init__(self, like: Any) -> None:
        import torch

        self.torch, self.device, self.is_on_gpu = torch, like.device, like.is_cuda
        self.sends_runs = like.is_cuda
        self._aside: Any = None  # a stream for copies to the host

    def words(self, array: Any) -> str:
        return f"{str(array.dtype).removeprefix('torch.')} {'on a GPU' if array.is_cuda else 'in host memory'}"

    def is_key(self, array: Any) -> bool:
        floats = array.dtype.is_floating_point or array.dtype.is_complex
        return array.ndim == 1 and not floats

    def empty(self, like: Any, rows: int) -> Any:
        return self.torch.empty((rows, *like.shape[1:]), dtype=like.dtype, device=self.device)

    def numbers(self, values: Any) -> Any:
        return self.torch.as_tensor(values, dtype=self.torch.int64).to(self.device)

    def arange(self, count: int) -> Any:
        return self.torch.arange(count, device=self.device)

    def take(self, array: Any, rows: Any, into: Any = None) -> Any:
        return self.torch.index_select(array.detach(), 0, rows, out=into)

    def in_one(self, arrays: Sequence[Any], into: Any = None) -> Any:
        return self.torch.cat(arrays, out=into)

    def contiguous(self, array: Any) -> Any:
        return array.detach().contiguous()

    def wide(self, key: Any) -> Any:
        bits = 8 * key.element_size()
        wide = key.to(self.torch.int64, copy=True)
        return wide if bits == 64 else wide & ((1 << bits) - 1)

    def sorted(self, keys: Any) -> tuple[Any, Any]:
        # No search among booleans is there.
        found = self.torch.sort(keys.to(self.torch.uint8) if keys.dtype == self.torch.bool else keys, stable=True)
        return found.values, found.indices

    def by_part(self, part_of: Any, parts: int) -> tuple[Any, list[int]]:
        # A radix sort of few bits is fast.
        narrow = self.torch.uint8 if parts <= 1 << 8 else self.torch.int16 if parts <= 1 << 15 else self.torch.int64
        ordered, order = self.sorted(part_of.to(narrow))
        ends = self.places(ordered.to(self.torch.int64), self.arange(parts), behind=True)
        return order, self.torch.diff(ends, prepend=ends.new_zeros(1)).tolist()

    def places(self, among: Any, keys: Any, *, behind: bool) -> Any:
        return self.torch.searchsorted(among, keys, right=behind)

    def repeat(self, values: Any, counts: Any) -> Any:
        return self.torch.repeat_interleave(values, counts)

    def running(self, counts: Any) -> Any:
        return self.torch.cumsum(counts, 0) - counts

    def chosen(self, mask: Any) -> Any:
        return mask.nonzero().reshape(-1)

    def joined(self, tables: Sequence[Columns]) -> dict[str, Any]:
        if len(tables) == 1:
            return dict(tables[0])
        return {name: self.in_one([each[name] for each in tables]) for name in tables[0]}

    def to_host(self, array: Any) -> Any:
        """A copy of an array of the GPU in page-locked memory, which `from_host` waits for; others stay."""
        if not array.is_cuda:
            return array
        if self._aside is None:
            self._aside = self.torch.cuda.Stream(self.device)
        self._aside.wait_stream(self.torch.cuda.current_stream(self.device))
        with self.torch.cuda.stream(self._aside):
            copy = self.torch.empty(array.shape, dtype=array.dtype, pin_memory=True)
            copy.copy_(array, non_blocking=True)
        array.record_stream(self._aside)
        return copy

    def from_host(self, array: Any) -> Any:
        """What `to_host` has copied, on the GPU again."""
        if array.device == self.device:
            return array
        if self._aside is not None:
            self.torch.cuda.current_stream(self.device).wait_stream(self._aside)
        return array.to(self.device, non_blocking=True)


Library = NumPyColumns | TorchColumns


def are_columns(frame: Any) -> bool:
    """Whether a table is a dict of arrays."""
    return isinstance(frame, Mapping)


def library_of(columns: Columns, name: str = "data") -> Library:
    """Of arrays that make a table. Raises InputError, InputTypeError."""
    arrays = list(columns.values())
    if not arrays or not all(isinstance(each, str) for each in columns):
        raise InputError(f"{name} has no columns, or others than of names")
    kinds = {type(each).__module__.split(".")[0] for each in arrays}
    if kinds == {"torch"}:
        library: Library = TorchColumns(arrays[0])
        if len({each.device for each in arrays}) > 1:
            raise InputError(f"{name} has columns in different memory")
    elif kinds == {"numpy"}:
        library = NumPyColumns(arrays[0])
    else:
        raise InputTypeError(f"{name} has columns of {', '.join(sorted(kinds))}, not of PyTorch alone or NumPy alone")
    if any(each.ndim < 1 for each in arrays) or len({len(each) for each in arrays}) > 1:
        raise InputError(f"{name} has columns of different lengths")
    return library


def rows_of(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def keys_of(library: Library, columns: Columns, on: Sequence[str], what: str = "on") -> list[Any]:
    """The columns of keys. Raises InputError for one that is not there, or is none of integers."""
    for name in on:
        if name not in columns:
            raise InputError(f"{what}= has {name!r}, of which the table has no column")
        if not library.is_key(columns[name]):
            raise InputError(f"the key {name!r} is {library.words(columns[name])}: keys of arrays are integers")
    return [columns[name] for name in on]


def named_types(library: Library, columns: Columns) -> list[tuple[str, str]]:
    """What all ranks must have alike."""
    found = []
    for name, array in columns.items():
        more = "" if array.ndim == 1 else f" {tuple(array.shape[1:])}"
        found.append((name, f"{library.words(array)}{more}, of {library.name}"))
    return found


def _signed(value: int) -> int:
    return value - (1 << 64)


_MULTIPLIERS = (_signed(0xFF51AFD7ED558CCD), _signed(0xC4CEB9FE1A85EC53))
_ADDED = _signed(0x9E3779B97F4A7C15)


def _spread(x: Any) -> Any:
    """In place: the hash of the core, whose words have no sign."""
    for multiplier in _MULTIPLIERS:
        x ^= (x >> 33) & 0x7FFFFFFF
        x *= multiplier
    x ^= (x >> 33) & 0x7FFFFFFF
    return x


def part_of_rows(library: Library, keys: Sequence[Any], parts: int) -> Any:
    """The part of each row, as `partition` has it for tables of pyarrow."""
    mixed = None
    for key in keys:
        one = _spread(library.wide(key))
        if mixed is not None:
            one += (mixed << 23) | ((mixed >> 41) & 0x7FFFFF)
        one += _ADDED
        mixed = _spread(one)
    assert mixed is not None
    mixed >>= 32
    mixed &= 0xFFFFFFFF
    mixed *= parts
    mixed >>= 32
    return mixed
