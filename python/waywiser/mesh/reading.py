"""Reads meshes of other programs by meshio, an optional package, in a process with limits."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from operator import index
from pathlib import Path
from typing import IO, Any

import numpy as np

from waywiser.errors import InputError, InputTypeError, UnavailableError
from waywiser.mesh.boundaries import KINDS, boundaries_of
from waywiser.mesh.faces import CORNERS, FLAT, Block, first_equals
from waywiser.mesh.mesh import Mesh
from waywiser.mesh.meshio_process import OUT_OF_MEMORY, WAIT

# Formats of one file; meshio has more, of several files (XDMF, TetGen) or not for meshes of computations.
ENDINGS = (
    ".vtk", ".vtu", ".msh", ".e", ".exo", ".ex2", ".inp", ".bdf", ".fem", ".nas", ".med", ".mesh", ".meshb", ".su2",
    ".ugrid", ".avs", ".cgns", ".vol", ".off", ".obj", ".ply", ".stl",
)  # fmt: skip
_LOWER = ("vertex", "line")  # what files have beside the cells
# Marks of VTK's ghost cells: of another piece's cell, of one that finer cells replace, of a hidden one.
_GHOSTS = 1 | 8 | 32
# What a good file needs at most, by its size: text becomes lists of Python's objects, and data may be compressed.
_LEAST_BYTES, _BYTES_PER_BYTE = 2 << 30, 64
_LEAST_SECONDS, _BYTES_PER_SECOND = 10, 250_000


def read_mesh(
    file: str | os.PathLike[str], *, most_bytes: int | None = None, most_seconds: int | None = None
) -> Mesh:  # fmt: skip
    """The mesh of a file in one of meshio's formats: VTK (.vtk, .vtu), Gmsh (.msh), Exodus (.e, .exo), Abaqus (.inp),
    Nastran (.bdf), MED (.med), CGNS, SU2 and others that are one file each.

    The cells of the highest dimension are taken: if there are solid ones, surfaces are left out. Of curved cells only
    the corners count. A cell that is there several times, as Gmsh saves those of several groups, is taken once, where
    it is first; VTK's ghost cells are left out. `boundaries` of the mesh has the named groups of faces: Gmsh's physical
    groups, side sets of Exodus, markers of SU2 (meshio numbers them), sets of Abaqus and MED, and VTK's surface cells
    by the numbers of their array `CellEntityIds`, `boundary` or `patch`. A group without a name has its number.

    meshio runs in a process of its own, which may take `most_bytes` of memory (2 GiB and 64 times the size of the file,
    unless given) and `most_seconds` of a CPU (10, and one for each 250 kB; ten times as long in all), and opens no
    other file.

    Raises UnavailableError without meshio, and InputError for a file that is of another format, cannot be read within
    these limits, or has no such cells.
    """
    path = Path(file)
    if importlib.util.find_spec("meshio") is None:
        raise UnavailableError(f"{file}: not installed: meshio (pip install 'waywiser[mesh]')")
    if not path.is_file():
        raise InputError(f"{file}: there is no such file")
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"{file}: meshes are read from files that end with {', '.join(ENDINGS)}")
    size = path.stat().st_size
    memory = _limit("most_bytes", most_bytes, _LEAST_BYTES + _BYTES_PER_BYTE * size)
    seconds = _limit("most_seconds", most_seconds, _LEAST_SECONDS + size // _BYTES_PER_SECOND)
    with tempfile.TemporaryFile() as result:
        _run(path, result, memory, seconds)
        result.seek(0)
        kinds, points = _array(result), _array(result)
        blocks = [(str(kind), _array(result), _array(result)) for kind in kinds]
        groups, sides = ({str(name): _array(result) for name in _array(result)} for _ in range(2))
    return _mesh_of(points, blocks, groups, sides, str(file))


def _limit(name: str, given: int | None, usual: int) -> int:
    try:
        limit = usual if given is None else index(given)
    except TypeError:
        raise InputTypeError(f"{name}= is a whole number, not {type(given).__name__}") from None
    if not 1 <= limit < 1 << 62:
        raise InputError(f"{name}={limit}: at least 1, less than 2^62")
    return limit


def _run(path: Path, result: IO[bytes], memory: int, seconds: int) -> None:
    """Lets the process write the arrays of a file."""
    program = Path(__file__).with_name("meshio_process.py")
    words = [sys.executable, str(program), str(path.resolve()), str(result.fileno()), str(memory), str(seconds)]
    # Threads of BLAS take address space, which is limited, and are of no use.
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            words, env=surroundings, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=[result.fileno()],
            timeout=WAIT * seconds + 10, check=False, errors="replace", encoding="utf-8",
        )  # fmt: skip
        code, said = done.returncode, " ".join(done.stderr.split())
    except subprocess.TimeoutExpired:
        code, said = -signal.SIGALRM, ""
    except OSError as error:
        raise UnavailableError(f"{path}: the process that reads it does not start: {error}") from error
    if code in (-signal.SIGALRM, -signal.SIGXCPU):
        spent = f"{seconds} seconds of a CPU" if code == -signal.SIGXCPU else f"{WAIT * seconds} seconds"
        raise InputError(f"{path}: meshio has not read it in {spent}: most_seconds= allows more")
    if code == OUT_OF_MEMORY:
        raise InputError(f"{path}: meshio needs more than {memory} bytes of memory: most_bytes= allows more")
    if code != 0:
        raise InputError(f"{path}: meshio cannot read it: {said or f'its process ended with {code}'}")


def _array(result: IO[bytes]) -> Any:
    return np.load(result, allow_pickle=False)


def _mesh_of(
    points: Any, found: list[tuple[str, Any, Any]], groups: dict[str, Any], sides: dict[str, Any], name: str
) -> Mesh:
    try:
        blocks = [(kind, _own(corners, marks)) for kind, corners, marks in found if len(corners)]
        strange = sorted(kind for kind, _ in blocks if kind not in KINDS and not kind.startswith(_LOWER))
        if strange:
            raise InputError(f"cells of kind {strange[0]!r}: there are {', '.join(CORNERS)}")
        named = [(KINDS[kind], corners[:, : CORNERS[KINDS[kind]]]) for kind, corners in blocks if kind in KINDS]
        solid = [each for each in named if each[0] not in FLAT]
        if not sum(len(corners) for _, corners in named):
            raise InputError("it has no cells of a mesh")
        flat = not solid and points.ndim == 2 and (points[:, 2:] == points[:1, 2:]).all()
        plain = [(kind, corners) for kind, corners, _ in found]
        boundaries = boundaries_of(plain, groups, sides, bool(solid))
        return Mesh(points[:, :2] if flat else points, _once(solid or named), boundaries)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _own(corners: Any, marks: Any) -> Any:
    """The cells that no mark of VTK gives to another piece of the mesh."""
    if corners.ndim != 2 or corners.dtype.kind not in "iu":
        raise InputError("its cells are no lists of points")
    corners = corners.astype(np.int64)
    return corners[marks.reshape(-1) & _GHOSTS == 0] if marks.size == len(corners) > 0 else corners


def _once(blocks: list[Block]) -> list[Block]:
    """The cells without those that have the corners of an earlier one: files repeat cells, once for each group."""
    equals = first_equals(blocks)
    is_first, ends = equals == np.arange(len(equals)), np.cumsum([len(corners) for _, corners in blocks])
    return [
        (kind, corners[is_first[end - len(corners) : end]]) for (kind, corners), end in zip(blocks, ends, strict=True)
    ]
