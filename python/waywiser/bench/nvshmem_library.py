"""Finds libnvshmem_host and declares its functions."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from waywiser.look.installed_libraries import installed
from waywiser.look.nccl_library import Found, look_for
from waywiser.look.root import Root

_P, _N, _I, _U = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint64
_NUMBER = ctypes.POINTER(ctypes.c_int)

# Name -> result, arguments; from host/nvshmem_api.h, nvshmemx_api.h and nvshmemx_coll_api.h.
SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "nvshmemx_get_uniqueid": (_I, (_P,)),
    "nvshmemx_set_attr_uniqueid_args": (_I, (_I, _I, _P, _P)),
    "nvshmemx_hostlib_init_attr": (_I, (ctypes.c_uint, _P)),
    "nvshmemx_vendor_get_version_info": (None, (_NUMBER, _NUMBER, _NUMBER)),
    "nvshmem_malloc": (_P, (_N,)),
    "nvshmem_calloc": (_P, (_N, _N)),
    "nvshmem_free": (None, (_P,)),
    "nvshmemx_barrier_all_on_stream": (None, (_P,)),
    "nvshmemx_broadcastmem_on_stream": (_I, (_I, _P, _P, _N, _I, _P)),
    "nvshmemx_float_sum_reduce_on_stream": (_I, (_I, _P, _P, _N, _P)),
    "nvshmemx_float_sum_reducescatter_on_stream": (_I, (_I, _P, _P, _N, _P)),
    "nvshmemx_fcollectmem_on_stream": (_I, (_I, _P, _P, _N, _P)),
    "nvshmemx_alltoallmem_on_stream": (_I, (_I, _P, _P, _N, _P)),
    "nvshmemx_putmem_on_stream": (None, (_P, _P, _N, _I, _P)),
    "nvshmemx_putmem_signal_on_stream": (None, (_P, _P, _N, _P, _U, _I, _I, _P)),
    "nvshmemx_signal_op_on_stream": (None, (_P, _U, _I, _I, _P)),
    "nvshmemx_signal_wait_until_on_stream": (None, (_P, _I, _U, _P)),
}


class UniqueId(ctypes.Structure):
    """nvshmemx_uniqueid_v1."""

    _fields_ = (("version", ctypes.c_int), ("internal", ctypes.c_char * 124))


class _UniqueIdArguments(ctypes.Structure):
    _fields_ = (("version", ctypes.c_int), ("id", _P), ("rank", ctypes.c_int), ("size", ctypes.c_int))


class _InitArguments(ctypes.Structure):
    _fields_ = (("version", ctypes.c_int), ("unique_id", _UniqueIdArguments), ("content", ctypes.c_char * 96))


class InitAttributes(ctypes.Structure):
    """nvshmemx_init_attr_v1."""

    _fields_ = (("version", ctypes.c_int), ("mpi_comm", _P), ("arguments", _InitArguments))


def _version_1(structure: Any) -> int:
    return (1 << 16) + ctypes.sizeof(structure)


def unique_id() -> UniqueId:
    """As NVSHMEMX_UNIQUEID_INITIALIZER."""
    return UniqueId(_version_1(UniqueId))


def init_attributes() -> InitAttributes:
    """As NVSHMEMX_INIT_ATTR_INITIALIZER."""
    told = InitAttributes(_version_1(InitAttributes))
    told.arguments.version = _version_1(_InitArguments)
    told.arguments.unique_id = _UniqueIdArguments(_version_1(_UniqueIdArguments), None, -1, -1)
    return told


def find_libnvshmem() -> str:
    """WAYWISER_LIBNVSHMEM, else the first copy in LD_LIBRARY_PATH, the system and wheels, else the loader's."""
    named = os.environ.get("WAYWISER_LIBNVSHMEM")
    return named or next(iter(installed(Root(), "libnvshmem_host")), "libnvshmem_host.so.3")


def open_libnvshmem() -> Any:
    """The library with the signatures of the called functions. Raises OSError with a line that says what is missing."""
    name = find_libnvshmem()
    library = ctypes.CDLL(name)
    for function, (result, arguments) in SIGNATURES.items():
        try:
            called = getattr(library, function)
        except AttributeError as error:
            raise OSError(f"{name} has no {function}") from error
        called.restype, called.argtypes = result, arguments
    return library


def look_for_nvshmem() -> Found:
    return look_for(__name__, open_libnvshmem.__name__)
