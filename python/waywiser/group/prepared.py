"""Exchanges that are prepared once and started often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from waywiser.group.arrays import Stream, stream_for

if TYPE_CHECKING:
    from waywiser import _core
    from waywiser.group.messages import Exchange


class Prepared:
    """An exchange with fixed neighbours and arrays: `start()` and `wait()` as often as wanted; it keeps its arrays.

    All ranks of the group start it equally often; a start counts as a collective. On GPUs that reach each other it is
    one kernel, whatever the number of neighbours.
    """

    def __init__(self, core: _core.Prepared, neighbors: Sequence[Exchange]) -> None:
        self._core = core
        self._neighbors = neighbors

    def start(self, *, stream: Stream = None) -> None:
        """Begins. With `stream` it is enqueued there, needs no `wait()`, and can be captured in a graph."""
        if stream is not None:
            self._core.start(stream_for(stream), [])
            return
        streams = {stream_for(None, each.give, each.take) for each in self._neighbors}
        self._core.start(None, list(streams - {None}))

    def wait(self) -> None:
        """Until what `start()` has begun is complete; raises Error as other calls do."""
        self._core.wait()

    def __call__(self) -> None:
        """Starts it and waits."""
        self.start()
        self.wait()

    @property
    def why_staged(self) -> str:
        """Why arrays of GPUs go through messages of the hosts; empty while they do not."""
        return str(self._core.why_staged)
