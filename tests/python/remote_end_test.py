"""How long the process of a client may live when the client or its time has gone, on a clock that the test sets."""

from __future__ import annotations

import threading
from pathlib import Path
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
    connection = SimpleNamespace(line=SimpleNamespace(fileno=lambda: 3, is_open=lambda: False))
    client: Any = SimpleNamespace(process=Process(clock, gone_at), why="")
    mine = SimpleNamespace(_offer=SimpleNamespace(most_seconds=limit), _ended=threading.Event())
    begun = clock.now
    Server._follow(mine, connection, client)  # type: ignore[arg-type]
    over = min(gone_at, begun + limit if limit else float("inf"))
    assert over <= clock.now < over + WITHIN


def test_a_request_that_an_interrupt_meets_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread would otherwise be cut off in the core when the program ends, which aborts it."""
    key = tmp_path / "key"
    key.write_text("ab" * 32)
    key.chmod(0o600)
    serving = Server(("127.0.0.1", 0), key, server.Offer((0,), 1, 1 << 20, 1, ""), lambda *_: None, "1")
    released, ended = threading.Event(), []

    def answer(connection: object, name: str) -> None:
        released.wait(20)
        ended.append(name)

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    start = threading.Thread.start
    monkeypatch.setattr(serving, "_meet", answer)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        serving._begin(None, "a client")
    released.set()
    serving.stop(0)
    assert ended == ["a client"]
