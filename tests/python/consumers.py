"""Helpers for programs outside of this repository: install the present build, build the programs and run them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rank_jobs import ROOT, finish, start

import waywiser

HERE = ROOT / "tests/consumers"
BUILD = ROOT / "build"
LIBRARY = ROOT / "cmake/Library.cmake"
KINDS = ["CMAKE_BUILD_TYPE=", "CMAKE_BUILD_TYPE=Debug", "CMAKE_CXX_FLAGS=-O0"]
# How another project is built, and whether with CUDA; the second where there is time.
BUILDS_OF_OTHERS = [*((kind, False) for kind in KINDS), (KINDS[1], True)], [(kind, True) for kind in KINDS[::2]]
NO_GFORTRAN = "there is no gfortran, and apt could not install it"
major, minor, _ = waywiser.__version__.split(".")
SONAME = f"libwaywiser.so.{major}" if major != "0" else f"libwaywiser.so.0.{minor}"


def tool(name: str) -> str:
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    assert found is not None, f"no {name}"
    return found


def done(*command: str | Path) -> str:
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=250)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The present build, installed and then moved, which is allowed."""
    if not (BUILD / "libwaywiser.so").exists():
        pytest.skip("the library is not built here")
    installed = tmp_path_factory.mktemp("installed") / "first"
    done(tool("cmake"), "--install", BUILD, "--prefix", installed)
    return installed.rename(installed.with_name("prefix"))


def library_folder(prefix: Path) -> Path:
    (found,) = prefix.rglob("libwaywiser.so")
    return found.parent


def build(language: str, prefix: Path, folder: Path, *options: str) -> Path:
    """The program of a folder beside this file, built elsewhere."""
    source = folder / language
    shutil.copytree(HERE / language, source)
    cmake = tool("cmake")
    done(cmake, "-S", source, "-B", folder / "made", "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
         f"-Dwaywiser_ROOT={prefix}", *options)  # fmt: skip
    done(cmake, "--build", folder / "made")
    return folder / "made/consumer"


@pytest.fixture(scope="module")
def in_c(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs in C, beside the one whose path it is."""
    return build("c", prefix, tmp_path_factory.mktemp("c"))


def nvcc() -> str:
    """The compiler of this build, or one of PATH; else the test is skipped."""
    file = BUILD / "CMakeCache.txt"
    cache = file.read_text() if file.exists() else ""
    found = re.search(r"^CMAKE_CUDA_COMPILER:\w+=(.*nvcc)$", cache, re.MULTILINE)
    compiler = found.group(1) if found else shutil.which("nvcc")
    if compiler is None:
        pytest.skip("there is no nvcc")
    return compiler


def run(program: Path, ranks: int = 2) -> list[str]:
    code, lines, errors = finish(start("run", "-n", str(ranks), program))
    assert code == 0, errors
    return lines


SUMS = ["rank 0 of 2: 3", "rank 1 of 2: 3"]


def listed_headers() -> list[str]:
    """The headers that an installation has, below `waywiser/`: the lists of cmake/Library.cmake."""
    lists = re.findall(
        r"^set\((?:public_headers|headers_of_names)\s(.*?)\)", LIBRARY.read_text(), re.DOTALL | re.MULTILINE
    )
    assert len(lists) == 2
    return " ".join(lists).split()


def public_headers(prefix: Path) -> Iterator[Path]:
    folder = prefix / "include"
    yield from sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".h", ".hpp", ".cuh"))
