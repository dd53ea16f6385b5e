"""How long the process of a client may live when the client or its time has gone, on a clock that the test sets."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from waywiser.offload import server
from waywiser.offload.server import Server

WITHIN = 5.0  # docs/howto-remote.md: "its process is killed within 5 s"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Process:
    """It never ends; whatever waits for it, waits as long as it may."""

    ended = False

    def __init__(self, clock: Clock, gone_at: float) -> None:
        self._clock, self._gone_at = clock, gone_at

    def hear(self, seconds: float, also: int | None = None) -> tuple[list[Any], bool]:
        assert seconds >= 0
        end = self._clock.now + seconds
        if also is not None and end >= self._gone_at:
            self._clock.now = max(self._clock.now, self._gone_at)
            return [], True
        self._clock.now = end + 1e-3
        return [], False


@pytest.mark.parametrize(("limit", "gone_at"), [(0.0, 107.13), (3.0, float("inf")), (3.0, 101.0)])
def test_a_process_that_stays_is_left_within_five_seconds(
    monkeypatch: pytest.MonkeyPatch, limit: float, gone_at: float
) -> None:
    clock = Clock()
    monkeypatch.setattr(server, "time", clock)
    connection = SimpleNamespace(sock=SimpleNamespace(fileno=lambda: 3), is_open=lambda: False)
    client: Any = SimpleNamespace(process=Process(clock, gone_at), why="")
    mine = SimpleNamespace(_offer=SimpleNamespace(most_seconds=limit), _ended=threading.Event())
    begun = clock.now
    Server._follow(mine, connection, client)  # type: ignore[arg-type]
    over = min(gone_at, begun + limit if limit else float("inf"))
    assert over <= clock.now < over + WITHIN
