"""libhwloc, opened at run time: exports this machine and synthetic descriptions as hwloc XML."""

from __future__ import annotations

import ctypes
import re

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.hwloc_reader import read_hwloc

_LIBRARY = "libhwloc.so.15"
_KEEP_IMPORTANT = 3
_MOST_OBJECTS = 65536
_SYNTHETIC = re.compile(r"[A-Za-z0-9 :\[\]()=._+-]{1,1024}")
_LEVEL = re.compile(r"[A-Za-z][A-Za-z0-9]*:(\d{1,9})")


def looks_synthetic(text: str) -> bool:
    """Whether the text may be a description such as "pack:2 [numa] core:8 pu:2"."""
    return bool(_SYNTHETIC.fullmatch(text.strip())) and bool(_LEVEL.search(text))


def read_synthetic(description: str) -> _core.Topology:
    """The machine of an hwloc synthetic description. Raises InputError with one line."""
    text = description.strip()
    if not looks_synthetic(text):
        raise InputError(f"{text[:60]!r} is not an hwloc synthetic description such as 'pack:2 [numa] core:8 pu:2'")
    objects = 1
    for count in _LEVEL.findall(text):
        objects *= int(count)
        if objects > _MOST_OBJECTS or objects == 0:
            raise InputError(f"{text[:60]!r}: describes no CPUs, or more than {_MOST_OBJECTS}")
    return read_hwloc(_export(text), f"hwloc of {text!r}", "synthetic")


def read_live() -> _core.Topology:
    """This machine according to hwloc. Raises InputError if hwloc is missing or fails."""
    return read_hwloc(_export(None), "hwloc", "discovered")


def _open() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise InputError(f"hwloc cannot be opened: {error}; install it (Debian: apt install libhwloc15)") from None
    library.hwloc_topology_init.argtypes = [ctypes.POINTER(ctypes.c_void_p)]
    library.hwloc_topology_set_synthetic.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    library.hwloc_topology_set_io_types_filter.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.hwloc_topology_load.argtypes = [ctypes.c_void_p]
    library.hwloc_topology_export_xmlbuffer.argtypes = [
        ctypes.c_void_p,
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_int),
        ctypes.c_ulong,
    ]
    library.hwloc_free_xmlbuffer.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.hwloc_topology_destroy.argtypes = [ctypes.c_void_p]
    return library


def _export(synthetic: str | None) -> str:
    library = _open()
    topology = ctypes.c_void_p()
    if library.hwloc_topology_init(ctypes.byref(topology)) != 0:
        raise InputError("hwloc does not start")
    try:
        if synthetic is not None and library.hwloc_topology_set_synthetic(topology, synthetic.encode("ascii")) != 0:
            raise InputError(f"hwloc does not understand {synthetic[:60]!r}")
        library.hwloc_topology_set_io_types_filter(topology, _KEEP_IMPORTANT)
        if library.hwloc_topology_load(topology) != 0:
            raise InputError("hwloc cannot load " + ("this machine" if synthetic is None else repr(synthetic[:60])))
        return _xml(library, topology)
    finally:
        library.hwloc_topology_destroy(topology)


def _xml(library: ctypes.CDLL, topology: ctypes.c_void_p) -> str:
    buffer, length = ctypes.c_void_p(), ctypes.c_int()
    answer = library.hwloc_topology_export_xmlbuffer(topology, ctypes.byref(buffer), ctypes.byref(length), 0)
    if answer != 0 or not buffer.value:
        raise InputError("hwloc cannot write its XML")
    try:
        return ctypes.string_at(buffer.value, max(0, length.value - 1)).decode("utf-8", errors="replace")
    finally:
        library.hwloc_free_xmlbuffer(topology, buffer)
