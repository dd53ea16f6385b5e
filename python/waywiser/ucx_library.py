"""Chooses the libucp.so.0 that the core opens.

Two copies of UCX in one process break each other, so a copy that is already mapped (by mpi4py, say) wins; then
WAYWISER_LIBUCP. Then, on a machine with an RDMA device, the system's copy, the only one that knows RDMA, and the libucx
wheel by its full path; elsewhere the wheel first, as it is the newer one. On a machine with an NVIDIA driver a system
copy without the CUDA module comes after the wheel, which has it.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

_VARIABLE = "WAYWISER_LIBUCP"
_FILE = "libucp.so.0"
_SYSTEM_FOLDERS = (
    "/usr/local/lib",
    "/usr/local/lib64",
    "/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/opt/hpcx/ucx/lib",
)


@dataclass(frozen=True)
class LibucpChoice:
    """A libucp and where it was found: `origin` is "mapped", "environment", "system", "wheel" or "none"."""

    path: Path | None
    origin: str


def _mapped() -> Path | None:
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in maps.splitlines():
        path = line.partition("/")[2]
        if path and "libucp" in path and Path(path).name.startswith("libucp"):
            return Path("/" + path)
    return None


def _system() -> Path | None:
    listed = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    for folder in (*listed, *_SYSTEM_FOLDERS):
        path = Path(folder) / _FILE
        if path.exists():
            return path
    return None


def _wheel() -> Path | None:
    found = importlib.util.find_spec("libucx")
    for folder in (found.submodule_search_locations or []) if found else []:
        path = Path(folder) / "lib" / _FILE
        if path.exists():
            return path
    return None


def _knows_cuda(libucp: Path) -> bool:
    """Whether the modules of this libucp include CUDA's."""
    folder = libucp.resolve().parent / "ucx"
    return any(folder.glob("libuct_cuda.so*"))


def _has_nvidia_driver() -> bool:
    return Path("/proc/driver/nvidia/version").exists()


def _has_rdma_device() -> bool:
    return any(Path("/sys/class/infiniband").glob("*"))


def find_libucp() -> LibucpChoice:
    """The libucp to use; loads nothing."""
    mapped = _mapped()
    if mapped is not None:
        return LibucpChoice(mapped, "mapped")
    named = os.environ.get(_VARIABLE)
    if named:
        return LibucpChoice(Path(named), "environment")
    found = [LibucpChoice(path, origin) for origin, path in (("system", _system()), ("wheel", _wheel())) if path]
    if not _has_rdma_device():
        found.reverse()
    if _has_nvidia_driver():
        found.sort(key=lambda choice: choice.path is None or not _knows_cuda(choice.path))
    return found[0] if found else LibucpChoice(None, "none")


def select_libucp() -> LibucpChoice:
    """Finds the libucp and names it in WAYWISER_LIBUCP, for the core of this process and of its children."""
    choice = find_libucp()
    if choice.path is not None:
        os.environ[_VARIABLE] = str(choice.path)
    return choice
