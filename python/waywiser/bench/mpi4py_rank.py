"""A rank of mpi4py's MPI, used if there is no mpicc.

`mpirun -n N python -m waywiser.bench.mpi4py_rank SOCKET`. Python's part of a call (about half a microsecond) is in its
times.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy

from waywiser.bench.python_rank import compute_beside, serve
from waywiser.bench.rank_request import BOTH_WAYS, MESSAGES, NotThere, Place, Request


class Mpi:
    """mpi4py with NumPy arrays."""

    memory = "host"

    def __init__(self) -> None:
        from mpi4py import MPI  # type: ignore[import-not-found,unused-ignore]

        self._mpi = MPI
        self._world = MPI.COMM_WORLD
        self.rank, self.size = int(self._world.rank), int(self._world.size)
        self.version = MPI.Get_library_version().split(",")[0].split("\n")[0] + " through mpi4py"

    def array(self, count: int, numbers: bool, memory: str) -> Any:
        return numpy.ones(count, numpy.float32 if numbers else numpy.uint8)

    def write(self, array: Any, values: Any) -> None:
        array[: len(values)] = values

    def read(self, array: Any) -> Any:
        return array

    def barrier(self) -> None:
        self._world.Barrier()

    def finish(self) -> None:
        """Does nothing: calls are complete when they return."""

    def record(self, calls: Callable[[], None]) -> Callable[[], None]:
        raise NotThere("nothing is enqueued")

    def call(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        world, root = self._world, 0
        if request.operation in MESSAGES:
            return self._message(request, place, give, take)
        calls: dict[str, Callable[[], object]] = {
            "barrier": world.Barrier,
            "broadcast": lambda: world.Bcast(take, root),
            "reduce": lambda: world.Reduce(give, take, root=root),
            "all_reduce": lambda: world.Allreduce(give, take),
            "reduce_scatter": lambda: world.Reduce_scatter_block(give, take),
            "scan": lambda: world.Scan(give, take),
            "exscan": lambda: world.Exscan(give, take),
            "all_gather": lambda: world.Allgather(give, take),
            "all_to_all": lambda: world.Alltoall(give, take),
            "gather": lambda: world.Gather(give, take, root),
            "scatter": lambda: world.Scatter(give if self.rank == root else None, take, root),
        }
        if request.operation not in calls:
            raise NotThere("not through mpi4py")
        return calls[request.operation]

    def _message(self, request: Request, place: Place, give: Any, take: Any) -> Callable[[], object]:
        world, other, answer = self._world, place.other, bytearray(4)
        both = request.operation in BOTH_WAYS

        def ping_pong() -> None:
            if place.first:
                world.Send(give, other)
            world.Recv(take, other)
            if not place.first:
                world.Send(give, other)

        def streaming() -> None:
            window = range(request.window)
            under_way = [world.Irecv(take, other) for _ in window if both or not place.first]
            under_way += [world.Isend(give, other) for _ in window if both or place.first]
            if request.operation == "overlap":
                compute_beside(request.compute, lambda: self._mpi.Request.Testall(under_way))
            self._mpi.Request.Waitall(under_way)
            if request.operation == "overlap":
                return
            if place.first:
                world.Recv(answer, other, 1)
            else:
                world.Send(answer, other, 1)

        return ping_pong if "latency" in request.operation else streaming


if __name__ == "__main__":
    serve(sys.argv[1], Mpi())
