"""The common base of a group's parts: this rank's number, and the core's group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar, cast

from waywiser.errors import Error

if TYPE_CHECKING:
    from waywiser import _core

P = ParamSpec("P")
R = TypeVar("R")
RankType = TypeVar("RankType", bound="Rank")


class Rank:
    """One rank among others."""

    _core: _core.Group

    @property
    def rank(self) -> int:
        """This rank, 0 to `size` - 1. Raises nothing."""
        return int(self._core.rank)

    @property
    def size(self) -> int:
        """The number of ranks. Raises nothing."""
        return int(self._core.size)

    @property
    def local_rank(self) -> int:
        """This rank's number among those on its machine, 0 to `local_size` - 1, in the order of the group. Raises
        nothing.
        """
        return int(self._core.local_rank)

    @property
    def local_size(self) -> int:
        """The number of ranks on this rank's machine. Raises nothing."""
        return int(self._core.local_size)

    @property
    def timeout(self) -> float:
        """The longest wait of any call, in seconds. Setting it raises InputError for a value that is not above 0."""
        return float(self._core.timeout)

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._core.timeout = seconds


@contextmanager
def known_to_all(barrier: Callable[[], object]) -> Iterator[None]:
    """Around a check of what all ranks have told each other, which fails alike at all: none raises before all have it.

    `barrier`: of their group. The program of a rank may end by the error, and a rank that still waited would hear of
    that instead.
    """
    try:
        yield
    except Error:
        with suppress(Error):
            barrier()
        raise


def alone(call: Callable[Concatenate[RankType, P], R]) -> Callable[Concatenate[RankType, P], R]:
    """For calls of several calls of the core: no other thread's call comes between them."""

    @wraps(call)
    def held(self: RankType, *args: P.args, **kwargs: P.kwargs) -> R:
        core = self._core
        core.hold()
        try:
            return call(self, *args, **kwargs)
        finally:
            core.let_go()

    return cast("Callable[Concatenate[RankType, P], R]", held)
