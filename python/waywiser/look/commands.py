"""Runs commands that only read, without a shell and with a deadline; or replays recorded answers."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from waywiser.look.finding import Unknown

_SECONDS = 20.0
_LARGEST = 4 << 20
PROBE = "waywiser-probe"  # not a program: `python -m waywiser.look.probe`


class Commands(Protocol):
    """A source of command output."""

    def run(self, command: Sequence[str]) -> str:
        """Standard output of the command. Raises Unknown with the reason if there is none."""

    def space(self, path: str) -> tuple[int, int] | None:
        """Total and free bytes at `path` if they are recorded."""


class Live:
    """Runs commands on this machine. Each command runs once; its answer is kept."""

    def __init__(self, seconds: float = _SECONDS, environment: Mapping[str, str] | None = None) -> None:
        self._seconds = seconds
        self._environment = environment
        self._known: dict[tuple[str, ...], str | Unknown] = {}

    def space(self, path: str) -> tuple[int, int] | None:
        """Always None: nothing is recorded, because this is the machine itself."""
        return None

    def run(self, command: Sequence[str]) -> str:
        """Standard output of the command. Raises Unknown."""
        key = tuple(command)
        if key not in self._known:
            try:
                self._known[key] = self._run(key)
            except Unknown as error:
                self._known[key] = error
        answer = self._known[key]
        if isinstance(answer, Unknown):
            raise answer
        return answer

    def _run(self, command: tuple[str, ...]) -> str:
        given = os.environ if self._environment is None else self._environment
        argv, extra = self.resolved(command, given.get("PATH"))
        # Settings for the libraries must not change what the libraries report about themselves.
        kept = {name: value for name, value in given.items() if not name.startswith(("UCX_", "UCC_", "OMPI_", "PMIX_"))}
        environment = {**kept, **extra}
        name = " ".join(command[:3])
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise Unknown(f"needs the command {command[0]}: {error.strerror}") from error
            code = self._wait(process, name)
            output.seek(0)
            text = output.read(_LARGEST).decode("utf-8", "replace")
        if code != 0:
            said = text.strip().splitlines()
            raise Unknown(f"'{name}' failed ({code})" + (f": {said[-1][:160]}" if said else ""))
        return text

    @staticmethod
    def resolved(command: tuple[str, ...], path: str | None = None) -> tuple[tuple[str, ...], dict[str, str]]:
        """The command line and its variables. A program not in PATH may be beside this interpreter or in a wheel."""
        extra = {"LC_ALL": "C"}
        if command[0] == PROBE:
            extra["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), *sys.path)))
            return (sys.executable, "-m", "waywiser.look.probe", *command[1:]), extra
        if shutil.which(command[0], path=path):
            return command, extra
        beside = Path(sys.executable).with_name("ompi_info")
        if command[0] == beside.name and beside.exists():  # the Open MPI of a wheel
            return (str(beside), *command[1:]), extra
        if command[0] == "ucx_info":
            found = importlib.util.find_spec("libucx")
            for folder in (found.submodule_search_locations or []) if found else []:
                extra["LD_LIBRARY_PATH"] = f"{folder}/lib"
                return (f"{folder}/bin/ucx_info", *command[1:]), extra
        return command, extra

    def _wait(self, process: subprocess.Popen[bytes], name: str) -> int:
        try:
            return process.wait(self._seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)
            raise Unknown(f"'{name}' did not end within {self._seconds:.0f} s") from None


class Replayed:
    """Recorded answers of another machine: command line -> standard output, or None if it is not installed there."""

    def __init__(self, answers: Mapping[str, str | None], spaces: Mapping[str, tuple[int, int]] | None = None) -> None:
        self._answers = answers
        self._spaces = spaces or {}

    def space(self, path: str) -> tuple[int, int] | None:
        """As recorded."""
        return self._spaces.get(path)

    def run(self, command: Sequence[str]) -> str:
        """The recorded output. Raises Unknown if there is none."""
        answer = self._answers.get(" ".join(command))
        if answer is None and command[0] == PROBE:
            raise Unknown("needs a trial on the machine itself, which this folder does not record")
        if answer is None:
            raise Unknown(f"needs the command {command[0]}, which is not installed")
        return answer[:_LARGEST]
