"""Mesh files with more than a mesh: cells of several groups, ghosts, references to other files, hostile sizes."""

from __future__ import annotations

import signal
import subprocess
import sys
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_mesh import box

from waywiser.errors import InputError, InputTypeError
from waywiser.mesh import read_mesh

meshio = pytest.importorskip("meshio")
POINTS = np.array([(x, y, 0.0) for y in (0, 1) for x in (0, 1, 2)])
QUADS = np.array([[0, 1, 4, 3], [1, 2, 5, 4]])


def gmsh(file: Path, quads: list[tuple[int, str]]) -> Path:
    """A file of format 2.2 with quadrilaterals: their physical group, and their corners from 1 on."""
    lines = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", "6"]
    lines += [f"{i} {x} {y} {z}" for i, (x, y, z) in enumerate(POINTS, 1)] + ["$EndNodes", "$Elements", str(len(quads))]
    lines += [f"{i} 3 2 {group} 1 {corners}" for i, (group, corners) in enumerate(quads, 1)] + ["$EndElements", ""]
    file.write_text("\n".join(lines))
    return file


def test_a_cell_of_two_groups_is_one(tmp_path: Path) -> None:
    """Also with its corners in another order. It stays where it is first."""
    again = [(2, "1 2 5 4"), (3, "5 2 1 4"), (2, "2 3 6 5")]
    mesh = read_mesh(gmsh(tmp_path / "plate.msh", [(1, "1 2 5 4"), (2, "1 2 5 4"), (1, "2 3 6 5"), *again]))
    assert len(mesh) == 2 and mesh.pairs.tolist() == [[0, 1]]
    assert np.concatenate([corners for _, corners in mesh.blocks]).tolist() == QUADS.tolist()


def test_a_cell_in_two_blocks_is_one(tmp_path: Path) -> None:
    """As a quadrilateral with a corner twice, and as a triangle."""
    cells = [("quad", QUADS), ("triangle", [[0, 1, 4]]), ("quad", [[1, 2, 5, 4], [1, 4, 0, 0]])]
    points = np.vstack([POINTS, [(9, 9, 0)]])
    meshio.write(tmp_path / "two.vtu", meshio.Mesh(points, cells))
    mesh = read_mesh(tmp_path / "two.vtu")
    assert [(kind, len(corners)) for kind, corners in mesh.blocks if len(corners)] == [("quad", 2), ("triangle", 1)]


def test_an_abaqus_element_of_two_sets_is_one(tmp_path: Path) -> None:
    elements = "*ELEMENT, TYPE=CPS4, ELSET={}\n"
    text = "*NODE\n" + "".join(f"{i}, {x}, {y}, {z}\n" for i, (x, y, z) in enumerate(POINTS, 1))
    text += elements.format("A") + "1, 1, 2, 5, 4\n2, 2, 3, 6, 5\n" + elements.format("B") + "3, 2, 3, 6, 5\n"
    (tmp_path / "part.inp").write_text(text)
    assert read_mesh(tmp_path / "part.inp").pairs.tolist() == [[0, 1]]


@pytest.mark.parametrize(("ending", "mark", "cells"), [(".vtk", 1, 1), (".vtu", 9, 1), (".vtu", 32, 1), (".vtu", 2, 2)])
def test_ghost_cells_of_a_piece_are_left_out(ending: str, mark: int, cells: int, tmp_path: Path) -> None:
    marks = {"vtkGhostType": [np.array([0, mark], np.uint8)]}
    meshio.write(tmp_path / f"piece{ending}", meshio.Mesh(POINTS, [("quad", QUADS)], cell_data=marks))
    mesh = read_mesh(tmp_path / f"piece{ending}")
    assert len(mesh) == cells and mesh.blocks[0][1][0].tolist() == QUADS[0].tolist()


def test_a_file_of_ghosts_alone_has_no_cells(tmp_path: Path) -> None:
    marks = {"vtkGhostType": [np.ones(2, np.uint8)]}
    meshio.write(tmp_path / "piece.vtu", meshio.Mesh(POINTS, [("quad", QUADS)], cell_data=marks))
    with pytest.raises(InputError, match=r"piece\.vtu: it has no cells of a mesh"):
        read_mesh(tmp_path / "piece.vtu")


def refused(file: Path, why: str, **limits: Any) -> None:
    with pytest.raises(InputError) as raised:
        read_mesh(file, **limits)
    assert str(raised.value).startswith(f"{file}: {why}") and "\n" not in str(raised.value), raised.value
    assert len(str(raised.value)) < len(str(file)) + 300


def test_a_file_that_keeps_its_reader_busy_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "mesh.off").write_text("OFF\n# x")  # meshio looks for the next line for ever
    why = "meshio has not read it in 1 seconds of a CPU: most_seconds= allows more"
    refused(tmp_path / "mesh.off", why, most_seconds=1)


def test_a_reader_may_wait_for_a_cpu_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import signal; from waywiser.mesh.meshio_process import limit; limit(1 << 40, 7); print(signal.alarm(0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=200)
    assert done.stdout == "70\n"
    ended = subprocess.CompletedProcess([], -signal.SIGALRM, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **options: ended if options["timeout"] > 70 else None)
    (tmp_path / "mesh.off").write_text("OFF\n")
    refused(tmp_path / "mesh.off", "meshio has not read it in 70 seconds: most_seconds= allows more", most_seconds=7)


def test_a_small_file_that_takes_much_memory_is_given_up(tmp_path: Path) -> None:
    zeros = zlib.compress(bytes(1 << 28))
    head = np.array([1, 1 << 28, 1 << 28, len(zeros)], np.uint32).tobytes()
    packed = (b64encode(head) + b64encode(zeros)).decode()
    text = f"""<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian" header_type="UInt32"
      compressor="vtkZLibDataCompressor"><UnstructuredGrid><Piece NumberOfPoints="11184810" NumberOfCells="1"><Points>
      <DataArray type="Float64" Name="Points" NumberOfComponents="3" format="binary">{packed}</DataArray></Points>
      <Cells><DataArray type="Int64" Name="connectivity" format="ascii">0 1 2</DataArray>
      <DataArray type="Int64" Name="offsets" format="ascii">3</DataArray>
      <DataArray type="Int64" Name="types" format="ascii">5</DataArray></Cells></Piece></UnstructuredGrid></VTKFile>"""
    (tmp_path / "bomb.vtu").write_text(text)
    assert len(read_mesh(gmsh(tmp_path / "good.msh", [(1, "1 2 5 4")]), most_bytes=500_000_000)) == 1
    refused(tmp_path / "bomb.vtu", "meshio needs more than 500000000 bytes of memory", most_bytes=500_000_000)


def test_entities_of_xml_do_not_grow(tmp_path: Path) -> None:
    names = [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "ha" * 10}">' for i in range(10)]
    (tmp_path / "laughs.vtu").write_text(f"<!DOCTYPE x [{''.join(names)}]><VTKFile>&a9;</VTKFile>")
    refused(tmp_path / "laughs.vtu", "meshio ", most_bytes=500_000_000, most_seconds=2)


def test_what_a_file_names_is_not_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret.inp"
    secret.write_text("*NODE\n1, 0, 0, 0\n2, 1, 0, 0\n3, 0, 1, 0\n*ELEMENT, TYPE=CPS3\n1, 1, 2, 3\n")
    assert len(read_mesh(secret)) == 1
    (tmp_path / "part.inp").write_text(f"*INCLUDE,INPUT={secret}\n")
    refused(tmp_path / "part.inp", f"meshio cannot read it: it names another file, {secret}: a mesh is one file"[:200])


@pytest.mark.parametrize("how", ["link", "external", "virtual"])
def test_what_a_file_of_hdf5_takes_from_others_is_not_read(how: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    mesh = box((2, 2, 2))
    meshio.write(tmp_path / "mesh.med", meshio.Mesh(mesh.points, mesh.blocks))
    assert (read_mesh(tmp_path / "mesh.med").pairs == mesh.pairs).all()
    with h5py.File(tmp_path / "mesh.med", "a") as file:
        group = file.create_group("more")
        if how == "link":
            group["other"] = h5py.ExternalLink("/elsewhere.h5", "/x")
        elif how == "external":
            group.create_dataset("other", (3,), "f8", external=[("/elsewhere", 0, 24)])
        else:
            layout = h5py.VirtualLayout((3,), "f8")
            layout[:] = h5py.VirtualSource("/elsewhere.h5", "x", (3,))
            group.create_virtual_dataset("other", layout)
    refused(tmp_path / "mesh.med", "meshio cannot read it: its more/other is in another file: a mesh is one file")


@pytest.mark.parametrize("file", ["mesh.xdmf", "mesh.node", "mesh.vtm"])
def test_formats_of_several_files_are_not_read(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text("")
    refused(tmp_path / file, "meshes are read from files that end with .vtk, .vtu, .msh, ")


def test_limits_are_whole_numbers(tmp_path: Path) -> None:
    file = gmsh(tmp_path / "plate.msh", [(1, "1 2 5 4")])
    assert len(read_mesh(file, most_bytes=1 << 31, most_seconds=20)) == 1
    with pytest.raises(InputTypeError, match="most_bytes= is a whole number, not str"):
        read_mesh(file, most_bytes="1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="most_seconds=0: at least 1"):
        read_mesh(file, most_seconds=0)


def test_the_reader_takes_no_modules_from_this_package() -> None:
    """It is run as a file, and its folder has a `mesh.py`."""
    program = Path(sys.modules["waywiser.mesh.reading"].__file__ or "").with_name("meshio_process.py")
    code = f"import sys, runpy; runpy.run_path({str(program)!r}); assert not any('waywiser' in m for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
