"""A worker's side of the group of two ranks that it forms with its client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from waywiser.group.group import Group

if TYPE_CHECKING:
    from waywiser.group.gpus import Gpus


class Meeting(NamedTuple):
    """Where the two ranks meet, and the secret by which they know each other."""

    job: str
    host: str
    port: int
    secret: str
    encrypt: bool


def join_pair(meeting: Meeting, timeout: float, gpus: Gpus, announce: Callable[[int], None]) -> Group:
    """Joins as rank 0. `announce`: told the port. Raises as waywiser.join."""
    from waywiser import _core

    seat, where = ("remote GPU", 0, 2), (meeting.host, meeting.port, meeting.secret)
    core = _core.join_at(
        seat, f"remote-gpu-{meeting.job}", where, announce, timeout, gpus._core, None, meeting.encrypt, None
    )
    return Group(core, allow_pickle=False)
