"""Arrays in memory that all ranks allocate together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

_LEAST = 1 << 20
_Buffer = TypeVar("_Buffer")


class SymmetricSlots(Generic[_Buffer]):
    """Two alternating buffers, for the input and output of an operation.

    All ranks request the same sizes in the same order, so that buffers grow together; only the last two are valid.
    """

    def __init__(self, allocate: Callable[[int], _Buffer], free: Callable[[_Buffer], None]) -> None:
        self._allocate, self._free = allocate, free
        self._slots: list[tuple[int, _Buffer]] = []
        self._turn = 0

    def take(self, size: int) -> _Buffer:
        """A slot of at least this many bytes."""
        at, self._turn = self._turn, 1 - self._turn
        if at < len(self._slots) and self._slots[at][0] >= size:
            return self._slots[at][1]
        capacity = max(_LEAST, 1 << (size - 1).bit_length() if size > 1 else 1)
        if at < len(self._slots):
            self._free(self._slots[at][1])
        made = (capacity, self._allocate(capacity))
        self._slots[at : at + 1] = [made]
        return made[1]
