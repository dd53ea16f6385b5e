"""Writes the output of a job's ranks line by line, never mixing two lines."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import selectors
import struct
import termios
import threading
from collections.abc import Callable

_CHUNK = 1 << 16
_LONGEST = 16 << 20  # a longer line is split
_QUIET = 0.3  # seconds until a terminal shows an incomplete line: a question, a progress bar
_PATIENCE = 0.5  # for processes that hold the output open after the ranks have ended


class _Source:
    """The output of one rank to one target."""

    def __init__(self, begin: bytes, target: int, terminal: bool) -> None:
        self.begin, self.target, self.terminal = begin, target, terminal
        self.piece = bytearray()
        self.shown = 0  # bytes of the incomplete line that a terminal shows

    def take(self, data: bytes) -> bytes:
        """The text that can be written after `data` has arrived."""
        end = data.rfind(b"\n") + 1
        if self.terminal and not self.begin:
            end = max(end, data.rfind(b"\r") + 1)
        if end == 0 and len(self.piece) + len(data) < _LONGEST:
            self.piece += data
            return b""
        if end == 0:
            data, end = data + b"\n", len(data) + 1
        whole = bytes(self.piece[self.shown :]) + data[:end]
        self.piece, whole = bytearray(data[end:]), self._begun(whole)
        self.shown = 0
        return whole

    def _begun(self, whole: bytes) -> bytes:
        if not self.begin:
            return whole
        lines = whole.split(b"\n")[:-1]
        first = lines[0] if self.shown else self.begin + lines[0]
        return b"".join([first, b"\n", *(self.begin + line + b"\n" for line in lines[1:])])

    def rest(self) -> bytes:
        """The last line, even without an end of line."""
        return self.take(b"\n") if self.piece else b""

    def glimpse(self) -> bytes:
        """The incomplete line that a terminal shows."""
        fresh = bytes(self.piece[self.shown :])
        begin = b"" if self.shown else self.begin
        self.shown = len(self.piece)
        return begin + fresh if fresh else b""


class Lines:
    """One thread that reads all ranks. The thread calls `lost` if the output can no longer be written."""

    def __init__(self, prefix: bool, lost: Callable[[OSError], None]) -> None:
        self._prefix = prefix
        self._lost = lost
        self._lock = threading.Lock()
        self._selector = selectors.DefaultSelector()
        self._sources = 0
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC)
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._ending = False
        self._open_line: dict[int, _Source | None] = {1: None, 2: None}
        self._thread = threading.Thread(target=self._run, name="lines")
        self._one_target = _same_file()

    def outputs(self, rank: int) -> tuple[int, int]:
        """Standard output and standard error for a rank; call closed() with them after its start."""
        out = self._open(rank, 1)
        return out, out if self._one_target else self._open(rank, 2)

    @staticmethod
    def close_outputs(outputs: tuple[int, int]) -> None:
        """Closes this process's copies; the rank has its own now."""
        for number in set(outputs):
            os.close(number)

    def _open(self, rank: int, target: int) -> int:
        terminal = os.isatty(target)
        theirs, ours = _pair_of_terminal(target) if terminal else _pair_of_pipe()
        begin = f"[{rank}] ".encode() if self._prefix else b""
        self._selector.register(ours, selectors.EVENT_READ, _Source(begin, target, terminal))
        self._sources += 1
        return theirs

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def say(self, line: str) -> None:
        """Writes a line of the launcher on standard error."""
        with contextlib.suppress(OSError):  # nobody listens
            self._write(2, f"{line}\n".encode(), None)

    def finish(self) -> None:
        """Writes the remaining output after the ranks have ended."""
        os.close(self._waker)
        if self._thread.ident is not None:
            self._thread.join()
        for key in list(self._selector.get_map().values()):
            os.close(key.fd)
        self._selector.close()

    def _run(self) -> None:
        while self._sources:
            ready = self._selector.select(_PATIENCE if self._ending else self._quiet())
            if not ready and self._ending:
                break
            if not ready:
                self._glimpse()
            for key, _ in ready:
                self._read(key)
        self._deliver_rest()

    def _all(self) -> list[_Source]:
        return [key.data for key in self._selector.get_map().values() if key.data is not None]

    def _quiet(self) -> float | None:
        unseen = any(one.terminal and one.shown < len(one.piece) for one in self._all())
        return _QUIET if unseen else None

    def _glimpse(self) -> None:
        for source in self._all():
            if source.terminal and (text := source.glimpse()):
                self._deliver(source, text, open_line=True)

    def _read(self, key: selectors.SelectorKey) -> None:
        if key.data is None:
            self._ending = True
            self._selector.unregister(self._wake)
            os.close(self._wake)
            return
        try:
            data = os.read(key.fd, _CHUNK)
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal that no process holds any more
                raise
            data = b""
        if data:
            self._deliver(key.data, key.data.take(data))
            return
        self._deliver(key.data, key.data.rest())
        self._selector.unregister(key.fd)
        os.close(key.fd)
        self._sources -= 1

    def _deliver_rest(self) -> None:
        for source in self._all():
            self._deliver(source, source.rest())

    def _deliver(self, source: _Source, text: bytes, open_line: bool = False) -> None:
        if not text:
            return
        try:
            self._write(source.target, text, source if open_line else None, source)
        except OSError as error:
            self._lost(error)

    def _write(self, target: int, text: bytes, leaves_open: _Source | None, who: _Source | None = None) -> None:
        """First ends an incomplete line of another rank that a terminal shows."""
        with self._lock:
            place = 1 if self._one_target else target
            before = self._open_line[place]
            if before is not None and before is not who:
                text = b"\n" + text
            self._open_line[place] = leaves_open
            _write_all(target, text)


def _write_all(target: int, text: bytes) -> None:
    left = memoryview(text)
    while left:
        try:
            left = left[os.write(target, left) :]
        except BlockingIOError:
            select.select([], [target], [])


def _same_file() -> bool:
    """Whether standard output and standard error go to the same place; if so, their order is kept."""
    try:
        return os.path.samestat(os.fstat(1), os.fstat(2))
    except OSError:
        return False


def _pair_of_pipe() -> tuple[int, int]:
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    return theirs, ours


def _pair_of_terminal(like: int) -> tuple[int, int]:
    """A pseudo-terminal, so that programs write each line at once; bytes pass unchanged."""
    ours, theirs = os.openpty()
    mode = termios.tcgetattr(theirs)
    mode[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, mode)
    try:
        size = fcntl.ioctl(like, termios.TIOCGWINSZ, struct.pack("4H", 0, 0, 0, 0))
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    except OSError:
        pass
    return theirs, ours
