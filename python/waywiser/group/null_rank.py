"""The rank that is not there: a message to it or from it does nothing, as at the edge of a grid."""

from __future__ import annotations

from typing import Final

# Far from any rank, so that rank - 1 is not it by accident.
PROC_NULL: Final = -32768


class Nothing:
    """An operation that is complete."""

    def done(self) -> bool:
        """Always True."""
        return True

    def wait(self) -> None:
        """Returns at once."""
