"""Started operations of a group."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from waywiser import _core
    from waywiser.group.null_rank import Nothing

_EAGER_TURNS = 200  # of the event loop; then it may sleep between polls
_NAP = 2e-4  # seconds

R = TypeVar("R")


class Future(Generic[R]):
    """A started operation of a group: `wait()` for it, ask `done()`, or `await` it. It keeps its arrays."""

    def __init__(self, core: _core.Future | Nothing, result: R) -> None:
        self._core = core
        self._result = result

    def done(self) -> bool:
        """Whether it is complete; advances all operations of the group. Raises as wait()."""
        return bool(self._core.done())

    def wait(self) -> R:
        """Returns the array that it fills, or None if it fills none. Raises as every call of a group."""
        self._core.wait()
        return self._result

    def __await__(self) -> Generator[Any, None, R]:
        import asyncio  # as long as all the rest of this package to import

        turns = 0
        while not self.done():
            turns += 1
            yield from asyncio.sleep(0 if turns < _EAGER_TURNS else _NAP).__await__()
        return self._result


def wait_all(futures: Iterable[Future[R]]) -> list[R]:
    """Waits for each, and returns what their `wait()` returns. Raises as every call of a group."""
    return [each.wait() for each in futures]


def wait_any(futures: Sequence[Future[Any]]) -> int:
    """Waits until one is complete, and returns the place of the first that is: leave it out the next time.

    They are of one `join`. Raises as every call of a group; InputError if there is none.
    """
    from waywiser import _core

    cores = []
    for place, each in enumerate(futures):
        if not isinstance(each._core, _core.Future):
            return place
        cores.append(each._core)
    return _core.wait_any(cores)
