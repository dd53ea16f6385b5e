"""Runs `ucx_perftest`: as a contender with a client and a server for each slice, or a batch of tests in one run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.bench.team import NotOffered, TeamError
from waywiser.ucx_library import find_libucp

# Our operation -> its test, which reports half a round trip, or the time of one message.
_TESTS = {
    "latency": ("tag_lat", 2.0), "bandwidth": ("tag_bw", 1.0), "message_rate": ("tag_bw", 1.0),
    "put": ("ucp_put_lat", 1.0), "get": ("ucp_get", 1.0), "put_bandwidth": ("ucp_put_bw", 1.0),
}  # fmt: skip
_SECONDS = 0.05
_MOST, _LEAST = 20_000, 5
_MEMORY = {"host": "host", "gpu": "cuda"}
_TYPICAL = re.compile(r"[0-9.]+_percentile_lat|typical_lat")
_LOG = re.compile(r"\[\d+\.\d+\] +\[")  # UCX writes warnings between the figures
_MOST_SECONDS = 1e5  # of a message
_STARTING = 3.0  # seconds that a server may take until it listens


@dataclass(frozen=True)
class Program:
    """`ucx_perftest` and the variables for its start. `version`: the version of its UCX, for display."""

    path: str
    environment: Mapping[str, str]
    version: str


@dataclass(frozen=True)
class Row:
    """Seconds of one test: the median of its messages, and the time of all of them divided by their number."""

    typical: float
    overall: float


def find_perftest() -> Program:
    """The program of the UCX that the core would open; else the one in PATH. Raises TeamError."""
    library = find_libucp().path
    if library is not None:
        prefix = library.absolute().parents[1]
        if (prefix / "bin/ucx_perftest").exists():
            folders = os.pathsep.join(filter(None, (str(prefix / "lib"), os.environ.get("LD_LIBRARY_PATH"))))
            return program_at(str(prefix / "bin/ucx_perftest"), {"LD_LIBRARY_PATH": folders})
    found = shutil.which("ucx_perftest")
    if found is None:
        raise TeamError("ucx_perftest is neither in PATH nor beside libucp (pip install libucx-cu13 has one)")
    return program_at(found, {})


def program_at(path: str, environment: Mapping[str, str]) -> Program:
    """The program at `path`, started with these variables."""
    info = os.path.join(os.path.dirname(path), "ucx_info")
    try:
        done = subprocess.run(
            [info, "-v"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Program(path, environment, "UCX")
    found = re.search(r"\d+\.\d+\.\d+", done.stdout)
    return Program(path, environment, f"UCX {found[0]}" if found else "UCX")


def batch(
    program: Program, file: Path, environment: Mapping[str, str], cpus: Sequence[Sequence[int]], patience: float
) -> list[tuple[str, Row]]:
    """Runs all tests of a batch file in order, by name. `cpus`: those of the server and the client, which never sleep.
    Raises TeamError."""
    told = {**environment, **program.environment}
    words = [["-b", str(file), *(["-c", ",".join(map(str, one))] if one else [])] for one in cpus]
    with _server(program, words[0], told) as port:
        text = _client([program.path, "-p", port, "127.0.0.1", "-f", "-v", *words[1]], told, patience)
    rows = read_batch(text)
    if not rows:
        raise TeamError(f"ucx_perftest printed no figures: {_complaint(text)}")
    return rows


def read_batch(text: str) -> list[tuple[str, Row]]:
    """The rows of comma-separated figures below their head, which begins with the name of the batch file.

    Raises TeamError for a head without the times, and for a row that does not fit it.
    """
    rows: list[tuple[str, Row]] = []
    names: list[str] = []
    for line in text.splitlines():
        fields = line.split(",")
        if "iterations" in fields:
            names = ["name", *fields[1:]]
        elif names and len(fields) > 2 and not _LOG.match(line):
            row = dict(zip(names, fields, strict=False))
            typical = next((text for name, text in row.items() if _TYPICAL.fullmatch(name)), "")
            try:
                seconds = float(typical) * 1e-6, float(row.get("overall_lat", "")) * 1e-6
            except ValueError:
                seconds = 0.0, 0.0
            if len(fields) != len(names) or not all(0 < one < _MOST_SECONDS for one in seconds):
                raise TeamError(f"ucx_perftest: not understood: {line[:100]!r}")
            rows.append((fields[0], Row(*seconds)))
    return rows


def _complaint(text: str) -> str:
    """UCX's error message, else the last lines."""
    found = re.search(r"\bERROR\s+(.*)", text)
    return " ".join(found[1].split())[:200] if found else " ".join(text.split())[-200:]


@contextlib.contextmanager
def _server(program: Program, words: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Runs the server at a free port until the end of the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        try:
            server = subprocess.Popen(
                [program.path, "-p", port, *words], env=dict(environment), stdin=subprocess.DEVNULL,
                stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise TeamError(f"cannot start {program.path}: {error.strerror}") from error
        try:
            yield port
        except TeamError as error:
            if server.poll():  # the server's message says more than the client's "connection refused"
                said.seek(0)
                raise TeamError(f"ucx_perftest failed: {_complaint(said.read(20_000))}") from error
            raise
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def _client(command: Sequence[str], environment: Mapping[str, str], patience: float) -> str:
    """The client's output; the client is restarted while the server does not listen yet."""
    listening_by = time.monotonic() + min(patience, _STARTING)
    while True:
        try:
            done = subprocess.run(
                command, env=dict(environment), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=patience,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise TeamError(f"ucx_perftest did not end within {patience:.0f} s") from error
        if done.returncode == 0:
            return done.stdout + done.stderr
        if time.monotonic() > listening_by:
            raise TeamError(f"ucx_perftest failed: {_complaint(done.stderr or done.stdout)}")
        time.sleep(0.02)


class UcxPerftest:
    """Does nothing: each slice has its own two processes."""

    name = "ucx"
    adapts = True

    def __init__(self, on_gpu: bool) -> None:
        self._program = find_perftest()
        self._on_gpu = on_gpu
        self._seconds: dict[tuple[str, int], float] = {}
        self.version = self._program.version

    def slice(self, request: str, patience: float) -> list[list[float]]:
        operation, given, taken, size, window, _, _, _, _, mode = request.split()
        if operation not in _TESTS:
            raise NotOffered("ucx_perftest has nothing like it")
        if mode != "blocking":
            raise NotOffered("UCX enqueues nothing on a stream")
        if "gpu" in (given, taken) and not self._on_gpu:
            raise NotOffered("knows no virtual GPUs")
        test, parts = _TESTS[operation]
        key = (operation, int(size))
        count = max(_LEAST, min(_MOST, int(_SECONDS / self._seconds.get(key, 1e-3))))
        words = ["-t", test, "-s", size, "-n", str(count), "-w", str(max(1, count // 10)), "-m",
                 f"{_MEMORY[given]},{_MEMORY[taken]}"]  # fmt: skip
        found = self._run(words, patience)
        # Tests of bandwidth have many messages in flight, so the median time between two messages means nothing.
        seconds = found.overall if test.endswith("_bw") else found.typical
        self._seconds[key] = seconds
        return [[seconds * parts * (int(window) if operation not in ("latency", "put", "get") else 1)]]

    def _run(self, words: list[str], patience: float) -> Row:
        told = {**os.environ, **self._program.environment}
        with _server(self._program, (), told) as port:
            text = _client([self._program.path, "-p", port, "127.0.0.1", *words], told, patience)
        found = re.search(r"^Final:\s+\d+\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)(?:\s+[\d.]+){4}\s*$", text, re.MULTILINE)
        if found is None or float(found[3]) <= 0:
            raise TeamError(f"ucx_perftest printed no figures: {_complaint(text)}")
        typical, overall = float(found[1]), float(found[3])
        return Row((typical if typical > 0 else float(found[2])) * 1e-6, overall * 1e-6)

    def close(self) -> None:
        """Does nothing: no process is left running."""
