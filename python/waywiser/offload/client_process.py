"""The server's side of a process that serves one client, and the lines between the two.

They have a socket of their own. What user code writes to standard output and standard error is text for the log, and
never obeyed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from waywiser.errors import DeadlineError, TransferError
from waywiser.json_fields import Node, clean

_LONGEST_LINE, _MOST_LINES = 1000, 1000  # of what user code prints
_LAST = 1 << 20  # bytes of it that are read when the process has ended


class _Printed:
    """Passes on the first lines that user code prints, and reads all of them, so that it never waits."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._rest, self._told = tell, b"", 0

    def add(self, part: bytes) -> None:
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._told += 1
            if self._told <= _MOST_LINES:
                self._tell(clean(line[:_LONGEST_LINE].decode("utf-8", "replace")))
            elif self._told == _MOST_LINES + 1:
                self._tell("more is not shown")

    def end(self) -> None:
        if self._rest:
            self.add(b"\n")


class ClientProcess:
    """Starts `waywiser.offload.worker`. `printed`: told the lines of user code. Raises TransferError."""

    def __init__(self, order: dict[str, Any], printed: Callable[[str], None]) -> None:
        self._printed = _Printed(printed)
        self._rest = b""
        self.ended = self._output_ended = False
        try:
            self._line, theirs = socket.socketpair()
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "waywiser.offload.worker", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                    pass_fds=[theirs.fileno()], start_new_session=True,
                )  # fmt: skip
        except OSError as error:
            raise TransferError(f"a client's process does not start: {error.strerror or error}") from error
        assert self._process.stdout is not None
        self._output = self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        with contextlib.suppress(OSError):  # it has ended: the first wait tells
            self._line.sendall(json.dumps(order).encode() + b"\n")

    @property
    def number(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.returncode

    def first_message(self, seconds: float) -> Node:
        """Raises DeadlineError, and TransferError if it ends before."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not self.ended:
            messages, _ = self.hear(left)
            if messages:
                return messages[0]
        if self.ended:
            raise TransferError("the client's process has ended")
        raise DeadlineError(f"the client's process has not started within {seconds:g} s")

    def hear(self, seconds: float, also: int | None = None) -> tuple[list[Node], bool]:
        """Waits so long for something to happen. The messages that have come, and whether the file `also` can be read.

        Raises TransferError for what is no message.
        """
        poll = select.poll()
        for file in (self._line.fileno(), self._output.fileno(), also):
            if file is not None and not (file == self._output.fileno() and self._output_ended):
                poll.register(file, select.POLLIN)
        ready = {file for file, _ in poll.poll(seconds * 1000)}
        if self._output.fileno() in ready:
            self._read_output()
        messages = self._read_line() if self._line.fileno() in ready else []
        self.ended = self.ended or (not ready and self._process.poll() is not None)  # a child of it has the other end
        return messages, also in ready

    def end(self, seconds: float) -> None:
        """Waits so long for its end, then kills it and what it has started. Raises nothing."""
        try:
            self._process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()

    def close(self) -> None:
        """Passes on the last lines of user code, after `end`. Raises nothing."""
        for _ in range(_LAST >> 16):
            if not self._read_output():
                break
        self._printed.end()
        self._line.close()
        self._output.close()

    def _read_output(self) -> bool:
        try:
            part = os.read(self._output.fileno(), 1 << 16)
        except BlockingIOError:
            return False
        self._output_ended = part == b""
        self._printed.add(part)
        return part != b""

    def _read_line(self) -> list[Node]:
        try:
            part = self._line.recv(1 << 16)
        except ConnectionError:  # it has ended before it had read its order
            part = b""
        self.ended = part == b""
        *lines, self._rest = (self._rest + part).split(b"\n")
        try:
            return [Node(json.loads(line), "a client's process") for line in lines]
        except ValueError as error:
            raise TransferError(f"a client's process: not valid JSON: {error}") from None
