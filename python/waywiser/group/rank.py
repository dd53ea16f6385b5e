"""What every part of a group needs: who this rank is, and the core's group."""

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
        """How many ranks there are. Raises nothing."""
        return int(self._core.size)

    @property
    def timeout(self) -> float:
        """Seconds that any call may wait. Setting it raises InputError for what is not above 0."""
        return float(self._core.timeout)

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self._core.timeout = seconds
