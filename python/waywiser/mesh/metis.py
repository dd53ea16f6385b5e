"""METIS, if there is one: the package pymetis, or the system's libmetis."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from waywiser.errors import DeviceError
from waywiser.mesh.faces import Numbers

Cut = Callable[[Numbers, Numbers, int], Numbers]
_OPTIONS, _OK = 40, 1  # METIS_NOPTIONS, METIS_OK
_SEED_OPTION = 8  # METIS_OPTION_SEED
_SEED = 1


def find_metis() -> tuple[Cut | None, str]:
    """How to cut a graph (starts, neighbours, parts) with METIS, and its name; None and the reason if there is none."""
    try:
        from pymetis import CSRAdjacency, version  # older ones lack the first
    except ImportError:
        pass
    else:
        return partial(_by_pymetis, CSRAdjacency), f"METIS (pymetis {version})"
    name = ctypes.util.find_library("metis")
    if name is None:
        return None, "not installed: pymetis (pip install 'waywiser[mesh]') or libmetis (apt install libmetis5)"
    try:
        return LibMetis(ctypes.CDLL(name)).cut, f"METIS ({name})"
    except (OSError, AttributeError) as error:
        return None, f"{name}: {error}"


def _by_pymetis(graph: Any, starts: Numbers, neighbors: Numbers, parts: int) -> Numbers:
    import pymetis

    options = pymetis.Options(seed=_SEED)
    _, of_cell = pymetis.part_graph(parts, graph(starts, neighbors), recursive=False, options=options)
    return np.asarray(of_cell, np.int64)


class LibMetis:
    """The C library. The width of its integers is found by what METIS_SetDefaultOptions fills."""

    def __init__(self, library: Any) -> None:
        self._cut = library.METIS_PartGraphKway
        probe = np.zeros(_OPTIONS, np.int64)
        library.METIS_SetDefaultOptions(probe.ctypes.data_as(ctypes.c_void_p))
        self._integer = np.int64 if probe[-1] != 0 else np.int32
        self._options = probe.view(self._integer)[:_OPTIONS].copy()
        self._options[_SEED_OPTION] = _SEED

    def cut(self, starts: Numbers, neighbors: Numbers, parts: int) -> Numbers:
        """The part of each cell. Raises DeviceError if METIS fails."""
        of_cell = np.zeros(len(starts) - 1, self._integer)
        numbers = [np.array([each], self._integer) for each in (len(of_cell), 1, parts, 0)]
        arrays = [starts.astype(self._integer), neighbors.astype(self._integer)]

        def at(array: Any) -> Any:
            return array.ctypes.data_as(ctypes.c_void_p)

        nothing = ctypes.c_void_p(None)
        code = self._cut(
            at(numbers[0]), at(numbers[1]), at(arrays[0]), at(arrays[1]), nothing, nothing, nothing,
            at(numbers[2]), nothing, nothing, at(self._options), at(numbers[3]), at(of_cell),
        )  # fmt: skip
        if code != _OK:
            raise DeviceError(f"METIS_PartGraphKway returned {code}")
        return of_cell.astype(np.int64)
