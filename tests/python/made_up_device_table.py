"""Tables in GPU memory by Arrow's C device interface alone, as cuDF's: made of GpuArrays, and read back."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_int32, c_int64, c_void_p
from typing import Any

import numpy
import pyarrow as pa

import waywiser

NEW, GET = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
NEW.restype, NEW.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
GET.restype, GET.argtypes = c_void_p, [ctypes.py_object, ctypes.c_char_p]
ARRAY, STREAM = b"arrow_device_array", b"arrow_device_array_stream"


class ArrowArray(Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, POINTER(ArrowArray))
ArrowArray._fields_ = [
    *((name, c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(ArrowArray))), ("dictionary", POINTER(ArrowArray)),
    ("release", RELEASE), ("private_data", c_void_p),
]  # fmt: skip


class ArrowDeviceArray(Structure):
    _fields_ = [
        ("array", ArrowArray), ("device_id", c_int64), ("device_type", c_int32), ("sync_event", c_void_p),
        ("reserved", c_int64 * 3),
    ]  # fmt: skip


class ArrowDeviceArrayStream(Structure):
    pass


CALL = ctypes.CFUNCTYPE(c_int32, POINTER(ArrowDeviceArrayStream), c_void_p)
ArrowDeviceArrayStream._fields_ = [
    ("device_type", c_int32), ("get_schema", CALL), ("get_next", CALL), ("get_last_error", c_void_p),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowDeviceArrayStream))), ("private_data", c_void_p),
]  # fmt: skip


class MadeUpTable:
    """Columns of numbers on one GPU. `released`: how often its consumers have let an export go."""

    def __init__(self, gpus: waywiser.Gpus, gpu: int, columns: dict[str, Any], device: int | None = None) -> None:
        self.columns = {name: gpus.array(values, gpu) for name, values in columns.items()}
        self.schema = pa.schema([(name, pa.from_numpy_dtype(each.dtype)) for name, each in self.columns.items()])
        self.device = gpu if device is None else device
        self.released = 0
        self._keep: list[Any] = []

    def __arrow_c_device_array__(self, requested_schema: object = None, **_: object) -> tuple[object, object]:
        def let_go(array: Any) -> None:
            self.released += 1
            array.contents.release = RELEASE(0)

        release, rows = RELEASE(let_go), next(iter(self.columns.values())).size
        children = []
        for each in self.columns.values():
            buffers = (c_void_p * 2)(None, each.__cuda_array_interface__["data"][0])
            children.append(ArrowArray(rows, 0, 0, 2, 0, buffers, None, None, release))
            self._keep += [buffers]
        pointers = (POINTER(ArrowArray) * len(children))(*map(ctypes.pointer, children))
        none = (c_void_p * 1)(None)
        whole = ArrowArray(rows, 0, 0, 1, len(children), none, pointers, None, release)
        device = ArrowDeviceArray(whole, self.device, 2, None)
        self._keep += [children, pointers, none, release, device]
        return self.schema.__arrow_c_schema__(), NEW(ctypes.addressof(device), ARRAY, None)


class Column:
    """Memory that another library's array describes."""

    def __init__(self, address: int, dtype: Any, rows: int) -> None:
        self.facts = {"data": (address, False), "shape": (rows,), "typestr": numpy.dtype(dtype).str, "version": 3}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.facts


def _host(group: waywiser.Group, gpus: waywiser.Gpus, gpu: int, device: Any, schema: Any) -> dict[str, Any]:
    assert (device.device_id, device.device_type, device.sync_event) == (gpu, 2, None)
    found = {}
    for i, field in enumerate(schema):
        child, dtype = device.array.children[i].contents, field.type.to_pandas_dtype()
        copy = gpus.empty(child.length, dtype, gpu)
        if child.length:
            group.sendrecv(Column(child.buffers[1], dtype, child.length), group.rank, copy, group.rank)  # type: ignore[arg-type]
        found[field.name] = copy.numpy()
    device.array.release(ctypes.pointer(device.array))
    return found


def read_array(group: waywiser.Group, gpus: waywiser.Gpus, gpu: int, table: Any) -> dict[str, Any]:
    """Takes the rows of `__arrow_c_device_array__`, copies them to the host, and lets them go."""
    schema, array = table.__arrow_c_device_array__()
    device = ctypes.cast(GET(array, ARRAY), POINTER(ArrowDeviceArray)).contents
    return _host(group, gpus, gpu, device, pa.Schema._import_from_c_capsule(schema))


def read_stream(group: waywiser.Group, gpus: waywiser.Gpus, gpu: int, table: Any) -> dict[str, Any]:
    """The same of `__arrow_c_device_stream__`, batch after batch."""
    capsule = table.__arrow_c_device_stream__()
    stream = ctypes.cast(GET(capsule, STREAM), POINTER(ArrowDeviceArrayStream))
    space = (ctypes.c_byte * 256)()
    assert stream.contents.get_schema(stream, ctypes.addressof(space)) == 0
    schema = pa.Schema._import_from_c(ctypes.addressof(space))
    batches = []
    while True:
        device = ArrowDeviceArray()
        assert stream.contents.get_next(stream, ctypes.addressof(device)) == 0
        if not device.array.release:
            break
        batches.append(_host(group, gpus, gpu, device, schema))
    stream.contents.release(stream)
    return {name: numpy.concatenate([each[name] for each in batches]) for name in schema.names}
