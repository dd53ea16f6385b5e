"""Tensors of PyTorch in the calls of a group."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from one_rank import alone, gpus
from rank_jobs import HAS_TORCH, runtime_folder

import waywiser as ww

__all__ = ["alone", "gpus", "runtime_folder"]


@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch is not installed")
def test_tensors_of_pytorch(alone: ww.Group) -> None:
    import torch

    signed = ("float64", "float32", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")
    for name in (*signed, "uint16", "uint32", "uint64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"):
        tensor = torch.ones(3, 2).to(getattr(torch, name))
        for result in (alone.all_reduce(tensor), alone.start_all_reduce(tensor).wait()):
            assert isinstance(result, torch.Tensor) and torch.equal(result, tensor), name
    gathered = alone.all_gather(torch.ones(2, dtype=torch.bfloat16))
    assert (gathered.shape, gathered.dtype) == ((1, 2), torch.bfloat16)
    for bad, words in (
        (torch.ones(2, device="meta"), "Cannot pack tensors on meta"),
        (torch.ones(3, 2).T, "contiguous"),
    ):
        with pytest.raises(RuntimeError, match=words):
            alone.broadcast(bad)
    assert "cupy" not in sys.modules


class _MadeUpType:
    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


@pytest.mark.parametrize(
    ("name", "same"),
    [("int32", np.int32), ("uint16", np.uint16), ("uint64", np.uint64), ("complex64", np.complex64)],
)
def test_a_tensor_is_read_by_its_attributes(alone: ww.Group, name: str, same: Any) -> None:
    """A type of a made-up PyTorch, for tests without PyTorch."""
    values = np.arange(5).astype(same)

    class Tensor:
        is_cuda, is_cpu, dtype, nbytes = False, True, _MadeUpType(name), values.nbytes

        def is_conj(self) -> bool:
            return False

        def is_neg(self) -> bool:
            return False

        def is_contiguous(self) -> bool:
            return True

        def data_ptr(self) -> int:
            return int(values.ctypes.data)

    Tensor.__module__ = "torch"
    out = np.zeros(5, same)
    alone.all_reduce(Tensor(), out)
    assert out.tolist() == [0, 1, 2, 3, 4]
