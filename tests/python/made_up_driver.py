"""UCX of the wheel with its CUDA module where no NVIDIA driver is: beside a driver in which every call fails."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

_NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE


def wheel_ucx() -> tuple[Path, Path]:
    """ucx_info of the libucx wheel, and the folder of its libraries."""
    found = importlib.util.find_spec("libucx")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("the wheel libucx is not installed")
    folder = Path(found.submodule_search_locations[0])
    return folder / "bin" / "ucx_info", folder / "lib"


def cuda_driver(folder: Path, libraries: Path) -> Path:
    """A folder with libcuda.so.1 and libnvidia-ml.so.1 that have every function that UCX's modules call."""
    at = folder / "driver"
    at.mkdir()
    modules = sorted((libraries / "ucx").glob("lib*_cuda.so.0"))
    told = subprocess.run(["nm", "-D", "--undefined-only", *modules], capture_output=True, text=True, check=True).stdout
    names = sorted(set(re.findall(r" ((?:cu[A-Z]|nvml[A-Z])\w*)", told)))
    source = at / "driver.c"
    source.write_text("".join(f"int {name}(void) {{ return {_NO_DEVICE}; }}\n" for name in names))
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        words = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", source, "-o", at / name]
        subprocess.run(words, check=True)
    return at
