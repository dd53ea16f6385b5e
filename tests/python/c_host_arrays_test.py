"""A C program with arrays in host memory does not look for the CUDA driver in each call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from consumers import BUILD, SONAME, done
from rank_jobs import runtime_folder

__all__ = ["runtime_folder"]

# Counts how often the driver is looked for, and finds none.
COUNTS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
int looks;
void *dlopen(const char *name, int flags) {
  void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
  if (name && !strcmp(name, "libcuda.so.1") && (flags & RTLD_NOLOAD)) return ++looks, (void *)0;
  return next(name, flags);
}
"""
PROGRAM = """
import ctypes, sys
class Mode(ctypes.Structure):
    _fields_ = [("future", ctypes.c_void_p), ("stream", ctypes.c_void_p)]
looks = ctypes.c_int.in_dll(ctypes.CDLL(None), "looks")
library = ctypes.CDLL(sys.argv[1])
group, one, total = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float()
assert library.ww_join(None, ctypes.byref(group)) == 0
seen = []
for call in range(100):
    arrays = ctypes.byref(one), ctypes.byref(total)
    assert library.ww_all_reduce(group, *arrays, ctypes.c_size_t(1), 1, 0, Mode()) == 0
    assert total.value == 1
    seen.append(looks.value)
assert library.ww_close(group) == 0
print(*seen)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_calls_on_host_arrays_do_not_look_for_the_driver_again(tmp_path: Path) -> None:
    library = BUILD / SONAME
    if not library.exists():
        pytest.skip("the library is not built here")
    counts = tmp_path / "counts.so"
    counts.with_suffix(".c").write_text(COUNTS)
    done("cc", "-shared", "-fPIC", counts.with_suffix(".c"), "-o", counts)
    environment = dict(os.environ, LD_PRELOAD=str(counts), WAYWISER_RANK="0", WAYWISER_SIZE="1")
    run = subprocess.run([sys.executable, "-c", PROGRAM, library], env=environment, capture_output=True, text=True,
                         check=False, timeout=60)  # fmt: skip
    assert run.returncode == 0, run.stderr
    seen = [int(word) for word in run.stdout.split()]
    assert seen[0] >= 1 and seen[-1] == seen[9]
