"""The soak's operations with arrays on a GPU: calls that wait, calls in a stream, and graphs where there is PyTorch."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from operations import REDUCTIONS, Array, Program

import waywiser as ww

KINDS = ("sendrecv", "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier",
         "window", "stream", "graph")  # fmt: skip


class GpuArrays:
    """Arrays of the package, on this rank's GPU."""

    def __init__(self, gpus: ww.Gpus) -> None:
        self.gpus = gpus
        self.gpu = int(os.environ["WAYWISER_LOCAL_RANK"]) % len(gpus)

    def make(self, values: Array) -> Any:
        return self.gpus.array(values, self.gpu)

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self.make(np.full(shape, 77).astype(dtype))

    def values(self, array: Any) -> Array:
        return np.asarray(array.numpy())


class GpuProgram(Program):
    def __init__(self, group: ww.Group, seed: int, largest: int, arrays: GpuArrays) -> None:
        kinds = KINDS if _torch_sees_gpus(arrays.gpus) else KINDS[:-1]
        super().__init__(group, seed, largest, arrays, kinds)
        self.stream = arrays.gpus.open_stream(arrays.gpu)
        # Messages on streams need a collective before them, and NCCL takes memory and threads at the first large one.
        group.all_reduce(arrays.make(np.zeros(max(largest, 1 << 23), np.float64)))

    def _do_stream(self, group: ww.Group) -> None:
        """Some calls one after another in a stream; nobody waits before the last."""
        wanted = []
        for _ in range(self.shared.randint(1, 6)):
            dtype, data = self._drawn(group)
            mine, out = self.arrays.make(data[group.rank]), self.arrays.empty(data[0].shape, dtype)
            if self.shared.random() < 0.5:
                group.all_reduce(mine, out, stream=self.stream)
                wanted.append((out, REDUCTIONS["sum"](data), mine))
            else:
                to, source = (group.rank + 1) % group.size, (group.rank - 1) % group.size
                group.sendrecv(mine, to, out, source, stream=self.stream)
                wanted.append((out, data[source], mine))
        for out, values, _ in wanted:
            group.synchronize(out, stream=self.stream)
            self._expect(out, values)

    def _do_graph(self, group: ww.Group) -> None:
        """A captured all_reduce, replayed with other data each time."""
        import torch

        device, count = torch.device("cuda", self.arrays.gpu), max(1, self._count())
        mine = torch.zeros(count, dtype=torch.int32, device=device)
        out = torch.zeros_like(mine)
        group.all_reduce(mine, out)  # sets up
        torch.cuda.synchronize(device)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(device), torch.cuda.graph(graph):
            group.all_reduce(mine, out)
        for turn in range(self.shared.randint(1, 8)):
            data = [self._data(rank, count, "int32", turn) for rank in range(group.size)]
            mine.copy_(torch.from_numpy(data[group.rank]))
            graph.replay()
            group.synchronize(out)
            self._expect_values(out.cpu().numpy(), REDUCTIONS["sum"](data))


def _torch_sees_gpus(gpus: ww.Gpus) -> bool:
    if gpus.backend != "cuda":
        return False
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def gpu_program(group: ww.Group, gpus: ww.Gpus, wanted: dict[str, Any]) -> Program:
    return GpuProgram(group, wanted["seed"], wanted["largest"], GpuArrays(gpus))
