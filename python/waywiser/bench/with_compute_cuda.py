"""The CUDA side of `bench --with-compute`: PyTorch computes in one stream, the group's calls have another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from waywiser.bench.with_compute_sides import PERIOD, Computation, Exercise, Times
from waywiser.errors import UnavailableError
from waywiser.group.gpus import Gpus

_MATRIX = 4096
_PIECE = 4 << 20  # bytes of a copy to the host
_RATE = 20e9  # bytes a second of such copies
_CYCLES = 2e9  # of a second, about: how long a stream sleeps
_CALL, _LAUNCH, _START = 30e-6, 10e-6, 1e-3  # seconds that the host needs to enqueue, at most


class _CudaArrays:
    def __init__(self, device: torch.device, stream: Any) -> None:
        self._device, self.stream = device, stream

    def empty(self, count: int) -> Any:
        return torch.empty(count, device=self._device)

    def numbers(self, count: int, first: int) -> Any:
        return ((torch.arange(count, device=self._device, dtype=torch.int32) + first) % PERIOD).float()

    def join(self, parts: list[Any]) -> Any:
        return torch.cat(parts)

    def write(self, array: Any, values: Any) -> None:
        array.copy_(values)
        torch.cuda.synchronize()

    def equal(self, array: Any, values: Any) -> bool:
        return bool(torch.equal(array, values))


class _InStream:
    """Work that is enqueued in a stream of the computation, so many times."""

    def __init__(self, side: CudaSide) -> None:
        self._side, self.repeats = side, 1

    def fit(self, seconds: float, most: Callable[[float], float]) -> None:
        self.repeats = 8
        self._side.at_once(None, self)
        self.repeats = max(1, round(seconds / most(self._side.at_once(None, self)[1] / 8)))

    def run(self) -> float:
        for _ in range(self.repeats):
            self.one()
        return 0.0

    def one(self) -> None: ...

    def clear(self) -> None: ...


class _Products(_InStream):
    """Of two matrices of bfloat16: all multiprocessors."""

    def __init__(self, side: CudaSide) -> None:
        super().__init__(side)
        generator = torch.Generator(side.device).manual_seed(1)
        made = {"device": side.device, "generator": generator, "dtype": torch.bfloat16}
        self._factors = [torch.randn(_MATRIX, _MATRIX, **made) for _ in range(2)]
        self._product = self._factors[0] @ self._factors[1]
        self._expected = self._product.clone()

    def one(self) -> None:
        torch.mm(*self._factors, out=self._product)

    def clear(self) -> None:
        self._product.zero_()

    def is_right(self) -> bool:
        return bool(torch.equal(self._product, self._expected))


class _CopiesToHost(_InStream):
    """A copy engine carries pieces to page-locked memory; the stream sleeps between them, which gives the rate."""

    def __init__(self, side: CudaSide) -> None:
        super().__init__(side)
        self._from = torch.arange(_PIECE, device=side.device, dtype=torch.int32).to(torch.uint8)
        self._to = torch.zeros(_PIECE, dtype=torch.uint8, pin_memory=True)
        self._sleeps = 0.0
        self._expected = self._from.cpu()
        self.repeats = 32
        for _ in range(4):  # the clock of the GPU is not known
            piece = side.at_once(None, self)[1] / self.repeats
            self._sleeps = max(0.0, self._sleeps + _PIECE / _RATE - piece)

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return _PIECE * self.repeats / self._side.at_once(None, self)[1]

    def one(self) -> None:
        self._to.copy_(self._from, non_blocking=True)
        if self._sleeps > 0:
            torch.cuda._sleep(int(self._sleeps * _CYCLES))

    def clear(self) -> None:
        self._to.zero_()

    def is_right(self) -> bool:
        return bool(torch.equal(self._to, self._expected))


class CudaSide:
    """`rank`: its GPU is the one of this number among those that are visible."""

    backend = "cuda"
    gpus: Gpus | None = None

    def __init__(self, rank: int) -> None:
        if not torch.cuda.is_available():
            raise UnavailableError("--with-compute: PyTorch finds no GPU")
        self.device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(self.device)
        self._calls = torch.cuda.Stream(self.device, priority=-1)  # as the back end of torch.distributed
        self._computing = torch.cuda.Stream(self.device)

    def exercise(self, operation: str, length: int, rank: int, size: int) -> Exercise:
        return Exercise(_CudaArrays(self.device, self._calls), operation, length, rank, size)

    def computation(self, name: str) -> Computation:
        return _Products(self) if name == "matmul" else _CopiesToHost(self)

    def at_once(self, calls: tuple[Callable[[], object], int] | None, computing: Any) -> Times:
        """Both streams wait until all is enqueued."""
        if computing is not None:
            computing.clear()
        torch.cuda.synchronize()
        begun, called, computed = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        wait = _START + (calls[1] * _CALL if calls else 0.0) + (computing.repeats * _LAUNCH if computing else 0.0)
        torch.cuda._sleep(int(wait * _CYCLES))
        begun.record()
        for stream in (self._calls, self._computing):
            stream.wait_event(begun)
        with torch.cuda.stream(self._computing):
            if computing is not None:
                computing.run()
            computed.record()
        with torch.cuda.stream(self._calls):
            for call in [calls[0]] * calls[1] if calls else []:
                call()
            called.record()
        torch.cuda.synchronize()
        both = (begun.elapsed_time(called) * 1e-3, begun.elapsed_time(computed) * 1e-3)
        return *both, max(both)
