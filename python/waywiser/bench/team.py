"""The ranks of one library, started for a benchmark: they sleep until a request arrives."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

_LONGEST_LINE = 1 << 24
_PATIENCE_AT_END = 3.0


class TeamError(Exception):
    """A team cannot continue. The message is one line with the reason."""

    kind = "unavailable"


class NotOffered(Exception):
    """This library lacks this operation; the team can continue."""


class Timed(Protocol):
    """An object that can time a slice. `version`: the version of the library, for display.

    `adapts`: it chooses the number of calls and samples of a slice itself and ignores the request's.
    """

    version: str
    adapts: bool

    def slice(self, request: str, patience: float) -> list[list[float]]:
        """Seconds of a call: for each rank, for each sample. Raises TeamError, NotOffered."""
        ...

    def close(self) -> None: ...


class Team:
    """Processes that speak the protocol of src/waywiser/bench/rank_channel.hpp over a Unix socket."""

    adapts = False

    def __init__(self, name: str, ranks: int, folder: Path) -> None:
        self.name = name
        self.version = ""
        self._ranks = ranks
        self._path = folder / f"{name.replace('+', '-')}.sock"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._path))
        self._listener.listen(ranks)
        self._said: IO[str] = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115
        self._processes: list[subprocess.Popen[bytes]] = []
        self._lines: list[_Line] = []

    @property
    def path(self) -> str:
        """The path of the socket, for the command line of the ranks."""
        return str(self._path)

    def launch(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Starts a process: a rank, or a launcher of all ranks. Raises TeamError."""
        try:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                start_new_session=True,
            )
        except OSError as error:
            raise TeamError(f"cannot start '{command[0]}': {error.strerror}") from error
        self._processes.append(process)

    def meet(self, patience: float) -> None:
        """Waits until all ranks have said hello. Raises TeamError."""
        deadline = time.monotonic() + patience
        by_rank: dict[int, _Line] = {}
        while len(by_rank) < self._ranks:
            self._listener.settimeout(0.1)
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                self._look(deadline, patience)
                continue
            line = _Line(connection)
            words = self._read(line, deadline, patience).split(maxsplit=3)
            if len(words) < 3 or words[0] != "hello" or not words[1].isdecimal():
                raise TeamError(f"said {' '.join(words)[:80]!r} and not hello")
            if words[2] != str(self._ranks):
                raise TeamError(f"has {words[2]} ranks, not {self._ranks}: its launcher has not told them")
            self.version = words[3] if len(words) > 3 else ""
            by_rank[int(words[1])] = line
        self._lines = [by_rank[rank] for rank in sorted(by_rank)]

    def slice(self, request: str, patience: float) -> list[list[float]]:
        deadline = time.monotonic() + patience
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.connection.sendall(f"run {request}\n".encode())
        answers = [self._read(line, deadline, patience) for line in self._lines]
        for answer in answers:
            word, _, rest = answer.partition(" ")
            if word == "unavailable":
                raise NotOffered(rest)
            if word != "times":
                raise TeamError(rest or answer[:200])
        return [[float(text) for text in answer.split()[1:]] for answer in answers]

    def _read(self, line: _Line, deadline: float, patience: float) -> str:
        while (text := line.read(0.2)) is None:
            self._look(deadline, patience)
        if not text:
            time.sleep(0.2)  # its last output arrives when it ends
            raise TeamError(self._last_words() or "a rank has ended without a message")
        return text

    def _look(self, deadline: float, patience: float) -> None:
        """Raises TeamError if a process has failed or the time is over."""
        failed = [process.returncode for process in self._processes if process.poll()]
        if failed:
            raise TeamError(self._last_words() or f"ended with exit code {failed[0]}")
        if time.monotonic() > deadline:
            raise TeamError(
                f"no answer within {patience:.0f} s" + (f": {words}" if (words := self._last_words()) else "")
            )

    def _last_words(self) -> str:
        """The most informative line of the processes' output."""
        self._said.seek(0)
        lines = [line.strip() for line in self._said.read(20_000).splitlines() if line.strip(" -*")]
        telling = [line for line in lines if "rror" in line or "cannot" in line or ": " in line]
        return " ".join((telling or lines)[:2])[:300]

    def close(self) -> None:
        """Ends all started processes."""
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.connection.sendall(b"quit\n")
        deadline = time.monotonic() + _PATIENCE_AT_END
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()) if self._lines else 0.0)
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for line in self._lines:
            line.connection.close()
        self._listener.close()
        self._said.close()
        self._path.unlink(missing_ok=True)


class _Line:
    """Lines from one rank."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._received = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)

    def read(self, patience: float) -> str | None:
        """A line; None if there is none yet; empty if the other end has closed."""
        while b"\n" not in self._received:
            if not self._selector.select(patience):
                return None
            try:
                part = self.connection.recv(65536)
            except OSError:
                part = b""
            if not part or len(self._received) > _LONGEST_LINE:
                return ""
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line.decode(errors="replace")
