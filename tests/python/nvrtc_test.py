"""Kernels that use waywiser/one_sided.cuh, compiled by NVRTC; on two GPUs they run."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
from pathlib import Path

import pytest
from rank_jobs import run, runtime_folder

import waywiser as ww
from waywiser import _core

__all__ = ["runtime_folder"]
pytestmark = pytest.mark.usefixtures("runtime_folder")
NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")
PACKAGES = [Path(folder, "nvidia") for folder in sys.path]
KERNEL = """
#include <waywiser/one_sided.cuh>
using namespace waywiser::one_sided;
extern "C" __global__ void put_around(const __grid_constant__ HeapTerms terms, const __grid_constant__ TeamTerms team) {
  CudaHeapBlock block;
  const OneSided<CudaHeapBlock> ranks(block, terms);
  auto* signal = ranks.at<std::uint64_t>(0);
  auto *given = ranks.at<float>(64), *taken = ranks.at<float>(4096);
  auto* count = ranks.at<std::uint64_t>(8);
  const int right = (ranks.rank() + 1) % ranks.size();
  for (int i = threadIdx.x; i < 1000; i += blockDim.x) given[i] = 100 * ranks.rank() + i;
  ranks.put_with_signal<Scope::block>(taken, given, 1000, signal, 1, SignalOp::add, right);
  ranks.wait_until<Scope::block>(signal, Comparison::ge, 1);
  if (threadIdx.x == 0) ranks.atomic_fetch_add(count, 2, right);
  Team<CudaHeapBlock>(ranks, team).barrier();
}
"""


def nvrtc() -> ctypes.CDLL | None:
    """NVRTC of NVIDIA's packages, else that of the system."""
    beside = [file for folder in PACKAGES for name in NAMES for file in sorted(folder.glob(f"*/lib/{name}"))]
    for file in beside:
        for part in file.parent.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(part))  # which NVRTC then finds by its name
    for name in (*map(str, beside), *NAMES):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def cuda_headers() -> Path | None:
    places = [*(file for folder in PACKAGES for file in folder.glob("*/include")), Path("/usr/local/cuda/include")]
    return next((place for place in places if (place / "cuda_bf16.h").exists()), None)


def compiled(library: ctypes.CDLL, source: str, *options: str) -> tuple[int, str]:
    """NVRTC's answer, 0 for success, and its log."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"put_around.cu", 0, None, None) == 0
    words = [option.encode() for option in options]
    code = library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log.value.decode()


@pytest.mark.parametrize("capability", [80, 90, 100])
def test_nvrtc_compiles_the_device_functions(capability: int) -> None:
    library, headers = nvrtc(), cuda_headers()
    if library is None or headers is None:
        pytest.skip("there is no NVRTC" if library is None else "there are no headers of the CUDA runtime")
    options = (f"--gpu-architecture=sm_{capability}", f"-I{headers}", *ww.nvrtc_options())
    assert compiled(library, KERNEL, *options) == (0, "")
    code, log = compiled(library, KERNEL.replace("SignalOp::add", "SignalOp::sub"), *options)
    assert code != 0 and "sub" in log


def test_the_headers_are_where_the_path_says() -> None:
    assert (ww.include_path() / "waywiser/one_sided.cuh").is_file()
    assert all(
        (ww.include_path() / "waywiser/kernels/rtc" / name).is_file() for name in ("bit", "cstdint", "type_traits")
    )


GPU_PROGRAM = """
import sys, cupy, numpy as np, waywiser as ww
group = ww.join(gpus=ww.cuda_gpus(), timeout=60)
gpu = group.rank % len(ww.cuda_gpus())
cupy.cuda.Device(gpu).use()
heap = ww.Heap(group, "cupy", 1 << 16, gpu=gpu)
team = heap.world()
kernel = cupy.RawKernel(SOURCE, "put_around", options=ww.nvrtc_options())
stream = cupy.cuda.Stream(non_blocking=True)
def parameter(words):
    return np.frombuffer(words, np.dtype((np.void, len(words))))[0]
with stream:
    kernel((1,), (256,), (parameter(heap.terms(stream.ptr)), parameter(team.terms())))
heap.synchronize(stream.ptr)
left = (group.rank - 1) % group.size
taken = heap.array(1000, np.float32, 4096).numpy()
assert (taken == 100 * left + np.arange(1000)).all()
assert heap.array(2, np.uint64, 0).numpy().tolist() == [1, 2]
group.barrier()
print("right")
"""


@pytest.mark.skipif(
    len(_core.discover().ids("gpu")) < 2 or importlib.util.find_spec("cupy") is None, reason="needs two GPUs and CuPy"
)
def test_a_kernel_of_cupy_puts_into_the_other_gpu() -> None:
    program = f"SOURCE = {json.dumps(KERNEL)}\n{GPU_PROGRAM}"
    code, lines, errors = run(2, "", program=program)
    assert (code, lines) == (0, ["right", "right"]), errors
