"""Reports ended processes in the order in which they ended: the first failure is the cause."""

from __future__ import annotations

import os
import select
import subprocess
import time

_BETWEEN_LOOKS = 0.02


class Ends:
    """Waits for children. The kernel keeps the order, also while this process does not run."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._in_order = True

    def add(self, process: subprocess.Popen[bytes]) -> None:
        """Adds a process to wait for."""
        try:
            number = os.pidfd_open(process.pid)
        except OSError:  # before Linux 5.3, or a sandbox
            self._in_order, number = False, -process.pid
        else:
            self._epoll.register(number, select.EPOLLIN)
        self._running[number] = process

    def running(self) -> bool:
        """Whether any process is left."""
        return bool(self._running)

    def wait(self, seconds: float) -> list[subprocess.Popen[bytes]]:
        """The ranks that have ended since the last call, in order; empty if none ended within the time."""
        if not self._in_order:
            return self._look(seconds)
        ended = [number for number, _ in self._epoll.poll(seconds)]
        return [self._reaped(number) for number in ended]

    def _look(self, seconds: float) -> list[subprocess.Popen[bytes]]:
        time.sleep(min(seconds, _BETWEEN_LOOKS))
        return [self._reaped(number) for number, one in list(self._running.items()) if one.poll() is not None]

    def _reaped(self, number: int) -> subprocess.Popen[bytes]:
        process = self._running.pop(number)
        process.wait()
        if number >= 0:
            self._epoll.unregister(number)
            os.close(number)
        return process

    def close(self) -> None:
        """Stops waiting for all processes."""
        for number in self._running:
            if number >= 0:
                os.close(number)
        self._running.clear()
        self._epoll.close()
