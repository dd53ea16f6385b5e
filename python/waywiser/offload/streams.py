"""Streams and events of a GPU of another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from waywiser.errors import InputError
from waywiser.offload.owner import Owner

if TYPE_CHECKING:
    import numpy

    from waywiser.offload.arrays import RemoteArray
    from waywiser.offload.kernels import CudaKernel


class StreamOwner(Owner, Protocol):
    """What RemoteGpu gives to its streams; 0 is no stream."""

    def _run(
        self, stream: int, function: str, arrays: tuple[RemoteArray, ...], numbers: dict[str, float]
    ) -> RemoteArray: ...

    def _launch(
        self,
        stream: int,
        kernel: CudaKernel,
        arguments: tuple[RemoteArray | float | numpy.generic, ...],
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        shared: int,
    ) -> None: ...


class RemoteStream:
    """Calls on a remote GPU that run one after the other, beside those of its other streams.

    Calls of the GPU itself wait for all streams, and later calls of streams for them. So do functions of the server's
    module. It is freed when nothing refers to it any more. Calls raise as those of the GPU.
    """

    def __init__(self, gpu: StreamOwner) -> None:
        self._gpu, self._number = gpu, gpu._core.new_stream()

    def run(self, function: str, *arrays: RemoteArray, **numbers: float) -> RemoteArray:
        """As RemoteGpu.run, in this stream. Raises as run."""
        return self._gpu._run(self._number, function, arrays, numbers)

    def launch(
        self,
        kernel: CudaKernel,
        *arguments: RemoteArray | float | numpy.generic,
        grid: int | tuple[int, ...],
        block: int | tuple[int, ...],
        shared: int = 0,
    ) -> None:
        """As RemoteGpu.launch, in this stream. Raises as launch."""
        self._gpu._launch(self._number, kernel, arguments, grid, block, shared)

    def get(self, array: RemoteArray, out: numpy.ndarray[Any, Any] | None = None) -> numpy.ndarray[Any, Any]:
        """A copy of the array on the host, after the earlier calls of this stream: a new array, or `out`, as
        RemoteArray.get takes it. Raises as get, and InputError for an array of another GPU.
        """
        if array._gpu is not self._gpu:
            raise InputError("an array of another remote GPU")
        return array._get(self._number, out)

    def record(self, event: RemoteEvent) -> None:
        """The event happens when the earlier calls of this stream are over. Does not wait. Raises InputError for an
        event of another GPU.
        """
        self._check(event)
        with self._gpu._begin(self._number) as core:
            core.record(event._number)

    def wait(self, event: RemoteEvent) -> None:
        """Later calls of this stream wait for the event as it was recorded last; this program does not. Raises
        InputError for an event of another GPU. If the event was never recorded, the next call with an answer raises.
        """
        self._check(event)
        with self._gpu._begin(self._number) as core:
            core.wait(event._number)

    def synchronize(self) -> None:
        """Waits until all calls of this stream are over. Raises as synchronize."""
        with self._gpu._begin(self._number) as core:
            core.synchronize()

    def _check(self, event: RemoteEvent) -> None:
        if event._gpu is not self._gpu:
            raise InputError("an event of another remote GPU")

    def __del__(self) -> None:
        self._gpu._freed.append(self._number)  # told before the next request: this may be any thread

    def __repr__(self) -> str:
        return f"<waywiser.RemoteStream of {self._gpu.name}>"


class RemoteEvent:
    """A point in a stream of a remote GPU: RemoteStream.record sets it. It is freed when nothing refers to it."""

    def __init__(self, gpu: Owner) -> None:
        self._gpu, self._number = gpu, gpu._core.new_event()

    def synchronize(self) -> None:
        """Waits until the event has happened. Raises as synchronize, and InputError if it was not recorded."""
        with self._gpu._begin() as core:
            core.await_event(self._number)

    def seconds_since(self, earlier: RemoteEvent) -> float:
        """The seconds from `earlier` to this event by the GPU's clock. Waits for both. Raises as synchronize, and
        InputError for an event of another GPU.
        """
        if earlier._gpu is not self._gpu:
            raise InputError("an event of another remote GPU")
        with self._gpu._begin() as core:
            return core.since(self._number, earlier._number)

    def __del__(self) -> None:
        self._gpu._freed.append(self._number)  # told before the next request: this may be any thread

    def __repr__(self) -> str:
        return f"<waywiser.RemoteEvent of {self._gpu.name}>"
