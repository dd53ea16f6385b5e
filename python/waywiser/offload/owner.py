"""The remote GPU that an array, a stream or an event belongs to, as far as these use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy

    from waywiser._core import RemoteGpu as CoreGpu


class Owner(Protocol):
    """What RemoteGpu gives to its arrays and events. `_freed`: numbers that the next request frees."""

    name: str
    _core: CoreGpu
    _freed: list[int]

    def _begin(self, stream: int = 0) -> CoreGpu: ...

    def _get(
        self, array: int, nbytes: int, stream: int, out: numpy.ndarray[Any, Any] | None
    ) -> numpy.ndarray[Any, Any]: ...
