"""Connections from anybody: one thread talks to all of them, keeps a few, for a short time, and waits for none alone.

A conversation is a generator that yields POLLIN or POLLOUT where it has to wait for its socket.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import resource
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from waywiser.errors import Error, TransferError

T = TypeVar("T")
Talk = Generator[int, None, T]
_LOOK = 0.2  # seconds until it looks whether it has been ended
_AT_ONCE = 16  # accepted between two looks at those that are here
_REST = 0.02  # seconds, when the system lets it accept nobody
_RESERVE = 32  # descriptors that no guest may use
_COUNTED = 0.5  # seconds for which the number of free descriptors is taken for known
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


def take_some(sock: socket.socket, most: int) -> Talk[bytes]:
    """What is there, one byte or more. Raises TransferError."""
    while True:
        try:
            part = sock.recv(most)
        except (BlockingIOError, InterruptedError):
            yield select.POLLIN
            continue
        except OSError as error:
            raise TransferError(f"the connection broke: {error.strerror or error}") from error
        if not part:
            raise TransferError("the other end has closed the connection")
        return part


def give(sock: socket.socket, data: bytes) -> Talk[None]:
    """Sends all. Raises TransferError."""
    left = memoryview(data)
    while left:
        try:
            left = left[sock.send(left) :]
        except (BlockingIOError, InterruptedError):
            yield select.POLLOUT
        except OSError as error:
            raise TransferError(f"the connection broke: {error.strerror or error}") from error


@dataclass
class _Guest:
    sock: socket.socket
    file: int
    name: str
    origin: str
    until: float
    talk: Talk[None]
    heard: bool = False


class Reception:
    """Accepts guests at `listener`. `talk`: the conversation with one, by its socket and name; it may detach
    the socket. `dismissed`: told the name of a guest whose conversation came to nothing, and why.
    `farewell`: what a guest hears who has to go because there are too many, which costs the address with most of them
    its oldest one, if possible one that has said nothing.
    """

    def __init__(
        self,
        listener: socket.socket,
        talk: Callable[[socket.socket, str], Talk[None]],
        dismissed: Callable[[str, str], None] = lambda name, why: None,
        *,
        most: int,
        seconds: float,
        farewell: bytes = b"",
    ) -> None:
        self._listener, self._talk, self._dismissed = listener, talk, dismissed
        self._most, self._seconds, self._farewell = most, seconds, farewell
        self._guests: dict[int, _Guest] = {}  # by their descriptors, the oldest first
        self._free, self._counted_until = most, 0.0
        self._poll = select.poll()
        listener.setblocking(False)
        self._poll.register(listener, select.POLLIN)

    def run(self, is_over: Callable[[], bool]) -> None:
        """Until `is_over`, whatever guests do. Then nobody is left, and the listener is closed. Raises nothing."""
        try:
            while not is_over():
                self.look(_LOOK)
        finally:
            for guest in list(self._guests.values()):
                self._end(guest)
            self._listener.close()

    def look(self, seconds: float) -> None:
        """Waits so long for something to happen, and goes on with those to whom it does. Raises nothing."""
        is_due = False
        for file, _ in self._poll.poll(seconds * 1000):
            if file == self._listener.fileno():
                is_due = True
            elif guest := self._guests.get(file):
                guest.heard = True
                self._go_on(guest)
        if is_due:
            self._accept_some()
        now = time.monotonic()
        while self._guests and (oldest := next(iter(self._guests.values()))).until <= now:
            self._dismiss(oldest, "it has said too little in time")

    def _accept_some(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                sock, peer = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED and self._guests:
                    self._dismiss_one()
                    continue
                time.sleep(_REST)  # the connection has gone, or the system has no room for a while
                return
            sock.setblocking(False)
            while len(self._guests) >= self._room():
                self._dismiss_one()
            name = f"{peer[0]}:{peer[1]}"
            until = time.monotonic() + self._seconds
            guest = _Guest(sock, sock.fileno(), name, _origin(peer[0]), until, self._talk(sock, name))
            self._guests[guest.file] = guest
            self._go_on(guest)

    def _room(self) -> int:
        """For how many guests there are descriptors, counted once in a while; for one in any case."""
        if time.monotonic() >= self._counted_until:
            limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            with contextlib.suppress(OSError):  # there is none left for counting
                others = len(os.listdir("/proc/self/fd")) - len(self._guests)
                free = limit - min(_RESERVE, limit // 4) - others
                self._free = self._most if limit == resource.RLIM_INFINITY else max(1, min(self._most, free))
                self._counted_until = time.monotonic() + _COUNTED
        return self._free

    def _go_on(self, guest: _Guest) -> None:
        try:
            self._poll.register(guest.file, next(guest.talk))
        except StopIteration:
            self._end(guest)
        except Error as error:
            self._dismiss(guest, str(error))
        except Exception as error:  # whatever it was: the others go on
            self._dismiss(guest, f"{type(error).__name__}: {error}")

    def _dismiss_one(self) -> None:
        counts = Counter(guest.origin for guest in self._guests.values())
        those = [guest for guest in self._guests.values() if counts[guest.origin] == max(counts.values())]
        guest = next((each for each in those if not each.heard), those[0])
        with contextlib.suppress(OSError):  # it does not listen
            os.write(guest.file, self._farewell)
        self._dismiss(guest, "there were too many others")

    def _dismiss(self, guest: _Guest, why: str) -> None:
        self._end(guest)
        self._dismissed(guest.name, why)

    def _end(self, guest: _Guest) -> None:
        del self._guests[guest.file]
        with contextlib.suppress(KeyError):  # it has never waited
            self._poll.unregister(guest.file)
        guest.talk.close()
        guest.sock.close()


def _origin(host: str) -> str:
    """Whose address it is: all of one network of 64 bits of IPv6 are taken for one."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address) or address.ipv4_mapped:
        return host
    return str(ipaddress.ip_network((address, 64), strict=False))
