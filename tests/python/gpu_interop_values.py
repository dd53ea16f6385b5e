"""The ranks of gpu_interop.py, and arrays whose results are known."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

ON_GPU = os.environ.get("WAYWISER_INTEROP_DEVICE", "cuda") == "cuda"
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if ON_GPU else torch.device("cpu")
TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
         torch.uint8)  # fmt: skip
COUNTS = (1, 1000, 300_001)
OPS = {"sum": dist.ReduceOp.SUM, "prod": dist.ReduceOp.PRODUCT, "min": dist.ReduceOp.MIN, "max": dist.ReduceOp.MAX}


def made(count: int, dtype: torch.dtype, rank: int = RANK, device: torch.device = DEVICE) -> torch.Tensor:
    """Small whole numbers, so that every order of adding gives the same bits."""
    return ((torch.arange(count, device=device) * 7 + 3 * rank) % 4).to(dtype)


def combined(count: int, dtype: torch.dtype, op: str) -> torch.Tensor:
    """PyTorch's result for all ranks' arrays."""
    everyone = torch.stack([made(count, torch.int64, rank) for rank in range(SIZE)])
    if op == "prod":
        return everyone.prod(0).to(dtype)
    if op == "sum":
        return everyone.sum(0).to(dtype)
    return (everyone.amin(0) if op == "min" else everyone.amax(0)).to(dtype)


def equal(one: torch.Tensor, other: torch.Tensor) -> None:
    if one.dtype != other.dtype or not torch.equal(one, other):
        raise AssertionError(f"{one.flatten()[:4].tolist()} is not {other.flatten()[:4].tolist()}")
