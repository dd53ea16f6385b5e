"""Two ranks on GPUs, one process each: windows, NaN and signed zero, PyTorch's symmetric memory."""

from __future__ import annotations

import pytest
from gpu_pair import BACKEND, BEGIN, GROUP, gpus, run_pair
from rank_jobs import runtime_folder

__all__ = ["runtime_folder"]


pytestmark = pytest.mark.skipif(gpus() == 0, reason="a GPU and PyTorch are needed")


def test_what_is_got_from_windows_without_a_plan() -> None:
    program = (
        BEGIN
        + GROUP
        + """
import numpy
gpus, other = ww.cuda_gpus(), 1 - R
mine = next(g for g in range(len(gpus)) if gpus.empty(1, "u1", g).__dlpack_device__()[1] == D)
memory = gpus.empty(1 << 22, "f4", mine)
shown = torch.from_dlpack(memory)
shown.fill_(R + 5)
torch.cuda.synchronize()
window = group.expose(memory)
group.barrier()
for count in (1, 1000, 1 << 18, (1 << 18) + 1, 1 << 20):
    on_gpu, on_host = torch.zeros(count, device=dev), numpy.zeros(count, "f4")
    group.get(on_gpu, window, other, 4)
    group.get(on_host, window, other, 4)
    assert bool((on_gpu == other + 5).all()) and bool((on_host == other + 5).all()), count
    group.barrier()
print("right")
"""
    )
    for rank in run_pair(program, 60):
        assert rank.out == "right\n", rank


def test_nan_and_signed_zero_are_alike_at_all_ranks() -> None:
    program = (
        BEGIN
        + GROUP
        + """
nan, zero = float("nan"), 0.0
ours = [[nan, 1, zero, -zero, nan, -zero, -1, float("inf")], [1, nan, -zero, zero, nan, -zero, nan, nan]]
for repeats in (10, 5000, 50000, 400000):  # by each method
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for op, torch_op in (("min", torch.minimum), ("max", torch.maximum)):
            a, b = (torch.tensor(each, device=dev, dtype=dtype).repeat(repeats) for each in ours)
            results = []
            for mine in (R, 1 - R):
                out = torch.empty_like(a)
                group.all_reduce((a, b)[mine], out, op)
                results.append(out)
            assert torch.equal(results[0].view(torch.uint8), results[1].view(torch.uint8)), (repeats, dtype, op)
            assert torch.equal(results[0].isnan(), torch_op(a, b).isnan()), (repeats, dtype, op)
            assert bool(results[0][2].signbit()) == bool(results[0][3].signbit()) == (op == "min"), (repeats, dtype, op)
print("right")
"""
    )
    for rank in run_pair(program, 60):
        assert rank.out == "right\n", rank


def test_symmetric_memory_on_a_group_of_the_back_end_works_or_says_why_not() -> None:
    program = (
        BEGIN
        + BACKEND
        + """
import torch.distributed._symmetric_memory as symmetric
shared = symmetric.empty(1024, device=dev)
shared.fill_(R + 1)
try:
    symmetric.rendezvous(shared, dist.group.WORLD.group_name)
except RuntimeError as error:
    print(error)
else:
    dist.barrier()
    total = torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", dist.group.WORLD.group_name)
    assert bool((total == 3).all())
    print("right")
dist.destroy_process_group()
"""
    )
    for rank in run_pair(program, 60):
        assert rank.code == 0, rank
        assert rank.out == "right\n" or "symmetric memory needs a group whose store" in rank.out, rank
