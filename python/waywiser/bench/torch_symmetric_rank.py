"""A rank of PyTorch's symmetric memory: kernels that read and write the memory of other GPUs.

`python -m waywiser.bench.torch_symmetric_rank SOCKET RANK SIZE FILE gpu one-shot|two-shot`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from waywiser.bench.python_rank import serve
from waywiser.bench.rank_request import BOTH_WAYS, NotThere, Place, Request
from waywiser.bench.symmetric_slots import SymmetricSlots
from waywiser.bench.torch_rank import Torch

# No multicast; NCCL serves only the barrier between samples; each buffer is a separate allocation.
_ENVIRONMENT = {
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMMMEM_IMPLICIT_POOL": "0",
}
_MESSAGES, _ANSWERS = 0, 1  # channels


class TorchSymmetric(Torch):
    """All arrays are symmetric. Operations common to one-shot and two-shot are timed once, by one-shot."""

    def __init__(self, rank: int, size: int, file: str, memory: str, variant: str) -> None:
        os.environ.update(_ENVIRONMENT)
        super().__init__(rank, size, file, memory)
        import torch.distributed._symmetric_memory as symmetric  # type: ignore[import-not-found,unused-ignore]

        self._symmetric, self._two_shot = symmetric, variant == "two-shot"
        self._group = self._dist.group.WORLD.group_name
        self._operations = self._torch.ops.symm_mem
        self._slots: SymmetricSlots[tuple[Any, Any]] = SymmetricSlots(self._allocate, self._forget)
        self._handles: dict[int, Any] = {}
        self.version = f"torch {self._torch.__version__} symmetric memory, {variant}"

    def _allocate(self, size: int) -> tuple[Any, Any]:
        """Called by all ranks: makes a buffer and the handle by which the other ranks' buffers are reached."""
        device = self._torch.device("cuda", self._torch.cuda.current_device())
        buffer = self._symmetric.empty(size, dtype=self._torch.uint8, device=device)
        return buffer, self._symmetric.rendezvous(buffer, self._group)

    def _forget(self, slot: tuple[Any, Any]) -> None:
        del self._handles[_where(slot[0])]

    def array(self, count: int, numbers: bool, memory: str) -> Any:
        size = 4 * count if numbers else count
        buffer, handle = self._slots.take(size)
        self._handles[_where(buffer)] = handle
        return buffer[:size].view(self._torch.float32) if numbers else buffer[:size]

    def _collective(self, request: Request, give: Any, take: Any) -> Callable[[], object] | None:
        if self._two_shot and request.operation in ("barrier", "all_gather"):
            raise NotThere("is timed with torch-one-shot")
        calls = self._two_shot_calls(give, take) if self._two_shot else self._one_shot_calls(give, take)
        return calls.get(request.operation)

    def _two_shot_calls(self, give: Any, take: Any) -> dict[str, Callable[[], object]]:
        def all_reduce() -> None:  # even with another output it overwrites its input
            take.copy_(give)
            self._operations.two_shot_all_reduce_(take, "sum", self._group)

        return {
            "all_reduce": all_reduce,
            "reduce_scatter": lambda: self._operations.reduce_scatter_out(give, self._group, False, take),
        }

    def _one_shot_calls(self, give: Any, take: Any) -> dict[str, Callable[[], object]]:
        handle = self._handles[_where(take)]
        wait = self._torch.ops._c10d_functional.wait_tensor

        def low_contention(operation: Any, *arguments: Any) -> Callable[[], object]:
            return lambda: take.set_(wait(operation(give, *arguments, self._group)))  # the result is a new tensor

        return {
            "barrier": handle.barrier,
            "all_reduce": lambda: self._operations.one_shot_all_reduce_out(give, "sum", self._group, take),
            "all_gather": low_contention(self._operations._low_contention_all_gather),
            "reduce_scatter": low_contention(self._operations._low_contention_reduce_scatter, "sum"),
        }

    def _message(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        if request.operation == "overlap":
            raise NotThere("work on a stream overlaps by itself")
        if self._two_shot:
            raise NotThere("is timed with torch-one-shot")
        handle, other = self._handles[_where(take)], place.other
        theirs = handle.get_buffer(other, take.shape, take.dtype)
        both = request.operation in BOTH_WAYS
        gives, takes = both or place.first, both or not place.first

        def send(window: int) -> None:
            for _ in range(window):
                theirs.copy_(give)
            handle.put_signal(other, _MESSAGES)

        def ping_pong() -> None:
            if place.first:
                send(1)
            handle.wait_signal(other, _MESSAGES)
            if not place.first:
                send(1)

        def streaming() -> None:
            if gives:
                send(request.window)
            if takes:
                handle.wait_signal(other, _MESSAGES)
                handle.put_signal(other, _ANSWERS)
            if gives:
                handle.wait_signal(other, _ANSWERS)

        return ping_pong if "latency" in request.operation else streaming


def _where(array: Any) -> int:
    """The start of the array's buffer; an empty array has no address of its own."""
    return int(array.untyped_storage().data_ptr())


def main() -> None:
    """Arguments: socket, rank, size, file, memory, variant."""
    rank, size, file, memory, variant = sys.argv[2:]
    serve(sys.argv[1], TorchSymmetric(int(rank), int(size), file, memory, variant))


if __name__ == "__main__":
    main()
