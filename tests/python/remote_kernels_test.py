"""Kernels that a client gives to a server: what is refused here, and on a GPU what they compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from prebuilt import AXPY, axpy_fatbin
from rank_jobs import runtime_folder
from remote_gpu import Server, server

import waywiser as ww
from waywiser import _core

__all__ = ["runtime_folder", "server"]
pytestmark = pytest.mark.usefixtures("runtime_folder")
needs_gpu = pytest.mark.skipif(not _core.discover().ids("gpu"), reason="this machine has no GPU")

TOTAL = """
extern "C" __global__ void total(const double* x, double* sum, long n) {
  extern __shared__ double part[];
  double mine = 0;
  for (long i = threadIdx.x; i < n; i += blockDim.x) mine += x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  if (threadIdx.x == 0) for (int i = 0; i < blockDim.x; ++i) *sum += part[i];
}
"""
SOURCE = AXPY + TOTAL
# y[i] = factor for all threads of one block.
PTX = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 fill_param_0, .param .f32 fill_param_1)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r1;
  .reg .f32 %f1;
  ld.param.u64 %rd1, [fill_param_0];
  ld.param.f32 %f1, [fill_param_1];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
  ret;
}
"""


def test_a_virtual_gpu_refuses_kernels_in_one_line(server: Server) -> None:
    with ww.remote(server.address, key=server.key) as gpu:
        x = gpu.array(np.ones(4))
        for code in (SOURCE, PTX, b"\x7fELF"):
            with pytest.raises(ww.UnavailableError, match=r"kernels: CUDA kernels need a GPU .* --virtual$"):
                gpu.launch(ww.CudaKernel(code, "axpy"), x, grid=1, block=1)
        np.testing.assert_array_equal(x.get(), np.ones(4))


def test_a_server_of_builtins_only_takes_no_kernels(tmp_path: Path) -> None:
    server = Server(tmp_path, "--builtins-only")
    with ww.remote(server.address, key=server.key) as gpu:
        with pytest.raises(ww.UnavailableError, match=r"kernels: this server was started with --builtins-only: "):
            gpu.launch(ww.CudaKernel(PTX, "fill"), grid=1, block=1)
        gpu.synchronize()
    assert server.close() == (0, "")


def test_what_is_no_kernel_or_argument_is_refused_here(server: Server) -> None:
    kernel = ww.CudaKernel(SOURCE, "axpy")
    with ww.remote(server.address, key=server.key) as gpu, ww.remote(server.address, key=server.key) as other:
        for grid in (0, (), (1, 1, 1, 1), -1, 1 << 31, (1, 0), 1.5):
            with pytest.raises(ww.InputError, match=r"grid=.*: write one to three whole numbers, from 1"):
                gpu.launch(kernel, grid=grid, block=1)  # type: ignore[arg-type]
        with pytest.raises(ww.InputError, match="block="):
            gpu.launch(kernel, grid=1, block=0)
        with pytest.raises(ww.InputError, match="shared="):
            gpu.launch(kernel, grid=1, block=1, shared=-1)
        for value, words in (
            ("text", "argument 1 of a kernel is an array of this GPU or a number, not 'text'"),
            (True, "or a number, not True"),
            (np.ones(3), "or a number, not array"),
            (1 << 31, r"argument 1 is no int32: write numpy.int64\(2147483648\)"),
            (np.int16(3), "argument 1 is a int16: a kernel takes"),
            (np.complex64(3), "argument 1 is a complex64: a kernel takes"),
            (other.zeros(3), "an array of another remote GPU"),
        ):
            with pytest.raises(ww.InputError, match=words):
                gpu.launch(kernel, value, grid=1, block=1)  # type: ignore[arg-type]
        gpu.synchronize()
    for code, name in (("", "f"), (b" " * ((4 << 20) + 1), "f"), ("code", ""), ("code", "f" * 65)):
        with pytest.raises(ww.InputError, match="has 1 to"):
            ww.CudaKernel(code, name)


@needs_gpu
def test_ptx_runs_on_a_gpu(tmp_path: Path) -> None:
    server = Server(tmp_path, gpus=())
    fill = ww.CudaKernel(PTX, "fill")
    with ww.remote(server.address, key=server.key) as gpu:
        x = gpu.zeros(100, np.float32)
        gpu.launch(fill, x, np.float32(2.5), grid=1, block=64)
        np.testing.assert_array_equal(x.get(), np.r_[np.full(64, 2.5), np.zeros(36)].astype(np.float32))
        gpu.launch(fill, x, 2.5, grid=1, block=64)
        with pytest.raises(ww.InputError, match=r"fill: argument 2 is a float64, and the kernel takes a \.f32 there"):
            gpu.synchronize()
        with pytest.raises(ww.InputError, match="kernels: the driver does not take it"):
            gpu.launch(ww.CudaKernel(PTX.replace("ret", "no_such_word"), "fill"), x, grid=1, block=1)
        gpu.launch(fill, x, np.float32(1), grid=1, block=100)
        np.testing.assert_array_equal(gpu.run("add", x, x).get(), np.full(100, 2, np.float32))
        assert gpu.account()["device"] > 0
    assert server.close() == (0, "")


@needs_gpu
def test_cuda_source_is_compiled_and_runs_on_a_gpu(tmp_path: Path) -> None:
    server = Server(tmp_path, gpus=())
    n = 100_000
    a, b = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
    with ww.remote(server.address, key=server.key) as gpu:
        y, x, sums = gpu.array(a), gpu.array(b), gpu.zeros(1)
        try:
            gpu.launch(ww.CudaKernel(SOURCE, "axpy"), y, x, np.float32(0.5), n, grid=(n + 255) // 256, block=256)
        except ww.UnavailableError as error:
            pytest.skip(str(error))
        np.testing.assert_array_equal(y.get(), a + np.float32(0.5) * b)
        values = gpu.array(np.arange(1000.0))
        gpu.launch(ww.CudaKernel(SOURCE, "total"), values, sums, np.int64(1000), grid=1, block=128, shared=1024)
        assert sums.get()[0] == 999 * 500
        gpu.launch(ww.CudaKernel(SOURCE, "nothing"), grid=1, block=1)
        with pytest.raises(ww.InputError, match="the code has no kernel of this name, but axpy, total;"):
            gpu.synchronize()
        gpu.launch(ww.CudaKernel(SOURCE, "axpy"), y, x, grid=1, block=1)
        with pytest.raises(ww.InputError, match="axpy: it takes 4 arguments, not 2"):
            gpu.synchronize()
        with pytest.raises(ww.InputError, match=r'it does not compile\nsource.cu\(1\): error: .*"wrong"'):
            gpu.launch(ww.CudaKernel('extern "C" __global__ void f() { wrong(); }', "f"), grid=1, block=1)
        np.testing.assert_array_equal(x.get(), b)
    assert server.close() == (0, "")


@needs_gpu
def test_streams_run_at_once_on_a_gpu(tmp_path: Path) -> None:
    """A kernel waits for one of another stream, which could not run behind it."""
    server = Server(tmp_path, gpus=())
    source = """
    extern "C" __global__ void wait_for_it(int* flag) { while (atomicAdd(flag, 0) == 0) __nanosleep(1000); }
    extern "C" __global__ void set_it(int* flag) { atomicExch(flag, 1); }
    """
    waits, sets = ww.CudaKernel(source, "wait_for_it"), ww.CudaKernel(source, "set_it")
    with ww.remote(server.address, key=server.key, timeout=30) as gpu:
        flag = gpu.zeros(1, np.int32)
        one, two = gpu.stream(), gpu.stream()
        begun, over, set_there = gpu.event(), gpu.event(), gpu.event()
        try:
            gpu.launch(sets, gpu.zeros(1, np.int32), grid=1, block=1)  # compiles
        except ww.UnavailableError as error:
            pytest.skip(str(error))
        gpu.synchronize()
        one.record(begun)
        one.launch(waits, flag, grid=1, block=1)
        one.record(over)
        two.launch(sets, flag, grid=1, block=1)
        two.record(set_there)
        two.synchronize()
        one.synchronize()
        assert over.seconds_since(begun) > 0
        set_there.synchronize()
        three = gpu.stream()
        three.wait(over)
        assert three.get(flag)[0] == 1
    assert server.close() == (0, "")


@needs_gpu
def test_a_fatbin_runs_on_a_gpu(tmp_path: Path) -> None:
    fatbin = axpy_fatbin(tmp_path)
    server = Server(tmp_path, gpus=())
    with ww.remote(server.address, key=server.key) as gpu:
        y, x = gpu.zeros(100, np.float32), gpu.array(np.ones(100, np.float32))
        kernel = ww.CudaKernel(fatbin.read_bytes(), "axpy")
        gpu.launch(kernel, y, x, np.float32(3), 100, grid=1, block=128)
        np.testing.assert_array_equal(y.get(), np.full(100, 3, np.float32))
    assert server.close() == (0, "")


@needs_gpu
def test_a_kernel_that_fails_costs_its_own_client_only(tmp_path: Path) -> None:
    server = Server(tmp_path, gpus=())
    with ww.remote(server.address, key=server.key) as other:
        kept = other.array(np.ones(10, np.float32))
        gpu = ww.remote(server.address, key=server.key)
        gpu.launch(ww.CudaKernel(PTX.replace(".u64 fill_param_0", ".s64 fill_param_0"), "fill"), np.int64(8),
                   np.float32(1), grid=1, block=1)  # fmt: skip
        with pytest.raises(ww.Error, match=r"\(under way: fill\)"):
            gpu.synchronize()
        gpu.close()
        np.testing.assert_array_equal(kept.get(), np.ones(10, np.float32))
    assert server.close() == (0, "")
