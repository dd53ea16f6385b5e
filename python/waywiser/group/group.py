"""A group, as seen by one of its ranks."""

from __future__ import annotations

import contextlib
import sys
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Literal, cast

from waywiser.errors import Error
from waywiser.group.arrays import stream_for
from waywiser.group.background import Background
from waywiser.group.collectives import Collectives
from waywiser.group.messages import Messages
from waywiser.group.objects import Objects
from waywiser.group.scans import Scans
from waywiser.group.types import Array, Stream
from waywiser.group.windows import Windows

if TYPE_CHECKING:
    from waywiser import _core


class Group(Messages, Collectives, Scans, Objects, Background, Windows):
    """The ranks of a job, or a part of them, as seen by one of them.

    All ranks must call the collectives in the same order. If `out` is omitted, the returned array is made in the
    library of `data`, in the same memory. Counts and indices are in elements, offsets of windows in bytes, timeouts in
    seconds.

    Every call raises an Error that names rank, call and peer: DeadlineError if it waits longer than `timeout` seconds;
    TransferError if a rank has died or failed; InputError for an argument that is not an array, for arrays that are not
    contiguous or have other types, if the group is closed, and if the ranks' calls do not match; InputTypeError for an
    argument of another type; DeviceError if work on a GPU fails; UnavailableError if this machine cannot do it;
    CorruptionError for data that did not arrive as sent. Once the group has failed, all calls of all ranks raise an
    error of the first one's class. Ctrl-C raises KeyboardInterrupt.

    One thread at a time may be in a call of a group that `join` has made, of the groups split from it and of what is
    made of them: a call that meets another thread's raises InputError, and the other goes on. `join(threads=True)` lets
    threads use different groups at once.
    """

    def __init__(self, core: _core.Group, allow_pickle: bool = True) -> None:
        self._core = core
        self._allow_pickle = allow_pickle
        self._end = weakref.finalize(self, _end, core)

    def close(self) -> None:
        """Waits until all ranks have closed, without a deadline; called automatically at the end of the program.

        Raises DeviceError for a failed operation on a GPU, if no call has raised it yet; KeyboardInterrupt.
        """
        self._end.detach()
        self._core.close()

    def abort(self, why: str = "it gives up") -> None:
        """Ends this group and all others of the job at once: all calls of all ranks raise `why`, those under way too.

        Waits for nobody, and any thread may call it while another one is in a call. Raises nothing.
        """
        self._core.abort(why)

    def failure(self) -> str | None:
        """Why the group has failed; None if it has not.

        Asks, and does not wait: a failed operation on a GPU is known after 20 ms, whether or not a call has raised it.
        Any thread may ask. Raises nothing.
        """
        return self._core.failure() or None

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SystemExit):
            return  # its exit code says how this rank has ended
        if error is None:
            return self.close()
        self._core.abort(_words(error))
        with contextlib.suppress(Error):  # of an operation that this has ended: `error` says more
            self.close()

    def __repr__(self) -> str:
        return f"<waywiser.Group: rank {self.rank} of {self.size}>"

    def synchronize(self, array: Array, *, stream: Stream = None) -> None:
        """Waits for the stream in which `array` is in use.

        Raises as every call, also the error of an earlier operation of this group on a stream.
        """
        self._core.synchronize(array, stream_for(stream, array))

    def prepare(self, array: Array, largest: int) -> None:
        """Sets up what collectives of up to `largest` bytes a block need on the GPU of `array`.

        All ranks call it together. Then no operation on a stream up to that size waits for another rank on the host,
        and the first one can be captured in a graph. Without prepare() the first operations do this. Raises as every
        call; InputError for a host array.
        """
        self._core.prepare(array, largest)

    def encrypted_by(self, rank: int) -> Literal["openssl", "kernel", ""]:
        """What encrypts messages to a rank of another machine: "openssl" or "kernel" (before the first message, what
        was asked for); "" if nothing encrypts. Raises InputError for a rank that does not exist.
        """
        return cast(Literal["openssl", "kernel", ""], self._core.encrypted_by(rank))

    def split(self, color: int, key: int = 0) -> Group | None:
        """The group of the ranks with the same color, ordered by key, then rank; None for a color below 0.

        All ranks call it. Raises as every call.
        """
        part = self._core.split(color, key)
        return None if part is None else Part(part, self)

    def split_apart(self, color: int, key: int = 0) -> Group | None:
        """The same as `split`, but each part is a job of its own, with the options of this group.

        A failure ends one of the parts, or this group, and not the others; errors number its ranks from 0. Each part
        is closed by itself, and a thread may use one while others use other parts. All ranks call it. Raises as every
        call, and as join.
        """
        part = self._core.split_apart(color, key)
        return None if part is None else Group(part, self._allow_pickle)

    def split_by_machine(self, key: int = 0) -> Group:
        """The group of the ranks on this rank's machine, ordered by key, then rank. All ranks call it. Raises as every
        call.
        """
        return Part(self._core.split_by_machine(key), self)


class Part(Group):
    """A group made by split: it ends with the group that it was made from."""

    def __init__(self, core: _core.Group, whole: Group) -> None:
        self._core = core
        self._whole = whole
        self._allow_pickle = whole._allow_pickle

    def close(self) -> None:
        """Does nothing: only the whole group closes."""


def _end(core: _core.Group) -> None:
    """Called at the end of the program, whose exit code is not known yet, or with the last reference."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        core.abort(_words(error))
    core.end()


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
