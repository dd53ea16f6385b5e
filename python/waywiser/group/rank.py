"""The common base of a group's parts: this rank's number, and the core's group."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waywiser import _core


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
    def timeout(self) -> float:
        """The longest wait of any call, in seconds. Setting it raises InputError for a value that is not above 0."""
        return float(self._core.timeout)

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._core.timeout = seconds
