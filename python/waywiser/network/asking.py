"""The door to one machine's network: tools with a deadline, files and links below its root; recorded and replayed.

A copy of a machine is a folder of the doctor's form: files, and `waywiser-root.json` with the answers of commands. A
command that failed is recorded under "! COMMAND" with what it said.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.json_fields import clean
from waywiser.look.finding import Unknown
from waywiser.look.recorded import FILE, SCHEMA, VERSION, recorded_root
from waywiser.look.root import Root

_SECONDS = 20.0
_LARGEST = 16 << 20
_FAILED = "!"
_SYSTEM_FOLDERS = "/usr/sbin:/sbin"  # not in the PATH of every user
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]{1,16})$", re.MULTILINE)
_NET_ADMIN = 12  # CAP_NET_ADMIN
_ALL_USERS = ["0", "0", "4294967295"]  # no user namespace
_SENDER = Path(__file__).with_name("sending.py")


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, its output, the last line of its errors that tells something."""

    code: int
    output: str
    error: str


def _tells(line: str) -> bool:
    """Not the line by which tc ends after it has said what the kernel, or the card's driver, refuses."""
    return line.strip() not in ("", "We have an error talking to the kernel")


Runner = Callable[[Sequence[str]], Outcome]


def run_command(command: Sequence[str]) -> Outcome:
    """Runs a command without a shell. Raises Unknown if it cannot be started or does not end in 20 s."""
    path = os.environ.get("PATH", "")
    environment = {**os.environ, "LC_ALL": "C", "PATH": f"{path}:{_SYSTEM_FOLDERS}" if path else _SYSTEM_FOLDERS}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=environment,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise Unknown(f"needs the command {command[0]}, which is not installed") from None
        except OSError as error:
            raise Unknown(f"needs the command {command[0]}: {error.strerror}") from error
        except subprocess.TimeoutExpired:
            raise Unknown(f"'{' '.join(command[:3])}' did not end within {_SECONDS:.0f} s") from None
        output.seek(0)
        errors.seek(0)
        text = output.read(_LARGEST).decode("utf-8", "replace")
        said = [line for line in errors.read(_LARGEST).decode("utf-8", "replace").splitlines() if _tells(line)]
    return Outcome(done.returncode, text, clean(said[-1] if said else "", 200))


class Asked:
    """Answers of one machine; each command runs once, and everything that was asked can be saved."""

    def __init__(self, root: Root, runner: Runner | None = None) -> None:
        self.root = root
        self._runner = runner
        self._answers: dict[str, str | None] = {}
        self._texts: dict[str, str | None] = {}
        self._links: dict[str, str | None] = {}
        self._there: dict[str, bool] = {}

    @property
    def live(self) -> bool:
        """Whether commands run, rather than being replayed."""
        return self._runner is not None

    @property
    def privileged(self) -> bool:
        """Whether the tools ran as root of the machine that may administer its network, as far as it is told: root of a
        container may not."""
        try:
            told = _CAPABILITIES.search(self.text("/proc/self/status") or "")
            users = (self.text("/proc/self/uid_map") or "").split()
        except Unknown:
            return False
        may = told is None or int(told[1], 16) >> _NET_ADMIN & 1 == 1
        return self.root.user == 0 and may and (not users or users == _ALL_USERS)

    def said(self, *command: str, mark: str = "", runs: Sequence[str] = ()) -> str:
        """Standard output of a command. `mark` tells a second run from the first; `runs`: what runs in its place.
        Raises Unknown with the reason."""
        key = " ".join(command) + mark
        if self._runner is None:
            return self._replayed(key)
        if key not in self._answers and f"{_FAILED} {key}" not in self._answers:
            try:
                done = self._runner(runs or command)
            except Unknown as error:
                self._answers[key] = None
                self._answers[f"{_FAILED} {key}"] = str(error)
            else:
                if done.code == 0:
                    self._answers[key] = done.output
                else:
                    why = f"'{' '.join(command[:4])}' failed ({done.code})"
                    self._answers[f"{_FAILED} {key}"] = why + (f": {done.error}" if done.error else "")
        failure = self._answers.get(f"{_FAILED} {key}")
        if failure is not None:
            raise Unknown(failure)
        return self._answers[key] or ""

    def _replayed(self, key: str) -> str:
        try:
            failure = self.root.run(_FAILED, *key.split(" "))
        except Unknown:
            return self.root.run(*key.split(" "))
        raise Unknown(failure)

    def json(self, *command: str, mark: str = "") -> Any:
        """The output as JSON; None if there is no output. Raises Unknown."""
        text = self.said(*command, mark=mark).strip()
        if not text:
            return None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise Unknown(f"'{' '.join(command[:4])}' printed no valid JSON") from None

    def send(self, interface: str, count: int, packet: bytes, namespace: str = "", mark: str = "") -> None:
        """Sends a packet `count` times out of an interface, in another namespace if one is named. Raises Unknown."""
        words = (interface, str(count), packet.hex())
        inside = ("ip", "netns", "exec", namespace) if namespace else ()
        runs = (*inside, sys.executable, "-I", str(_SENDER), *words)
        self.said("send", "packets", "from", *words, mark=mark, runs=runs)

    def text(self, path: str) -> str | None:
        """A file's content; None if it is not there. Raises Unknown."""
        self._texts[path] = self.root.text(path)
        return self._texts[path]

    def link(self, path: str) -> str:
        """The last part of a link's target; nothing if there is no link. Raises Unknown."""
        self._links[path] = self.root.link(path)
        return (self._links[path] or "").rsplit("/", 1)[-1]

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        self._there[path] = self.root.exists(path)
        return self._there[path]

    def save(self, folder: Path) -> None:
        """Writes all answers so far, so that `replayed` of the folder gives them again. Raises InputError."""
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: is not empty: name a new folder")
        for path, text in self._texts.items():
            if text is not None:
                write_text_atomically(folder / path.lstrip("/"), text)
        for path, target in self._links.items():
            if target is not None:
                place = folder / path.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(target)
        for path, there in self._there.items():
            if there and not (folder / path.lstrip("/")).exists():
                (folder / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
        head = {"schema": SCHEMA, "version": VERSION, "user": self.root.user}
        write_text_atomically(folder / FILE, json.dumps({**head, "commands": self._answers}, indent=1))


def live_network() -> Asked:
    """This machine."""
    return Asked(Root(), run_command)


def replayed(folder: Path) -> Asked:
    """A recorded machine. Raises InputError."""
    if not folder.is_dir():
        raise InputError(f"--from {folder}: no such folder")
    if not (folder / FILE).exists():
        raise InputError(f"--from {folder}: is no recorded machine, it has no {FILE}: make one with --record")
    return Asked(recorded_root(folder))
