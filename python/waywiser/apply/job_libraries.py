"""Finds the MPI and UCX that jobs of this machine use: those of the mpirun in PATH, or of a named mpirun.

The libraries that this tool brings along do not count. Every verdict names the files that it is about.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from waywiser.errors import InputError
from waywiser.look.commands import Live
from waywiser.look.finding import Unknown
from waywiser.look.root import Root
from waywiser.ucx_library import find_libucp

_SECONDS = 20.0


@dataclass(frozen=True)
class JobMpi:
    """An Open MPI: its mpirun, version, and the real paths of its libmpi and of the libucp that it links ("": none).

    `own`: it lies beside this program, so jobs use it only if they name it.
    """

    mpirun: str
    version: str
    libmpi: str
    libucp: str
    own: bool = False

    @property
    def text(self) -> str:
        """Version and paths as text."""
        own = ", beside this program: no mpirun is in PATH" if self.own else ""
        return f"{self.version} ({self.mpirun}{f', {self.libmpi}' if self.libmpi else ''}{own})"

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """The environment of jobs."""
        return {**given, "PATH": os.pathsep.join((os.path.dirname(self.mpirun), given.get("PATH", "")))}


def find_mpirun(named: Path | None, environment: Mapping[str, str] = os.environ) -> str:
    """The named mpirun, else the first in PATH, else the one beside this interpreter. Raises InputError."""
    if named is not None:
        if not os.access(named, os.X_OK) or named.is_dir():
            raise InputError(f"--mpirun {named}: is not a program")
        return str(named.absolute())
    beside = Path(sys.executable).with_name("mpirun")
    found = shutil.which("mpirun", path=environment.get("PATH")) or (str(beside) if beside.exists() else None)
    if not found:
        raise InputError("needs mpirun, which is not in PATH; --mpirun names another")
    return os.path.abspath(found)


def find_mpi(named: Path | None, environment: Mapping[str, str] = os.environ) -> JobMpi:
    """The Open MPI of jobs. Raises InputError if there is none, or another MPI."""
    mpirun = find_mpirun(named, environment)
    told = _said([mpirun, "--version"], environment)
    # Debian's mpirun.openmpi calls itself OpenRTE.
    version = re.search(r"\((?:Open MPI|OpenRTE)\) v?(\d{1,3}\.\d{1,3}\.\d{1,3})", told)
    if not version:
        words = " ".join(told.split())[:80] or "it does not report its version"
        raise InputError(f"{mpirun} is not Open MPI's ({words}); --mpirun names another")
    folders = _library_folders(mpirun, environment)
    libmpi = next((file for folder in folders for file in sorted(folder.glob("libmpi.so.*")) if file.is_file()), None)
    components = [folder / name / "mca_pml_ucx.so" for folder in folders for name in ("", "openmpi", "openmpi3")]
    found = (linked(str(file), "libucp", environment) for file in (*components, libmpi) if file and file.is_file())
    libucp = next((path for path in found if path), "")
    own = named is None and not shutil.which("mpirun", path=environment.get("PATH"))
    return JobMpi(mpirun, version[1], os.path.realpath(libmpi) if libmpi else "", libucp, own)


def _library_folders(mpirun: str, environment: Mapping[str, str]) -> list[Path]:
    """The folders that may hold its libraries: beside mpirun, then the installation folders in ompi_info."""
    prefixes = [Path(mpirun).parents[1], Path(os.path.realpath(mpirun)).parents[1]]
    folders = [prefix / name for prefix in prefixes for name in ("lib", "lib64")]
    info = Path(mpirun).with_name("ompi_info")
    told = _said([str(info), "--parsable", "--path", "libdir", "--path", "pkglibdir"], environment)
    for path in re.findall(r"^path:(?:pkg)?libdir:(/.{1,400})$", told, re.MULTILINE):
        folders += [Path(path), *Path(path).parents[:2]]
    return list(dict.fromkeys(folders))


def _said(command: list[str], environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            command, env=dict(environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=_SECONDS, text=True, errors="replace",
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout


def linked(file: str, library: str, environment: Mapping[str, str]) -> str:
    """The real path of the library that the loader would give to `file`; empty if there is none."""
    found = re.search(rf"^\s*{library}\.so\S* => (/\S+)", _said(["ldd", file], environment), re.MULTILINE)
    return os.path.realpath(found[1]) if found else ""


@dataclass(frozen=True)
class JobLibraries:
    """The MPI of jobs, or why there is none; and the libucp that they use ("": unknown), with the source of this."""

    mpi: JobMpi | None
    no_mpi: str
    libucp: str
    whose: str

    def root(self) -> Root:
        """The machine, with this MPI's programs first and the UCX programs of this libucp."""
        return Root(commands=Live(environment=self.environment))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of jobs."""
        return self.mpi.environment(os.environ) if self.mpi else dict(os.environ)

    def ucx_program(self, name: str) -> tuple[str, dict[str, str]]:
        """`ucx_info` or `ucx_perftest` that uses this libucp, and variables for it. Raises Unknown."""
        if not self.libucp:
            raise Unknown(f"needs {name}, and there is no UCX")
        folder = os.path.dirname(self.libucp)
        beside = os.path.join(os.path.dirname(folder), "bin", name)
        extra = {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH"))))}
        for program in (beside, shutil.which(name, path=self.environment.get("PATH"))):
            for variables in ({}, extra) if program and os.access(program, os.X_OK) else ():
                assert program
                if linked(program, "libucp", {**self.environment, **variables}) == self.libucp:
                    return program, variables
        raise Unknown(f"needs a {name} that uses {self.libucp}, the UCX of {self.whose}")


def find_job_libraries(mpirun: Path | None = None) -> JobLibraries:
    """The libraries that jobs use. Raises InputError for a given `mpirun` that is not Open MPI's."""
    mpi, why = None, ""
    try:
        mpi = find_mpi(mpirun)
    except InputError as error:
        if mpirun is not None:
            raise
        why = str(error)
    if mpi and mpi.libucp and not mpi.own:
        return JobLibraries(mpi, why, mpi.libucp, mpi.mpirun)
    program = shutil.which("ucx_info")
    in_path = linked(program, "libucp", os.environ) if program else ""
    if program and in_path:
        return JobLibraries(mpi, why, in_path, program)
    own = find_libucp().path
    return JobLibraries(mpi, why, os.path.realpath(own) if own else "", "waywiser's own groups")
