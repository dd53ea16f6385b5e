"""Reads a mesh file by meshio in a process of its own, within limits: meshio_process.py FILE DESCRIPTOR BYTES SECONDS.

The descriptor gets arrays in NumPy's format: the kinds of the blocks, the points, then of each block its corners and
the marks of its ghost cells; then names of groups and of each its cells as (block, row), and names of side sets and of
each its sides as (element, side), from 1. Standard error gets one line if that fails. Imports nothing of this package.
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
_MOST_NAMES = 10_000
# Numbers of groups, one a cell, as meshio names them for Gmsh, Medit, SU2, MED; then VTK's of some programs.
_TAGS = ("gmsh:physical", "medit:ref", "su2:tag", "cell_tags", "CellEntityIds", "boundary", "patch")
OUT_OF_MEMORY = 3  # exit code
WAIT = 10  # seconds for one of a CPU: other processes of the machine have their share
_HDF5 = b"\x89HDF\r\n\x1a\n"


def limit(most_bytes: int, seconds: int) -> None:
    """Ends this process by SIGXCPU after so much time of a CPU, by SIGALRM after ten times as much in all."""
    limits = {"AS": most_bytes, "FSIZE": most_bytes, "CPU": seconds, "CORE": 0}
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(number, (most, hard))
    signal.alarm(WAIT * seconds)


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


def groups_of(found: Any) -> dict[str, list[tuple[int, Any]]]:
    """Of each named group of cells its blocks and their rows; a group without a name has its number."""
    import numpy

    names = {(int(tag), int(dim)): str(name) for name, (tag, dim) in (found.field_data or {}).items()}
    families = getattr(found, "cell_tags", {})
    groups: dict[str, list[tuple[int, Any]]] = {}
    key = next((each for each in _TAGS if each in (found.cell_data or {})), None)
    for block, tags in enumerate(found.cell_data[key] if key else []):
        tags = numpy.asarray(tags).reshape(-1)
        if tags.dtype.kind not in "iuf":
            continue
        dim = found.cells[block].dim
        for tag in numpy.unique(tags[tags != 0])[:_MOST_NAMES].tolist():
            plain = str(int(tag))
            for name in families.get(tag, [names.get((int(tag), dim), plain)]):
                groups.setdefault(str(name), []).append((block, numpy.flatnonzero(tags == tag)))
    for name, of_blocks in (found.cell_sets or {}).items():
        if not str(name).startswith("gmsh:"):
            rows = [(i, each) for i, each in enumerate(of_blocks) if each is not None and len(each)]
            groups.setdefault(str(name), []).extend(rows)
    return groups


def side_sets_of(file: str) -> dict[str, Any]:
    """Of each side set of Exodus, which meshio leaves out, the pairs (element, side) from 1."""
    from importlib import import_module

    import numpy

    with import_module("netCDF4").Dataset(file) as data:
        data.set_auto_mask(False)
        starts, shells = [0], []
        for name, each in data.variables.items():
            if name.startswith("connect"):
                starts.append(starts[-1] + len(each))
                shells.append("SHELL" in each.elem_type.upper())
        words = data.variables["ss_names"][:] if "ss_names" in data.variables else []
        numbers = data.variables["ss_prop1"][:] if "ss_prop1" in data.variables else []
        sets = {}
        for i, number in enumerate(numbers):
            if f"elem_ss{i + 1}" not in data.variables:
                continue
            name = b"".join(words[i]).decode("utf-8", "replace").strip("\0 ") if i < len(words) else ""
            elements, sides = (numpy.array(data.variables[f"{each}_ss{i + 1}"][:]) for each in ("elem", "side"))
            block = numpy.searchsorted(starts, elements, side="left") - 1
            # Sides 1 and 2 of a shell are its faces, and edges come behind them.
            shell = numpy.array([*shells, False])[numpy.clip(block, 0, len(shells))]
            sets[name or str(int(number))] = numpy.stack([elements, sides - 2 * shell], 1)
    return sets


def printable(name: str) -> str:
    """Names go to terminals."""
    return "".join(c if c.isprintable() else "?" for c in name)[:LONGEST]


def hand_over(found: Any, sides: dict[str, Any], descriptor: int) -> None:
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
        groups = dict(list(groups_of(found).items())[:_MOST_NAMES])
        put([printable(name) for name in groups], numpy.str_)
        for of_blocks in groups.values():
            pairs = [numpy.stack([numpy.full(len(rows), block), rows], 1) for block, rows in of_blocks]
            put(numpy.concatenate([numpy.zeros((0, 2), numpy.int64), *pairs]), numpy.int64)
        put([printable(name) for name in sides], numpy.str_)
        for each in sides.values():
            put(each, numpy.int64)


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
            found = meshio.read(file)
            sides = side_sets_of(file) if file.lower().endswith((".e", ".exo", ".ex2")) else {}
            hand_over(found, sides, descriptor)
    except MemoryError:
        return OUT_OF_MEMORY
    except (Exception, SystemExit) as error:  # a reader of a foreign format raises anything
        words = " ".join(f"{error} {told.getvalue()[:LONGEST]}".split())
        print(words[:LONGEST] or type(error).__name__, file=said, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    os._exit(main())
