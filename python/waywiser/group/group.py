"""A group as one of its ranks sees it."""

from __future__ import annotations

import sys
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Literal, cast

from waywiser.group.arrays import stream_for
from waywiser.group.background import Background
from waywiser.group.collectives import Collectives
from waywiser.group.messages import Messages
from waywiser.group.types import Array, Stream
from waywiser.group.windows import Windows

if TYPE_CHECKING:
    from waywiser import _core


class Group(Messages, Collectives, Background, Windows):
    """The ranks of a job, or a part of them, as one of them sees it.

    The collectives must be called by all ranks in the same order. Where `out` is left out, the array that is returned
    is made in the library of `data`, and in the same memory. Counts and indices are in elements, offsets of windows in
    bytes, timeouts in seconds.

    What every call raises is an Error, which names rank, call and peer: DeadlineError when it waits longer than
    `timeout` seconds; TransferError when a rank has died or failed, and after that for all calls of all ranks;
    InputError for what is no array, for arrays that are not contiguous or of other types, when the group is closed, and
    when the ranks' calls do not fit together; InputTypeError for an argument of another type; DeviceError when work on
    a GPU fails; UnavailableError for what this machine cannot do; CorruptionError for data that did not arrive as sent.
    And KeyboardInterrupt at Ctrl-C.
    """

    def __init__(self, core: _core.Group) -> None:
        self._core = core
        self._end = weakref.finalize(self, _end, core)

    def close(self) -> None:
        """Waits until all ranks have closed, without a deadline; happens by itself at the end of the program.

        Raises DeviceError for an operation on a GPU that has failed, if no call has yet; KeyboardInterrupt.
        """
        self._end.detach()
        self._core.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, SystemExit):
            return  # its exit code says how this rank has ended
        if error is not None:
            self._core.abort(_words(error))
        self.close()

    def __repr__(self) -> str:
        return f"<waywiser.Group: rank {self.rank} of {self.size}>"

    def synchronize(self, array: Array, *, stream: Stream = None) -> None:
        """Waits for the stream that `array` is used in.

        Raises as every call, also what an operation of this group has failed with on a stream before.
        """
        self._core.synchronize(array, stream_for(stream, array))

    def prepare(self, array: Array, largest: int) -> None:
        """Sets up what collectives of up to `largest` bytes a block need on the GPU that has `array`.

        By all ranks together. Then no operation on a stream up to there waits for another rank on the host, and the
        first one can be captured in a graph. Without it that is done at the first ones. Raises as every call;
        InputError for an array of the host.
        """
        self._core.prepare(array, largest)

    def encrypted_by(self, rank: int) -> Literal["openssl", "kernel", ""]:
        """What encrypts the messages to a rank of another machine: "openssl" or "kernel"; "" before the first one, and
        where nothing does. Raises InputError for a rank that is not there."""
        return cast(Literal["openssl", "kernel", ""], self._core.encrypted_by(rank))

    def split(self, color: int, key: int = 0) -> Group | None:
        """The group of the ranks with the same color, in the order of key and rank; None for a color below 0.

        All ranks call it. Raises as every call.
        """
        part = self._core.split(color, key)
        return None if part is None else Part(part, self)


class Part(Group):
    """A group made by split: it ends with the group that it was made from."""

    def __init__(self, core: _core.Group, whole: Group) -> None:
        self._core = core
        self._whole = whole

    def close(self) -> None:
        """Nothing: the whole group is what closes."""


def _end(core: _core.Group) -> None:
    """At the end of the program, whose exit code is not known yet, or of the last reference."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        core.abort(_words(error))
    core.end()


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
