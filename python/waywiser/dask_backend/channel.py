"""One direction of a connection between two processes."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy

from waywiser.errors import DeadlineError, Error
from waywiser.group.group import Group
from waywiser.group.joining import from_unique_id

R = TypeVar("R")
_PATIENCE = 300.0  # seconds for the other end, which may be busy: that it has died is known at once
_NAP = 2e-4


class Channel:
    """Buffers from rank 0 to rank 1 of a group of two. A thread of its own makes all calls of the group, so that the
    event loop goes on; the first one waits for the other end to join, at most `timeout` seconds.

    Its calls raise Error of waywiser.errors; then, and after leave(), the channel is of no use any more.
    """

    def __init__(self, id: bytes, rank: int, timeout: float) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._group: Group | None = None
        self._id, self._rank, self._timeout = id, rank, timeout
        threading.Thread(target=self._work, name="waywiser channel", daemon=True).start()

    async def send(self, buffers: Sequence[Any]) -> None:
        """Returns when the other end has taken all, which may then change."""
        arrays = [numpy.frombuffer(each, numpy.uint8) for each in buffers]

        def all_of_them(group: Group) -> None:
            _wait_for_receiver(group)
            for array in arrays:
                group.send(array, 1)

        await self._run(all_of_them)

    async def receive(self, sizes: Sequence[int]) -> list[memoryview]:
        """Buffers of so many bytes each, which own their memory and may be written."""
        arrays: list[Any] = [numpy.empty(size, numpy.uint8) for size in sizes]

        def all_of_them(group: Group) -> None:
            group.send(numpy.zeros(1, numpy.uint8), 0)
            for array in arrays:
                group.recv(array, 0)

        await self._run(all_of_them)
        return [memoryview(array) for array in arrays]

    def leave(self) -> None:
        """Nothing more goes through the channel. Waits for nothing; the other end's calls fail."""
        group = self._group
        if group is not None:
            group.abort("the connection is closed")
        self._jobs.put(None)

    async def _run(self, call: Callable[[Group], R]) -> R:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[R] = loop.create_future()

        def tell(result: R | None, error: BaseException | None) -> None:
            if done.cancelled():
                return
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(result)  # type: ignore[arg-type]

        def job() -> None:
            result, failed = None, None
            try:
                result = call(self._joined())
            except BaseException as error:
                failed = error
            with suppress(RuntimeError):  # the loop has ended, and nobody waits
                loop.call_soon_threadsafe(tell, result, failed)

        self._jobs.put(job)
        return await done

    def _joined(self) -> Group:
        if self._group is None:
            self._group = from_unique_id(self._id, self._rank, 2, self._timeout, allow_pickle=False)
            self._group.timeout = max(self._timeout, _PATIENCE)
        return self._group

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        group, self._group = self._group, None
        if group is not None:
            with suppress(Error):  # it was ended already
                group.close()


def _wait_for_receiver(group: Group) -> None:
    """Until it says that it is there. A call that waits for it would keep a processor busy, which it may need."""
    until = time.monotonic() + _PATIENCE
    ready = group.start_recv(numpy.empty(1, numpy.uint8), 1)
    while not ready.done():
        if time.monotonic() > until:
            raise DeadlineError(f"the other end has not taken a message for {_PATIENCE:.0f} s")
        time.sleep(_NAP)
