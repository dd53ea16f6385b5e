"""Calls of the back end that only begin, in gpu_interop.py."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist
from gpu_interop_values import DEVICE, RANK, SIZE, equal


def asynchronous() -> dict[str, Any]:
    """Begun work goes on beside kernels of the current stream, and its memory is not used again too early: the current
    stream sleeps after each call, and the tensors that only the work still has are let go at once.
    """
    count = 1 << 20
    ended = torch.cuda.Event()
    data = torch.full((count,), RANK + 1.0, device=DEVICE)
    dist.all_reduce(data.clone(), async_op=True).wait()  # sets up
    torch.cuda.synchronize()
    work = dist.all_reduce(data, async_op=True)
    torch.cuda._sleep(1_000_000_000)
    ended.record()
    deadline = time.monotonic() + 30
    while not work.is_completed():
        assert time.monotonic() < deadline
    apart = not ended.query()
    assert apart
    work.wait()
    equal(data, torch.full_like(data, SIZE * (SIZE + 1) / 2))
    works, results = [], []
    for turn in range(20):
        temporary = torch.full((count,), float(turn), device=DEVICE)
        results.append(torch.empty(count * SIZE, device=DEVICE))
        works.append(dist.all_gather_into_tensor(results[-1], temporary, async_op=True))
        del temporary
        torch.full((count,), -1.0, device=DEVICE)  # would be in the same memory
    for work in works:
        work.wait()
    for turn, result in enumerate(results):
        equal(result, torch.full_like(result, float(turn)))
    with dist._coalescing_manager(device=DEVICE, async_ops=True) as manager:
        dist.all_reduce(first := torch.ones(3, device=DEVICE))
        dist.all_reduce(second := torch.ones(5, device=DEVICE) * RANK)
    manager.wait()
    equal(first, torch.full_like(first, SIZE))
    equal(second, torch.full_like(second, SIZE * (SIZE - 1) / 2))
    dist.all_reduce(first, dist._make_nccl_premul_sum(0.5))
    equal(first, torch.full_like(first, SIZE * SIZE / 2))
    several = [[torch.empty(3, device=DEVICE), torch.empty(2, device=DEVICE)] for _ in range(SIZE)]
    dist.all_gather_coalesced(several, [torch.full((3,), RANK + 1.0, device=DEVICE), torch.zeros(2, device=DEVICE)])
    equal(several[SIZE - 1][0], torch.full((3,), float(SIZE), device=DEVICE))
    return {"fact": "an all_reduce has ended while the current stream was busy", "value": apart}
