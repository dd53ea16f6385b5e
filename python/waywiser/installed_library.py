"""Locates the C, C++ and Fortran interface of this installation: `waywiser --cmake-dir`, `--cflags`, `--libs`."""

from __future__ import annotations

from pathlib import Path

from waywiser.errors import InputError

PREFIX = Path(__file__).resolve().parent


def _folder(*parts: str) -> Path:
    folder = PREFIX.joinpath(*parts)
    if not folder.is_dir():
        raise InputError(
            f"there is no {folder}: this is a source tree; `cmake --install build --prefix FOLDER` installs the library"
        )
    return folder


def cmake_dir() -> str:
    """For `cmake -Dwaywiser_DIR=...`."""
    return str(_folder("lib", "cmake", "waywiser"))


def include_path() -> Path:
    """The folder of the headers, for compilers: `#include <waywiser/one_sided.cuh>`. In a source tree that of the
    sources. Raises InputError if there is neither.
    """
    sources = PREFIX.parents[1] / "src"
    return sources if (sources / "waywiser/one_sided.cuh").is_file() else _folder("include")


def nvrtc_options() -> tuple[str, ...]:
    """What NVRTC needs to compile `waywiser/one_sided.cuh`, for example in CuPy:
    `cupy.RawKernel(code, name, options=waywiser.nvrtc_options())`. The headers of the CUDA runtime must be in its
    include path as well; CuPy adds them.

    Raises as include_path.
    """
    folder = include_path()
    return (
        f"-I{folder / 'waywiser/kernels/rtc'}",
        f"-I{folder}",
        "--std=c++20",
        "--device-as-default-execution-space",
        "--diag-suppress=1097",  # of attributes of g++
    )


def cflags() -> str:
    return f"-I{_folder('include')}"


def libs() -> str:
    """Flags for the linker; programs find the library at its present place."""
    folder = _folder("lib")
    return f"-L{folder} -Wl,-rpath,{folder} -lwaywiser"


def schemas() -> str:
    """The folder of the JSON Schemas of the files that this package writes."""
    return str(Path(__file__).with_name("schemas"))
