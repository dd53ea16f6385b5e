"""Queries that need a driver library, each in its own process: `python -m waywiser.look.probe cuda`.

Each query prints one JSON object. It allocates nothing on a GPU and changes nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
from typing import Any

from waywiser.look.answers import give_answer
from waywiser.look.socket_bytes import sockets

_MOST_GPUS = 64
_ATTRIBUTES = {
    "dma_buf": 124,
    "rdma": 116,
    "flush_options": 117,
    "writes_ordering": 118,
    "posix_handles": 103,
    "fabric_handles": 128,
}


def cuda() -> dict[str, Any]:
    """Attributes of each GPU, and which GPU can reach which."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return {"error": str(error)}
    code = driver.cuInit(0)
    if code:
        return {"error": f"cuInit gives CUDA error {code}", "code": code}
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    numbers = range(min(count.value, _MOST_GPUS))
    value = ctypes.c_int()

    def asked(call: Any, *arguments: int) -> int | None:
        return value.value if call(ctypes.byref(value), *arguments) == 0 else None

    gpus: list[dict[str, Any]] = [
        {name: asked(driver.cuDeviceGetAttribute, number, one) for name, number in _ATTRIBUTES.items()}
        for one in numbers
    ]
    for one, attributes in enumerate(gpus):
        attributes["bus_id"] = _bus_id(driver, one)
    peers = [
        [one == other or bool(asked(driver.cuDeviceCanAccessPeer, one, other)) for other in numbers] for one in numbers
    ]
    return {"gpus": gpus, "peers": peers}


def _bus_id(driver: Any, number: int) -> str | None:
    """The bus address of CUDA's GPU `number`."""
    text = ctypes.create_string_buffer(32)
    return text.value.decode("ascii", "replace") if driver.cuDeviceGetPCIBusId(text, 32, number) == 0 else None


def verbs() -> dict[str, Any]:
    """For each RDMA device: whether it can register a dma-buf (asked with a bad descriptor: EBADF means yes)."""
    try:
        library = ctypes.CDLL("libibverbs.so.1", use_errno=True)
    except OSError as error:
        return {"error": str(error)}
    if not hasattr(library, "ibv_reg_dmabuf_mr"):
        return {"error": "libibverbs.so.1 is too old for dma-buf (rdma-core before 34)"}
    pointer = ctypes.c_void_p
    for name in ("ibv_open_device", "ibv_alloc_pd", "ibv_reg_dmabuf_mr"):
        getattr(library, name).restype = pointer
    library.ibv_get_device_list.restype = ctypes.POINTER(pointer)
    library.ibv_get_device_name.restype = ctypes.c_char_p
    count = ctypes.c_int()
    found = library.ibv_get_device_list(ctypes.byref(count))
    if not found:
        return {"error": "ibv_get_device_list finds no RDMA devices"}
    return {"devices": dict(_dmabuf(library, found[index]) for index in range(count.value))}


def _dmabuf(library: Any, device: int) -> tuple[str, str]:
    pointer, size = ctypes.c_void_p, ctypes.c_uint64
    name = library.ibv_get_device_name(pointer(device)).decode("ascii", "replace")
    context = library.ibv_open_device(pointer(device))
    if not context:
        return name, "cannot be opened"
    domain = library.ibv_alloc_pd(pointer(context))
    answer = "no protection domain"
    if domain:
        ctypes.set_errno(0)
        library.ibv_reg_dmabuf_mr(pointer(domain), size(0), ctypes.c_size_t(4096), size(0), -1, 0)
        code = ctypes.get_errno()
        answer = "yes" if code == errno.EBADF else errno.errorcode.get(code, str(code))
        library.ibv_dealloc_pd(pointer(domain))
    library.ibv_close_device(pointer(context))
    return name, answer


class _Field(ctypes.Structure):
    """nvmlFieldValue_t."""

    _fields_ = (
        ("field", ctypes.c_uint), ("scope", ctypes.c_uint), ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong), ("kind", ctypes.c_int), ("result", ctypes.c_int), ("value", ctypes.c_uint64),
    )  # fmt: skip


_PCIE_SENT, _PCIE_RECEIVED = 197, 198  # NVML_FI_DEV_PCIE_COUNT_TX_BYTES, _RX_BYTES
_UNSIGNED_INT = 1  # NVML_VALUE_TYPE_UNSIGNED_INT: the other types use all 8 bytes


def nvml() -> dict[str, Any]:
    """For each GPU the bytes that its PCIe link has moved; null if the driver does not count them."""
    try:
        library = ctypes.CDLL(os.environ.get("WAYWISER_LIBNVML") or "libnvidia-ml.so.1")
    except OSError as error:
        return {"error": str(error)}
    code = library.nvmlInit_v2()
    if code:
        return {"error": f"nvmlInit gives NVML error {code}"}
    count = ctypes.c_uint()
    library.nvmlDeviceGetCount_v2(ctypes.byref(count))
    return {"pcie": [_pcie_bytes(library, number) for number in range(min(count.value, _MOST_GPUS))]}


def _pcie_bytes(library: Any, number: int) -> dict[str, int] | None:
    handle, fields = ctypes.c_void_p(), (_Field * 2)(_Field(_PCIE_SENT), _Field(_PCIE_RECEIVED))
    if library.nvmlDeviceGetHandleByIndex_v2(number, ctypes.byref(handle)):
        return None
    if library.nvmlDeviceGetFieldValues(handle, 2, fields) or any(field.result for field in fields):
        return None
    sent, received = (field.value & 0xFFFFFFFF if field.kind == _UNSIGNED_INT else field.value for field in fields)
    return {"sent": sent, "received": received}


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def cma() -> dict[str, Any]:
    """Whether a process may read a sibling's memory: a child tries to read from this one, its parent."""
    page = ctypes.create_string_buffer(b"waywiser", 8)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with contextlib.suppress(BaseException):
            os.write(writing, str(_read_parent(ctypes.addressof(page))).encode())
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 16)
    os.waitpid(child, 0)
    code = int(answer or b"-1")
    return {"allowed": code == 0, "error": "" if code == 0 else errno.errorcode.get(code, str(code))}


def _read_parent(address: int) -> int:
    """0, or the errno of process_vm_readv."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = ctypes.create_string_buffer(8)
    local, remote = _Piece(ctypes.addressof(here), 8), _Piece(address, 8)
    count = libc.process_vm_readv(os.getppid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return 0 if count == 8 and here.raw == b"waywiser" else ctypes.get_errno() or errno.EIO


_IO_URING_SETUP = 425  # on every architecture


def storage() -> dict[str, Any]:
    """Why this process gets no io_uring, why the current folder has no direct access; empty: it has."""
    libc = ctypes.CDLL(None, use_errno=True)
    parameters = ctypes.create_string_buffer(120)  # io_uring_params
    ring = libc.syscall(_IO_URING_SETUP, 1, parameters)
    why = "" if ring >= 0 else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))
    if ring >= 0:
        os.close(ring)
    try:
        os.close(os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_DIRECT, 0o600))
    except OSError as error:
        return {"io_uring": why, "direct": errno.errorcode.get(error.errno or 0, str(error.errno))}
    return {"io_uring": why, "direct": ""}


_PROBES = {"cuda": cuda, "verbs": verbs, "cma": cma, "nvml": nvml, "storage": storage, "sockets": sockets}

if __name__ == "__main__":
    give_answer(_PROBES[sys.argv[1]]())
