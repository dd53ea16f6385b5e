"""Programs of tests that need nvcc or the headers of CUDA.

`.venv/bin/python tests/python/prebuilt.py FOLDER` builds them for a machine that has neither; there
WAYWISER_TEST_PROGRAMS=FOLDER names them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from consumers import nvcc
from rank_jobs import ROOT

from waywiser.offload.program import SHIM

AXPY = """
extern "C" __global__ void axpy(float* y, const float* x, float a, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}
"""


def cuda_headers() -> Path:
    """The folder with cuda.h. Skips the test if there is no nvcc."""
    beside = Path(nvcc()).resolve().parents[1]
    return next(each for each in (beside / "include", beside / "targets/x86_64-linux/include") if each.exists())


def driver_program(folder: Path) -> Path:
    """tests/shim/driver_program.c: the one that was built before, else built in `folder`, else the test is skipped."""
    if (found := _built_before("driver_program")) is not None:
        return found
    made = folder / "driver_program"
    source = ROOT / "tests/shim/driver_program.c"
    words = ["cc", "-Wall", "-Werror", "-I", cuda_headers(), source, "-o", made, SHIM / "libcuda.so.1"]
    subprocess.run(words, check=True)
    return made


def axpy_fatbin(folder: Path) -> Path:
    """AXPY for GPUs of all kinds, as driver_program()."""
    if (found := _built_before("axpy.fatbin")) is not None:
        return found
    made, source = folder / "axpy.fatbin", folder / "axpy.cu"
    source.write_text(AXPY)
    subprocess.run([nvcc(), "-fatbin", "-arch=all-major", "-o", made, source], check=True)
    return made


def _built_before(name: str) -> Path | None:
    named = os.environ.get("WAYWISER_TEST_PROGRAMS")
    found = Path(named) / name if named else None
    return found if found is not None and found.exists() else None


if __name__ == "__main__":
    to = Path(sys.argv[1])
    to.mkdir(parents=True, exist_ok=True)
    print(driver_program(to), axpy_fatbin(to))
