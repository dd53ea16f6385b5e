"""Any rank and any tag in place of one; what a receive or a probe says about a message; a message that is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from waywiser.errors import InputTypeError
from waywiser.group.types import A, ElementName

if TYPE_CHECKING:
    from waywiser import _core

# As in future.hpp. Far from any rank, so that rank - 1 is not one of them by accident.
ANY_SOURCE: Final = -32769
ANY_TAG: Final = -32770


@dataclass(frozen=True)
class Told:
    """What the core says of a message, where it is not the core that says it."""

    source: int = ANY_SOURCE
    tag: int = ANY_TAG
    type: ElementName = "uint8"
    count: int = 0


class MessageStatus:
    """Which message a receive has taken, or a probe has found.

    A receive with `status=` fills it when the call is complete; for a started receive that is when its future is done.
    """

    def __init__(self) -> None:
        self._told: _core.MessageStatus | Told = Told()

    @property
    def source(self) -> int:
        """The rank that has sent it; ANY_SOURCE before there is a message, PROC_NULL for a receive from PROC_NULL."""
        return self._told.source

    @property
    def tag(self) -> int:
        """Its tag; ANY_TAG if there is no message."""
        return self._told.tag

    @property
    def type(self) -> ElementName:
        """The type of its elements; bools are sent as "uint8", and so is an object."""
        return cast(ElementName, self._told.type)

    @property
    def count(self) -> int:
        """The number of its elements."""
        return self._told.count

    def __repr__(self) -> str:
        return f"<waywiser.MessageStatus: {self.count} {self.type} from rank {self.source}, tag {self.tag}>"


class TakenMessage:
    """A message that `Group.mprobe` has taken: no receive and no probe sees it any more. Without `recv` it is lost."""

    def __init__(self, core: _core.TakenMessage | None, status: MessageStatus) -> None:
        self._core = core
        self._status = status

    @property
    def status(self) -> MessageStatus:
        """Who has sent how much. Raises nothing."""
        return self._status

    def recv(self, out: A) -> A:
        """Once: fills the beginning of `out` with the message, in host memory. Returns `out`.

        Raises as every call; InputError, and the message stays, for an array of another type or one that is too short;
        UnavailableError for an array on a GPU.
        """
        if self._core is not None:
            self._core.recv(out)
        return out


def place_for(status: MessageStatus | None) -> _core.MessageStatus | None:
    """Where the core tells what it has received; None if nobody asks."""
    if status is None:
        return None
    from waywiser import _core

    place = _core.MessageStatus()
    tell(status, place)
    return place


def tell(status: MessageStatus | None, told: _core.MessageStatus | Told) -> None:
    """From now on the status says this, if there is one."""
    if status is None:
        return
    if not isinstance(status, MessageStatus):
        raise InputTypeError(f"status is a MessageStatus, not {type(status).__name__}")
    status._told = told


def new_status(told: _core.MessageStatus | Told) -> MessageStatus:
    status = MessageStatus()
    tell(status, told)
    return status
