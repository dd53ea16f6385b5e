"""Objects of Python between ranks, pickled.

Unpickling runs code that the sender chooses. So objects only travel between ranks that have proved that they belong to
the job, and only where nobody else can change a message: within a machine, or encrypted.
"""

from __future__ import annotations

import pickle
from typing import Any

from waywiser.errors import CorruptionError, InputError
from waywiser.group.message_status import ANY_SOURCE, ANY_TAG, MessageStatus, Told, place_for, tell
from waywiser.group.messages import FROM_NOBODY
from waywiser.group.null_rank import PROC_NULL
from waywiser.group.rank import Rank, alone

# Of one pickled object, or of all that one call gathers; a receiver checks it before it makes room.
LARGEST_OBJECT = 1 << 28


class Objects(Rank):
    """The calls of a group for any objects that can be pickled.

    They are slower than arrays: each takes two messages, the first with the size. An object has at most 256 MiB when it
    is pickled. All raise InputError if this rank has joined with `allow_pickle=False`, and if the ranks are on several
    machines and do not encrypt; `pickle.PicklingError`, or what the object raises, for an object that cannot be
    pickled.
    """

    _allow_pickle = True

    @alone
    def send_object(self, obj: object, to: int, tag: int = 0) -> None:
        """Sends an object; recv_object of rank `to` takes it. Raises as send."""
        data = self._pickled(obj)
        if to == PROC_NULL:
            return
        self._core.send(_size_of(data), to, tag, None)
        self._core.send(data, to, tag, None)

    @alone
    def recv_object(self, source: int, tag: int = 0, *, status: MessageStatus | None = None) -> Any:
        """The next object from `source`, which may be ANY_SOURCE, with `tag`, which may be ANY_TAG.

        `status` says who has sent it, and its size pickled, as a count of uint8. Raises as recv; CorruptionError for a
        size above 256 MiB.
        """
        self._check_pickle()
        if source == PROC_NULL:
            tell(status, FROM_NOBODY)
            return None
        size = bytearray(8)
        if source == ANY_SOURCE or tag == ANY_TAG:
            source, tag = self._recv_any_size(size, source, tag)
        else:
            self._core.recv(size, source, tag, None)
        data = bytearray(_checked_size(size, f"rank {source}"))
        self._core.recv(data, source, tag, None)
        tell(status, Told(source, tag, count=len(data)))
        return pickle.loads(data)

    def _recv_any_size(self, size: bytearray, source: int, tag: int) -> tuple[int, int]:
        """Who has sent an object, and with which tag."""
        first = MessageStatus()
        self._core.recv(size, source, tag, None, place_for(first))
        if first.count != len(size):
            sent = f"rank {first.source} sent {first.count} bytes"
            raise CorruptionError(f"{sent} where the size of an object was expected")
        return first.source, first.tag

    @alone
    def broadcast_object(self, obj: object = None, root: int = 0) -> Any:
        """The root's object, at all ranks; `obj` of the others does not matter. Raises as broadcast."""
        self._check_pickle()
        if self.rank == root:
            data = self._pickled(obj)
            self._core.broadcast(_size_of(data), root, None)
            self._core.broadcast(data, root, None)
            return obj
        size = bytearray(8)
        self._core.broadcast(size, root, None)
        data = bytearray(_checked_size(size, f"rank {root}"))
        self._core.broadcast(data, root, None)
        return pickle.loads(data)

    @alone
    def all_gather_objects(self, obj: object) -> list[Any]:
        """The objects of all ranks, in rank order. Raises as all_gather."""
        mine, sizes = self._sizes(obj)
        data = bytearray(sum(sizes))
        self._core.all_gather(mine, data, sizes, None)
        return _unpickled(data, sizes)

    @alone
    def gather_objects(self, obj: object, root: int = 0) -> list[Any] | None:
        """The objects of all ranks at `root`, in rank order; None at the others. Raises as gather."""
        mine, sizes = self._sizes(obj)
        data = bytearray(sum(sizes)) if self.rank == root else None
        self._core.gather(mine, data, root, sizes, None, False)
        return None if data is None else _unpickled(data, sizes)

    def _sizes(self, obj: object) -> tuple[bytearray, list[int]]:
        """The pickled object, and the sizes of those of all ranks."""
        mine, told = self._pickled(obj), bytearray(8 * self.size)
        self._core.all_gather(_size_of(mine), told, None, None)
        parts = [told[8 * rank : 8 * rank + 8] for rank in range(self.size)]
        sizes = [_checked_size(part, f"rank {rank}") for rank, part in enumerate(parts)]
        if sum(sizes) > LARGEST_OBJECT:
            raise InputError(f"the pickled objects have {sum(sizes)} bytes, more than {LARGEST_OBJECT}: send arrays")
        return mine, sizes

    def _pickled(self, obj: object) -> bytearray:
        self._check_pickle()
        data = bytearray(pickle.dumps(obj, protocol=pickle.HIGHEST_PROTOCOL))
        if len(data) > LARGEST_OBJECT:
            raise InputError(f"the pickled object has {len(data)} bytes, more than {LARGEST_OBJECT}: send arrays")
        return data

    def _check_pickle(self) -> None:
        if not self._allow_pickle:
            raise InputError("this rank has joined with allow_pickle=False: objects are neither sent nor received")
        if not self._core.authenticated():
            raise InputError(
                "the ranks are on several machines and do not encrypt, so a stranger could change a pickled object, "
                "which runs code: run with --encrypt, or send arrays"
            )


def _size_of(data: bytearray) -> bytearray:
    return bytearray(len(data).to_bytes(8, "little"))


def _checked_size(told: bytearray, sender: str) -> int:
    size = int.from_bytes(told, "little")
    if size > LARGEST_OBJECT:
        raise CorruptionError(f"{sender} announces an object of {size} bytes, more than {LARGEST_OBJECT}")
    return size


def _unpickled(data: bytearray, sizes: list[int]) -> list[Any]:
    found, begin = [], 0
    for size in sizes:
        found.append(pickle.loads(memoryview(data)[begin : begin + size]))
        begin += size
    return found
