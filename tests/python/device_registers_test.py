"""What calls inside kernels cost a kernel: registers and stack after device linking, as the compiler says. No GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from consumers import nvcc
from nvshmem_test import ROOT, said

# A kernel that takes at most so many registers has two blocks of 1,024 threads on a processor, or one.
TWO_BLOCKS, ONE_BLOCK = 32, 64
KERNELS = {
    "stencil": ("float* now, float* next, int rows, int columns, int above, int below", """
  const int column = blockIdx.x * blockDim.x + threadIdx.x + 1, row = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (column >= columns - 1 || row >= rows - 1) return;
  const float* at = now + row * columns + column;
  const float value = 0.25f * (at[-1] + at[1] + at[-columns] + at[columns]);
  next[row * columns + column] = value;
  if (row == 1) nvshmem_float_p(next + (rows - 1) * columns + column, value, above);
  if (row == rows - 2) nvshmem_float_p(next + column, value, below);""", TWO_BLOCKS),
    "p": ("float* to, float value, int pe", "nvshmem_float_p(to + threadIdx.x, value, pe);", TWO_BLOCKS),
    "g": ("float* to, float* from, int pe", "*to = nvshmem_float_g(from, pe);", TWO_BLOCKS),
    "atomic_add": ("int* to, int value, int pe", "nvshmem_int_atomic_add(to, value, pe);", TWO_BLOCKS),
    "atomic_fetch_add": ("int* to, int* old, int pe", "*old = nvshmem_int_atomic_fetch_add(to, 3, pe);", TWO_BLOCKS),
    "signal_wait_until": ("uint64_t* word", "nvshmem_signal_wait_until(word, NVSHMEM_CMP_GE, 1);", TWO_BLOCKS),
    "quiet": ("", "nvshmem_quiet();", ONE_BLOCK),
    "barrier_block": ("", "nvshmemx_barrier_all_block();", ONE_BLOCK),
    "team_sync_block": ("int team", "nvshmemx_team_sync_block(team);", ONE_BLOCK),
    "put_block": ("float* to, float* from, size_t n, int pe", "nvshmemx_float_put_block(to, from, n, pe);", ONE_BLOCK),
    "put_signal_block": ("float* to, float* from, size_t n, uint64_t* word, int pe",
                         "nvshmemx_float_put_signal_block(to, from, n, word, 1, NVSHMEM_SIGNAL_SET, pe);", ONE_BLOCK),
    "broadcast_block": ("float* to, float* from, size_t n", "nvshmemx_float_broadcast_block(0, to, from, n, 0);",
                        ONE_BLOCK),
    "fcollect_block": ("float* to, float* from, size_t n", "nvshmemx_float_fcollect_block(0, to, from, n);", ONE_BLOCK),
    "alltoall_block": ("float* to, float* from, size_t n", "nvshmemx_float_alltoall_block(0, to, from, n);", ONE_BLOCK),
    "sum_block": ("float* to, float* from, size_t n", "nvshmemx_float_sum_reduce_block(0, to, from, n);", ONE_BLOCK),
}  # fmt: skip
# NVSHMEM's calls of one word need none.
WITHOUT_STACK = [name for name, (_, _, most) in KERNELS.items() if most == TWO_BLOCKS]


def used(names: list[str], folder: Path, *options: str) -> dict[str, tuple[int, int]]:
    """Of each kernel: registers and bytes of stack, with all that it calls."""
    compiler = Path(nvcc())
    bodies = [f'extern "C" __global__ void {name}({KERNELS[name][0]}) {{ {KERNELS[name][1]} }}' for name in names]
    (folder / "calls.cu").write_text("\n".join(["#include <waywiser/nvshmem.h>", *bodies]))
    code, text = said(compiler, "-std=c++20", "-arch=sm_90", "-rdc=true", "-cubin", f"-I{ROOT / 'src'}", *options,
                      "-o", folder / "calls.cubin", folder / "calls.cu")  # fmt: skip
    assert (code, text) == (0, "")
    linker = compiler.resolve().parent / "nvlink"
    code, text = said(linker, "-arch=sm_90", "-v", "-o", folder / "linked", folder / "calls.cubin")
    assert code == 0, text
    found = re.findall(r"properties for '?(\w+)'?:\s*\n.*?used (\d+) registers.*?(\d+) stack", text)
    return {name: (int(registers), int(stack)) for name, registers, stack in found}


def check(names: list[str], folder: Path, *options: str) -> None:
    costs = used(names, folder, *options)
    assert set(costs) == set(names)
    assert {name: cost for name, cost in costs.items() if cost[0] > KERNELS[name][2]} == {}
    assert {name: cost for name, cost in costs.items() if name in WITHOUT_STACK and cost[1] > 0} == {}


def test_calls_leave_a_kernel_its_registers(tmp_path: Path) -> None:
    check(["stencil", "atomic_fetch_add", "barrier_block", "put_block", "sum_block"], tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("-DWAYWISER_NO_PROXY",)], ids=["proxy", "no proxy"])
def test_all_calls_leave_a_kernel_its_registers(options: tuple[str, ...], tmp_path: Path) -> None:
    check(list(KERNELS), tmp_path, *options)
