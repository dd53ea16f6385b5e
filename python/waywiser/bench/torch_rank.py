"""A rank of torch.distributed: gloo for host memory, nccl for GPUs.

`python -m waywiser.bench.torch_rank SOCKET RANK SIZE FILE host|gpu`; FILE is where the ranks meet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from waywiser.bench.python_rank import compute_beside, serve
from waywiser.bench.rank_request import BOTH_WAYS, MESSAGES, NotThere, Place, Request


class Torch:
    """Tensors on the host or on this rank's GPU. Calls on a GPU run in the order of its stream; `finish` waits."""

    def __init__(self, rank: int, size: int, file: str, memory: str) -> None:
        import torch  # type: ignore[import-not-found,unused-ignore]
        import torch.distributed as dist  # type: ignore[import-not-found,unused-ignore]

        self._torch, self._dist = torch, dist
        self.memory = memory
        self.rank, self.size = rank, size
        backend = "nccl" if memory == "gpu" else "gloo"
        self.version = f"torch {torch.__version__} {backend}"
        if memory == "gpu":
            torch.cuda.set_device(rank % torch.cuda.device_count())
        dist.init_process_group(backend, init_method=f"file://{file}", rank=rank, world_size=size)
        self.barrier()

    def array(self, count: int, numbers: bool, memory: str) -> Any:
        kind = self._torch.float32 if numbers else self._torch.uint8
        return self._torch.ones(count, dtype=kind, device="cuda" if memory == "gpu" else "cpu")

    def write(self, array: Any, values: Any) -> None:
        array[: len(values)].copy_(self._torch.from_numpy(values))
        self.finish()

    def read(self, array: Any) -> Any:
        return array.cpu().numpy()

    def barrier(self) -> None:
        self._dist.barrier()
        self.finish()

    def finish(self) -> None:
        if self.memory == "gpu":
            self._torch.cuda.synchronize()

    def record(self, calls: Callable[[], None]) -> Callable[[], None]:
        graph = self._torch.cuda.CUDAGraph()
        with self._torch.cuda.graph(graph, capture_error_mode="thread_local"):
            calls()
        return graph.replay  # type: ignore[no-any-return,unused-ignore]

    def call(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        if request.operation in MESSAGES:
            return self._message(request, place, give, take)
        made = self._collective(request, give, take)
        if made is None:
            raise NotThere("torch.distributed has nothing like it")
        try:
            made()  # at all ranks, since gloo lacks some operations
            self.finish()
        except (RuntimeError, NotImplementedError) as error:
            raise NotThere(str(error).split("\n")[0][:120]) from error
        return made

    def _collective(self, request: Request, give: Any, take: Any) -> Callable[[], object] | None:
        dist, root = self._dist, 0

        def all_reduce() -> None:  # only in place
            take.copy_(give)
            dist.all_reduce(take)

        def reduce() -> None:
            take.copy_(give)
            dist.reduce(take, root)

        def overlap_all_reduce() -> None:
            take.copy_(give)
            work = dist.all_reduce(take, async_op=True)
            compute_beside(request.compute, work.is_completed)
            work.wait()

        at_root = self.rank == root
        calls: dict[str, Callable[[], object]] = {
            "barrier": dist.barrier,
            "broadcast": lambda: dist.broadcast(take, root),
            "reduce": reduce,
            "all_reduce": all_reduce,
            "overlap_all_reduce": overlap_all_reduce,
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(take, give),
            "all_gather": lambda: dist.all_gather_into_tensor(take, give),
            "all_to_all": lambda: dist.all_to_all_single(take, give),
            "gather": lambda: dist.gather(give, list(take.chunk(self.size)) if at_root else None, root),
            "scatter": lambda: dist.scatter(take, list(give.chunk(self.size)) if at_root else None, root),
        }
        return calls.get(request.operation)

    def _message(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        dist, other = self._dist, place.other
        both = request.operation in BOTH_WAYS
        answer = self.array(4, False, self.memory)

        def ping_pong() -> None:
            if place.first:
                dist.send(give, other)
            dist.recv(take, other)
            if not place.first:
                dist.send(give, other)

        def streaming() -> None:
            window = range(request.window)
            wanted = [dist.P2POp(dist.irecv, take, other) for _ in window if both or not place.first]
            wanted += [dist.P2POp(dist.isend, give, other) for _ in window if both or place.first]
            under_way = dist.batch_isend_irecv(wanted)
            if request.operation == "overlap":
                compute_beside(request.compute, lambda: all(work.is_completed() for work in under_way))
            for work in under_way:
                work.wait()
            if request.operation == "overlap":
                return
            if place.first:
                dist.recv(answer, other)
            else:
                dist.send(answer, other)

        return ping_pong if "latency" in request.operation else streaming


def main() -> None:
    """Arguments: socket, rank, size, file, memory."""
    serve(sys.argv[1], Torch(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5]))


if __name__ == "__main__":
    main()
