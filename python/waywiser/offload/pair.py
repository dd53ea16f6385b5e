"""The group of two ranks that a client and the process that serves it form."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from waywiser.group.group import Group

if TYPE_CHECKING:
    from waywiser.group.gpus import Gpus

IDLE = 1e7  # seconds that a server waits for the next request


class Meeting(NamedTuple):
    """Where the two ranks meet, and the secret by which they know each other."""

    job: str
    host: str
    port: int
    secret: str
    encrypt: bool


def join_pair(
    meeting: Meeting, rank: int, timeout: float, gpus: Gpus | None = None,
    announce: Callable[[int], None] | None = None,
) -> Group:  # fmt: skip
    """Joins as `rank` 0 or 1. `announce`: told rank 0's port. Raises as waywiser.join."""
    from waywiser import _core

    seat, core_gpus = ("remote GPU", rank, 2), None if gpus is None else gpus._core
    where = (meeting.host, meeting.port, meeting.secret)
    core = _core.join_at(
        seat, f"remote-gpu-{meeting.job}", where, announce, timeout, core_gpus, None, meeting.encrypt, None
    )
    return Group(core, allow_pickle=False)
