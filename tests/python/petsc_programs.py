"""PETSc's own programs, built and run with the plugin of plugins/petsc/. Debian: libpetsc-real-dev and its examples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from consumers import done, tool
from rank_jobs import ROOT

IDENTIFIES = ("type:", "scatter type", "sort=", "  carried by ")  # lines in which views of two types differ


def _outside(name: str) -> str | None:
    """A program of PATH that is not of this Python's environment, whose MPI is another one than PETSc's."""
    own = str(Path(sys.executable).parent)
    folders = [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder != own]
    return shutil.which(name, path=os.pathsep.join(folders))


def _pkg_config(*words: str) -> str | None:
    program = shutil.which("pkg-config")
    if program is None:
        return None
    answer = subprocess.run([program, *words, "PETSc"], capture_output=True, text=True, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else None


def why_no_petsc() -> str:
    """The reason why there are no programs of PETSc here; empty if there are."""
    prefix = _pkg_config("--variable=prefix")
    if prefix is None:
        return "pkg-config finds no PETSc; `make test-long`, lane petsc, installs it"
    if not Path(prefix, "include/petsc/private/sfimpl.h").exists():
        return f"{prefix} has no petsc/private/sfimpl.h"
    if not Path(prefix, "share/petsc/examples/src/vec/is/sf/tests").exists():
        return f"{prefix} has no examples"
    return "" if _outside("mpicc") and _outside("mpicxx") and _outside("mpirun") else "there is no MPI for PETSc"


def has_gpus() -> bool:
    """Whether PETSc here was built for the GPUs of this machine."""
    folder = Path(_pkg_config("--variable=includedir") or "")
    settings = [path for path in (folder / "petscconf.h", folder / "petsc/petscconf.h") if path.exists()]
    return Path("/dev/nvidia0").exists() and any("PETSC_HAVE_CUDA 1" in path.read_text() for path in settings)


class PetscPrograms:
    """Programs of PETSc's examples, each compiled once, and the plugin; all in one folder."""

    def __init__(self, folder: Path, waywiser_prefix: Path) -> None:
        self.folder, self._waywiser = folder, waywiser_prefix
        self.sources = Path(_pkg_config("--variable=prefix") or "", "share/petsc/examples/src")
        self._made: dict[str, Path] = {}

    @cached_property
    def plugin(self) -> Path:
        made = self.folder / "plugin"
        done(tool("cmake"), "-S", ROOT / "plugins/petsc", "-B", made,
             "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}", f"-Dwaywiser_ROOT={self._waywiser}",
             f"-DMPI_CXX_COMPILER={_outside('mpicxx')}",
             "-DCMAKE_CXX_FLAGS=-Werror")  # fmt: skip
        done(tool("cmake"), "--build", made)
        return made / "libwaywiser_petsc.so"

    def program(self, source: str) -> Path:
        """`source`: below PETSc's src, or of tests/petsc; without its suffix."""
        if source not in self._made:
            own = ROOT / "tests/petsc" / f"{source}.c"
            (file,) = [own] if own.exists() else self.sources.glob(f"{source}.[cF]*")
            flags = (_pkg_config("--cflags", "--libs") or "").split()
            made = self.folder / source.replace("/", "_")
            compiler = _outside("mpicc" if file.suffix == ".c" else "mpif90") or "mpicc"
            more = [] if file.suffix == ".c" else ["-ffree-line-length-none"]
            done(compiler, "-w", *more, file, "-o", made, *flags, "-lm")
            self._made[source] = made
        return self._made[source]

    def run(
        self, ranks: int, source: str, *arguments: str, sf_type: str = "waywiser", before: Sequence[str] = (),
        **environment: str,
    ) -> tuple[int, list[str], str]:  # fmt: skip
        """Exit code, lines of output, errors. The type comes from the environment: the program does not know of it.
        `before`: words of a command that becomes the program."""
        options = f"-dll_append {self.plugin} -sf_type waywiser" if sf_type == "waywiser" else f"-sf_type {sf_type}"
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
        answer = subprocess.run(
            [_outside("mpirun") or "mpirun", "--oversubscribe", "-n", str(ranks), *before,
             self.program(source), *arguments],
            env={**os.environ, **root, "PETSC_OPTIONS": options, **environment},
            capture_output=True, text=True, check=False, timeout=100, cwd=self.folder,
        )  # fmt: skip
        return answer.returncode, answer.stdout.splitlines(), answer.stderr

    def reference(self, name: str) -> list[str]:
        """The output that PETSc ships for a test of its star forests, without what differs between two types."""
        return unlike_lines((self.sources / "vec/is/sf/tests/output" / f"{name}.out").read_text().splitlines())


def unlike_lines(lines: list[str]) -> list[str]:
    """All lines but those that name the type or the libraries in use."""
    return [line for line in lines if not any(word in line for word in IDENTIFIES)]
