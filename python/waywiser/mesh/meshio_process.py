"""Reads a mesh file by meshio in a process of its own, within limits: meshio_process.py FILE DESCRIPTOR BYTES SECONDS.

The descriptor gets arrays in NumPy's format: the kinds of the blocks, the points, then of each block its corners and
the marks of its ghost cells. Standard error gets one line if that fails. Imports nothing of this package.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

LONGEST = 200  # letters of the reason
OUT_OF_MEMORY = 3  # exit code
_HDF5 = b"\x89HDF\r\n\x1a\n"


def limit(most_bytes: int, seconds: int) -> None:
    """Ends this process by SIGXCPU after so much time of a CPU, by SIGALRM after three times as much in all."""
    limits = {"AS": most_bytes, "FSIZE": most_bytes, "CPU": seconds, "CORE": 0}
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (most, hard))
    signal.alarm(3 * seconds)


def open_nothing_else(file: str) -> None:
    """Python opens the file and its own modules from now on: a mesh file may name others."""
    own = [os.path.realpath(folder) + os.sep for folder in sys.path if folder]
    own = [folder for folder in own if not file.startswith(folder)]

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if path != file and not path.startswith(tuple(own)):
                raise PermissionError(f"it names another file, {path}: a mesh is one file")

    sys.addaudithook(check)


def check_hdf5(file: str) -> None:
    """HDF5 can take data from other files, without Python."""
    with open(file, "rb") as opened:
        if opened.read(len(_HDF5)) != _HDF5:
            return
    import h5py

    def elsewhere(name: str, item: Any) -> str | None:
        if isinstance(item, h5py.Dataset):
            return name if item.external or item.is_virtual else None
        links = [each for each in item if isinstance(item.get(each, getlink=True), h5py.ExternalLink)]
        return f"{name}/{links[0]}" if links else None

    with h5py.File(file, "r") as whole:
        found = elsewhere("", whole) or whole.visititems(elsewhere)
    if found is not None:
        raise PermissionError(f"its {found} is in another file: a mesh is one file")


def hand_over(found: Any, descriptor: int) -> None:
    """What the package takes of a mesh."""
    import numpy

    marks = (found.cell_data or {}).get("vtkGhostType") or [()] * len(found.cells)
    with os.fdopen(descriptor, "wb") as out:

        def put(values: Any, kind: Any = None) -> None:
            numpy.save(out, numpy.ascontiguousarray(values, kind), allow_pickle=False)

        put([str(block.type) for block in found.cells], numpy.str_)
        put(found.points, numpy.float64)
        for block, marked in zip(found.cells, marks, strict=True):
            is_plain = isinstance(block.data, numpy.ndarray) and block.data.dtype.kind in "iu"  # not of polyhedra
            put(block.data if is_plain else numpy.zeros((len(block.data), 0), numpy.int64))
            put(marked, numpy.int64)


def main() -> int:
    """The exit code."""
    file, descriptor, most_bytes, seconds = sys.argv[1], *map(int, sys.argv[2:])
    said = os.fdopen(os.dup(2), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    here = os.path.dirname(os.path.realpath(__file__))  # its modules are none of meshio's
    sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder) != here]
    limit(most_bytes, seconds)
    told = StringIO()
    try:
        with redirect_stdout(told), redirect_stderr(told):
            import meshio

            check_hdf5(file)
            open_nothing_else(file)
            hand_over(meshio.read(file), descriptor)
    except MemoryError:
        return OUT_OF_MEMORY
    except (Exception, SystemExit) as error:  # a reader of a foreign format raises anything
        words = " ".join(f"{error} {told.getvalue()[:LONGEST]}".split())
        print(words[:LONGEST] or type(error).__name__, file=said, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main())
