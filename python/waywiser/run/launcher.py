"""Starts the ranks of a job, here or by ssh, and watches them until the last one has ended."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from waywiser.errors import InputError
from waywiser.run.ends import Ends
from waywiser.run.job import Job
from waywiser.run.keeper import Keeper, kept_elsewhere
from waywiser.run.lines import Lines
from waywiser.run.memory_policy import prefer_memory
from waywiser.signals import ENDING, handle, restore

if TYPE_CHECKING:
    from waywiser.run.rank_setup import RankSetup

GRACE = 3.0  # seconds that the other ranks have to report errors after one has failed
_PATIENCE_AFTER_TERM = 2.0
_BETWEEN_LOOKS = 0.5  # between checks whether the grace is over
_ENDING = (*ENDING, signal.SIGQUIT)  # Ctrl-C may be for a program that goes on
_PATIENCE_AFTER_SIGNAL = 5.0  # until ranks that have not ended get SIGTERM, then SIGKILL
_FORWARDED = (signal.SIGINT, *_ENDING, signal.SIGUSR1, signal.SIGUSR2)
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Launcher:
    """The running ranks of a job."""

    def __init__(self, job: Job, prefix: bool = False) -> None:
        self._job = job
        # One rank alone has the terminal, the file or the pipe itself.
        self._lines = Lines(prefix, self._lose_output) if prefix or job.count > 1 else None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ends = Ends()
        self._interrupts = 0
        self._ended_by = 0  # the first signal that asked for the end
        self._end_by = math.inf
        self._failed: int | None = None  # exit code of the first
        self._output_lost: OSError | None = None
        self._made: list[RankSetup] | None = None
        self._plan: str | None = None
        self._apart = len(set(job.places or ())) > 1

    def run(self) -> int:
        """Starts all ranks and waits for them; returns 0 or the exit code of the first that failed."""
        if shutil.which(self._job.command[0]) is None and self._job.places is None:
            raise InputError(f"there is no program '{self._job.command[0]}'")
        before = handle(_FORWARDED, self._forward)
        keeper = Keeper(self._job.name)
        try:
            for rank in range(self._job.count):
                if not self._ended_by:
                    self._start(rank, keeper)
            if self._lines is not None:
                self._lines.start()
            self._wait(keeper)
        finally:
            self._end_all()
            keeper.close(all_ended=not self._ended_by)
            restore(before)
            if self._lines is not None:
                self._lines.finish()
            self._ends.close()
        return self._exit_code()

    def _exit_code(self) -> int:
        if self._ended_by:
            return 128 + self._ended_by
        if self._output_lost is not None:
            if isinstance(self._output_lost, BrokenPipeError):
                return 128 + signal.SIGPIPE
            raise self._output_lost
        if self._failed is None:
            return 130 if self._interrupts else 0
        return self._failed

    def _start(self, rank: int, keeper: Keeper) -> None:
        host = self._job.places[rank] if self._job.places else "localhost"
        outputs = self._lines.outputs(rank) if self._lines is not None else None
        variables = self._job.variables(rank)
        try:
            if host in _LOCAL:
                process = self._start_here(rank, variables | {"WAYWISER_SECRET": self._job.secret}, outputs)
            else:
                process = self._start_by_ssh(host, rank, variables, outputs)
        finally:
            if outputs is not None:
                Lines.close_outputs(outputs)
        keeper.keep(process.pid)
        self._processes.append(process)
        self._ends.add(process)

    def _start_here(
        self, rank: int, variables: dict[str, str], outputs: tuple[int, int] | None
    ) -> subprocess.Popen[bytes]:
        """Binds this thread while it starts a rank, because children inherit its CPUs."""
        environment = dict(os.environ) | variables
        mine = os.sched_getaffinity(0)
        setup: RankSetup | None = None
        if self._job.results is not None:
            from waywiser.run.start_rank import say_predicted

            setups = self._setups(self._job.results, int(variables["WAYWISER_LOCAL_SIZE"]))
            setup = setups[int(variables["WAYWISER_LOCAL_RANK"])]
            say_predicted(setup, str(rank))
            environment = self._plan_variable(self._job.results) | setup.environment(environment)
            os.sched_setaffinity(0, setup.cpus or mine)
            if setup.memory is not None:
                prefer_memory(setup.memory)
        try:
            return subprocess.Popen(
                self._job.command,
                env=environment,
                stdin=None if rank == 0 else subprocess.DEVNULL,
                stdout=outputs and outputs[0],
                stderr=outputs and outputs[1],
                start_new_session=True,
            )
        finally:
            os.sched_setaffinity(0, mine)
            if setup is not None and setup.memory is not None:
                prefer_memory(None)

    def _setups(self, results: Path, size: int) -> list[RankSetup]:
        """The set-ups of all ranks of this machine; the machine is examined only once."""
        if self._made is None:
            from waywiser.run.start_rank import say_why, setups_here

            ranks = [(rank, size) for rank in range(size)]
            self._made = setups_here(results, ranks, os.environ, self._job.bind, self._job.accept_simulated)
            say_why(self._made[0], results)
        return self._made

    def _plan_variable(self, results: Path) -> dict[str, str]:
        """The plan that all ranks follow; none if some ranks are on other machines."""
        if self._plan is None:
            from waywiser.run.start_rank import plan_to_follow

            all_here = self._job.places is None
            self._plan = str((plan_to_follow(results) if all_here else None) or "")
        return {"WAYWISER_PLAN": self._plan} if self._plan else {}

    def _start_by_ssh(
        self, host: str, rank: int, variables: dict[str, str], outputs: tuple[int, int] | None
    ) -> subprocess.Popen[bytes]:
        """Sends the secret through standard input, since all users can see a command line. The input stays open while
        the launcher lives."""
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
        command = self._job.command
        if self._job.results is not None:
            from waywiser.run.start_rank import command_for

            command = command_for(self._job.results, command, self._job.bind, self._job.accept_simulated)
        program = f"exec env {settings} {shlex.join(command)} </dev/null 3<&-"
        begin = f"cd {shlex.quote(os.getcwd())} && IFS= read -r WAYWISER_SECRET && exec 3<&0"
        script = f"{begin} && {kept_elsewhere(self._job.name, rank)} && export WAYWISER_SECRET && {program}"
        process = subprocess.Popen(
            [*self._job.ssh, host, script],
            stdin=subprocess.PIPE,
            stdout=outputs and outputs[0],
            stderr=outputs and outputs[1],
            start_new_session=True,
        )
        assert process.stdin is not None
        try:
            process.stdin.write(f"{self._job.secret}\n".encode())
            process.stdin.flush()
        except BrokenPipeError:
            pass  # ssh has ended; its exit code shows the error
        return process

    def _wait(self, keeper: Keeper) -> None:
        while self._ends.running() and time.monotonic() < self._end_by:
            for process in self._ends.wait(_BETWEEN_LOOKS):
                if not self._ended_by:  # else its process group may have others, who are ended, too
                    keeper.forget(process.pid)
                self._note_end(process)
            failed = self._failed is not None and not self._job.keep_going
            if self._end_by == math.inf and (failed or self._output_lost is not None):
                self._end_by = time.monotonic() + GRACE

    def _note_end(self, process: subprocess.Popen[bytes]) -> None:
        if self._failed is not None or not process.returncode:
            return
        self._failed = _exit_code(process.returncode)
        if self._interrupts or self._output_lost is not None:
            return
        cause = _probable_cause(process.returncode) if self._apart else ""
        line = f"waywiser: {_obituary(self._processes.index(process), process)}{cause}"
        if self._lines is not None:
            self._lines.say(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def _lose_output(self, error: OSError) -> None:
        """The thread that writes the lines calls this."""
        if self._output_lost is None:
            self._output_lost = error
            self._signal_all(signal.SIGTERM)

    def _forward(self, number: int, _frame: object) -> None:
        """A signal goes to all ranks; a second one that asks for their end ends them."""
        self._interrupts += number == signal.SIGINT or number in _ENDING
        if number in _ENDING and not self._ended_by:
            self._ended_by = number
            self._end_by = min(self._end_by, time.monotonic() + _PATIENCE_AFTER_SIGNAL)
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
        return f"{who} was killed by signal {-process.returncode} ({_signal_name(-process.returncode)})"
    return f"{who} ended with exit code {process.returncode}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # only the first and last real-time signals have names
        return signal.strsignal(number) or "unknown"


def _probable_cause(returncode: int) -> str:
    """The probable cause if a rank with ports on a network has crashed."""
    if _exit_code(returncode) != 128 + signal.SIGABRT:
        return ""
    return (
        ": UCX and NCCL crash like this if unknown hosts send bytes to their ports; can other hosts reach this network?"
    )
