"""The libucp.so.0 of this process: the library chooses it, for programs in all languages by one rule.

Two copies of UCX in one process break each other, so a copy that is already mapped (by mpi4py, say) wins; then
WAYWISER_LIBUCP. Then, on a machine with an RDMA device, the system's copy, the only one that knows RDMA, and the libucx
wheel; elsewhere the wheel first, as it is the newer one. On a machine with an NVIDIA driver a copy without the CUDA
module comes last. Only Python knows where its packages are, and names the wheel's folder in WAYWISER_LIBUCX, for the
core of this process and for programs that it starts.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

_VARIABLE = "WAYWISER_LIBUCX"


@dataclass(frozen=True)
class LibucpChoice:
    """A libucp and where it was found: `origin` is "mapped", "environment", "system", "wheel" or "none"."""

    path: Path | None
    origin: str


def name_wheel() -> None:
    """Names the folder of the wheel's libraries for the core, unless somebody has."""
    found = importlib.util.find_spec("libucx")
    for folder in (found.submodule_search_locations or []) if found else []:
        os.environ.setdefault(_VARIABLE, str(Path(folder) / "lib"))


def find_libucp() -> LibucpChoice:
    """The libucp that this process opens; opens nothing."""
    from waywiser import _core

    path, origin = _core.find_libucp()
    return LibucpChoice(Path(path) if path else None, origin)
