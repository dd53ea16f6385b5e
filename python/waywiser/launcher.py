"""Starts the ranks of a job, here or by ssh, and looks after them until the last one has ended."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from waywiser import _core
from waywiser.apply.memory_policy import prefer_memory
from waywiser.errors import InputError

if TYPE_CHECKING:
    from waywiser.apply.rank_setup import RankSetup

GRACE = 3.0  # seconds for the others to say what they saw when one has failed
_PATIENCE_AFTER_TERM = 2.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_LOCAL = ("localhost", "127.0.0.1", "::1")
_MOST_RANKS = 32767


@dataclass(frozen=True)
class Host:
    """A machine and how many ranks it takes."""

    name: str
    slots: int = 1


def read_hosts(file: Path) -> list[Host]:
    """Hosts of a file: `NAME [slots=N]` on each line, `#` begins a comment. Raises InputError."""
    hosts = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        slots = words[1].removeprefix("slots=") if len(words) > 1 else "1"
        if len(words) > 2 or words[0].startswith("-") or not slots.isdecimal() or not 0 < int(slots) <= _MOST_RANKS:
            raise InputError(f"{file}:{number}: write NAME or NAME slots=N, not '{line.strip()[:80]}'")
        hosts.append(Host(words[0], int(slots)))
    if not hosts:
        raise InputError(f"{file}: no host in it")
    return hosts


def place_ranks(count: int, hosts: Sequence[Host]) -> list[str]:
    """The host of each rank: hosts are filled in their order. Raises InputError when there are too few slots."""
    places = [host.name for host in hosts for _ in range(host.slots)]
    if count > len(places):
        raise InputError(f"{count} ranks for {len(places)} slots of {len(hosts)} hosts")
    return places[:count]


@dataclass
class Job:
    """What the ranks of one job are told. `places`: the host of each; None: all are here.

    `results`: where the settings are that each rank gets on its node, bound to its CPUs; None: it is started as it is.
    `bind`: whether it is bound.
    """

    command: Sequence[str]
    count: int
    places: Sequence[str] | None = None
    results: Path | None = None
    port: int | None = None
    ssh: Sequence[str] = ("ssh", "-o", "BatchMode=yes")
    secret: str = field(default_factory=lambda: secrets.token_hex(32))
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    bind: bool = True

    def variables(self, rank: int) -> dict[str, str]:
        """The environment of a rank, the secret left out."""
        places = self.places or [""] * self.count
        here = [other for other in range(self.count) if places[other] == places[rank]]
        values = {
            "WAYWISER_RANK": str(rank),
            "WAYWISER_SIZE": str(self.count),
            "WAYWISER_LOCAL_RANK": str(here.index(rank)),
            "WAYWISER_LOCAL_SIZE": str(len(here)),
            "WAYWISER_JOB": self.name,
        }
        if len(set(places)) > 1:
            if self.port is None:
                self.port = 20000 + secrets.randbelow(12000)
            values["WAYWISER_ROOT"] = f"{_bracketed(places[0])}:{self.port}"
        return values


def outside_jobs(environment: Mapping[str, str]) -> dict[str, str]:
    """For a job of this process's own: without what a launcher has told this process of the one around it."""
    return {name: value for name, value in environment.items() if not _core.tells_of_a_job(name)}


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class Launcher:
    """The running ranks of a job."""

    def __init__(self, job: Job, prefix: bool = False) -> None:
        self._job = job
        self._prefix = prefix
        self._processes: list[subprocess.Popen[bytes]] = []
        self._printers: list[threading.Thread] = []
        self._interrupts = 0
        self._failed: tuple[int, int] | None = None
        self._made: list[RankSetup] | None = None
        self._plan: str | None = None

    def run(self) -> int:
        """Starts all, waits for all; returns 0 or the exit code of the first that failed."""
        if shutil.which(self._job.command[0]) is None and self._job.places is None:
            raise InputError(f"there is no program '{self._job.command[0]}'")
        before = {number: signal.signal(number, self._forward) for number in _FORWARDED}
        try:
            for rank in range(self._job.count):
                self._start(rank)
            self._wait()
        finally:
            self._end_all()
            for number, handler in before.items():
                signal.signal(number, handler)
            for printer in self._printers:
                printer.join()
        if self._failed is None:
            return 130 if self._interrupts else 0
        return self._failed[1]

    def _start(self, rank: int) -> None:
        host = self._job.places[rank] if self._job.places else "localhost"
        output = subprocess.PIPE if self._prefix else None
        variables = self._job.variables(rank)
        if host in _LOCAL:
            process = self._start_here(rank, variables | {"WAYWISER_SECRET": self._job.secret}, output)
        else:
            process = self._start_by_ssh(host, variables, output)
        self._processes.append(process)
        if self._prefix:
            for source, target in ((process.stdout, sys.stdout.buffer), (process.stderr, sys.stderr.buffer)):
                if source is not None:
                    printer = threading.Thread(target=_print_lines, args=(rank, source, target))
                    printer.start()
                    self._printers.append(printer)

    def _start_here(self, rank: int, variables: dict[str, str], output: int | None) -> subprocess.Popen[bytes]:
        """Children have the CPUs of who starts them."""
        environment = dict(os.environ) | variables
        mine = os.sched_getaffinity(0)
        setup: RankSetup | None = None
        if self._job.results is not None:
            setups = self._setups(self._job.results, int(variables["WAYWISER_LOCAL_SIZE"]))
            setup = setups[int(variables["WAYWISER_LOCAL_RANK"])]
            environment = self._plan_variable(self._job.results) | setup.environment(environment)
            os.sched_setaffinity(0, setup.cpus or mine)
            if setup.memory is not None:
                prefer_memory(setup.memory)
        try:
            return subprocess.Popen(
                self._job.command,
                env=environment,
                stdin=None if rank == 0 else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        finally:
            os.sched_setaffinity(0, mine)
            if setup is not None and setup.memory is not None:
                prefer_memory(None)

    def _setups(self, results: Path, size: int) -> list[RankSetup]:
        """Of all ranks of this machine: looking at it once is enough."""
        if self._made is None:
            from waywiser.apply.start_rank import say_why, setups_here

            self._made = setups_here(results, [(rank, size) for rank in range(size)], os.environ, self._job.bind)
            say_why(self._made[0])
        return self._made

    def _plan_variable(self, results: Path) -> dict[str, str]:
        """All ranks must follow one plan: none when some are elsewhere."""
        if self._plan is None:
            from waywiser.apply.start_rank import plan_to_follow

            all_here = self._job.places is None
            self._plan = str((plan_to_follow(results) if all_here else None) or "")
        return {"WAYWISER_PLAN": self._plan} if self._plan else {}

    def _start_by_ssh(self, host: str, variables: dict[str, str], output: int | None) -> subprocess.Popen[bytes]:
        """The secret goes through standard input: a command line can be seen by all users."""
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        command = self._job.command
        if self._job.results is not None:
            from waywiser.apply.start_rank import command_for

            command = command_for(self._job.results, command, self._job.bind)
        program = f"exec env {settings} {shlex.join(command)} </dev/null"
        script = f"cd {shlex.quote(os.getcwd())} && IFS= read -r WAYWISER_SECRET && export WAYWISER_SECRET && {program}"
        process = subprocess.Popen(
            [*self._job.ssh, host, script],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        assert process.stdin is not None
        try:
            process.stdin.write(f"{self._job.secret}\n".encode())
            process.stdin.close()
        except BrokenPipeError:
            pass  # ssh has ended; its exit code is seen
        return process

    def _wait(self) -> None:
        end_by: float | None = None
        while running := [process for process in self._processes if process.poll() is None]:
            self._note_failures()
            if self._failed and end_by is None:
                end_by = time.monotonic() + GRACE
            if end_by is not None and time.monotonic() > end_by:
                return
            try:
                running[0].wait(0.02)
            except subprocess.TimeoutExpired:
                continue
        self._note_failures()

    def _note_failures(self) -> None:
        for rank, process in enumerate(self._processes):
            if self._failed is None and process.returncode:
                self._failed = (rank, _exit_code(process.returncode))
                if not self._interrupts:
                    print(f"waywiser: {_obituary(rank, process)}", file=sys.stderr, flush=True)

    def _forward(self, number: int, _frame: object) -> None:
        """Ctrl-C goes to all ranks; a second one ends them."""
        self._interrupts += number in (signal.SIGINT, signal.SIGTERM)
        self._signal_all(signal.SIGKILL if self._interrupts > 1 else number)

    def _signal_all(self, number: int) -> None:
        for process in self._processes:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, number)
                except ProcessLookupError:
                    continue

    def _end_all(self) -> None:
        self._signal_all(signal.SIGTERM)
        end_by = time.monotonic() + _PATIENCE_AFTER_TERM
        for process in self._processes:
            try:
                process.wait(max(0.0, end_by - time.monotonic()))
            except subprocess.TimeoutExpired:
                self._signal_all(signal.SIGKILL)
                process.wait()


def _exit_code(returncode: int) -> int:
    return 128 - returncode if returncode < 0 else returncode


def _obituary(rank: int, process: subprocess.Popen[bytes]) -> str:
    who = f"rank {rank} (process {process.pid})"
    if process.returncode < 0:
        return f"{who} was killed by signal {-process.returncode} ({signal.Signals(-process.returncode).name})"
    return f"{who} ended with exit code {process.returncode}"


def _print_lines(rank: int, source: IO[bytes], target: IO[bytes]) -> None:
    for line in source:
        target.write(f"[{rank}] ".encode() + line.rstrip(b"\n") + b"\n")
        target.flush()
