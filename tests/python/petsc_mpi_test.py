"""plugins/petsc/outside_venv.cmake: the MPI is the one beside PETSc, not that of a Python environment."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from consumers import tool
from rank_jobs import ROOT


def found(folder: Path, *before: Path, petsc: str | Path = "/usr") -> str:
    """The mpicxx that a CMake script finds with these folders first in PATH, and PETSc there."""
    script = folder / "find.cmake"
    script.write_text(f"""
set(PETSC_PREFIX "{petsc}")
include("{ROOT / "plugins/petsc/outside_venv.cmake"}")
find_program(compiler NAMES mpicxx)
message(STATUS "found ${{compiler}}")
""")
    environment = {**os.environ, "PATH": os.pathsep.join([*map(str, before), os.environ["PATH"]])}
    command = [tool("cmake"), "-P", str(script)]
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=True)
    return answer.stdout.rpartition("found ")[2].strip()


def compiler(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    file = folder / "bin/mpicxx"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_the_mpi_of_a_python_environment_is_passed_over(tmp_path: Path) -> None:
    inside, outside = compiler(tmp_path / "venv"), compiler(tmp_path / "system")
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    assert found(tmp_path, inside.parent, outside.parent) == str(outside)
    assert found(tmp_path, inside.parent, outside.parent, petsc=tmp_path / "venv") == str(inside)
    (tmp_path / "venv/pyvenv.cfg").unlink()
    assert found(tmp_path, inside.parent, outside.parent) == str(inside)
