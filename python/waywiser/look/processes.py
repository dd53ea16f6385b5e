"""Other processes, as /proc shows them: only reading; no process is stopped, and none gets a signal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from waywiser.json_fields import clean
from waywiser.look.finding import Unknown
from waywiser.look.root import Root

_MOST = 1 << 18  # entries of /proc and of a folder of descriptors
_LARGEST = 16 << 20
_LINE = re.compile(r"[0-9a-f]+-[0-9a-f]+ (\S{4}) [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) (\d+)\s+(/.*)")
_SPACES = ("ipc", "mnt", "net", "pid", "user")


@dataclass(frozen=True)
class Mapped:
    """A file in a process's memory: its name, what identifies it on this machine, whether writes reach other processes
    (shared memory)."""

    path: str
    identity: str
    shared: bool

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.removesuffix(" (deleted)").rpartition("/")[2]


@dataclass(frozen=True)
class Process:
    """One process. `environment`: as at its start. `missing`: what may not be read, each as Unknown says it."""

    number: int
    command: str
    environment: Mapping[str, str]
    mapped: tuple[Mapped, ...]
    open: tuple[str, ...]  # what its descriptors lead to: "/dev/nvidia0", "socket:[4711]"
    namespaces: Mapping[str, str]
    folder: str = ""  # the current one
    missing: tuple[str, ...] = ()

    @property
    def sockets(self) -> set[int]:
        """The numbers by which the kernel knows its sockets."""
        return {int(one[8:-1]) for one in self.open if re.fullmatch(r"socket:\[\d{1,18}\]", one)}

    def loaded(self, pattern: str) -> list[str]:
        """The files in its memory whose name matches the whole pattern, each once."""
        found = re.compile(pattern)
        return list(dict.fromkeys(one.path for one in self.mapped if found.fullmatch(one.name)))


def parents(root: Root) -> dict[int, int]:
    """Every process -> the one that started it."""
    found = {}
    for name in root.names("/proc", _MOST):
        # The name of the program, in brackets, may hold anything.
        told = re.match(r"\s*\S\s+(\d{1,10})\s", (_read(root, f"/proc/{name}/stat") or "").rpartition(")")[2])
        if name.isdecimal() and told:
            found[int(name)] = int(told[1])
    return found


def _read(root: Root, path: str) -> str:
    try:
        return (root.data(path, _LARGEST) or b"").decode("utf-8", "replace") if path else ""
    except Unknown:
        return ""


def command_of(root: Root, number: int) -> str:
    """Its command line; nothing if it is not there."""
    return clean(_read(root, f"/proc/{number}/cmdline").replace("\0", " ").strip())


def environment_of(root: Root, number: int) -> dict[str, str]:
    """Its variables when it started; nothing if it is not there. Raises Unknown."""
    text = (root.data(f"/proc/{number}/environ", _LARGEST) or b"").decode("utf-8", "replace")
    pairs = (one.partition("=") for one in text.split("\0") if "=" in one)
    return {name: clean(value, 4096) for name, _, value in pairs}


def read_process(root: Root, number: int) -> Process:
    """What may be read of it."""
    missing: list[str] = []
    environment: dict[str, str] = {}
    mapped: tuple[Mapped, ...] = ()
    targets: list[str] = []
    spaces: dict[str, str] = {}
    current = ""
    folder = f"/proc/{number}"
    try:
        environment = environment_of(root, number)
    except Unknown as error:
        missing.append(str(error))
    try:
        mapped = _mapped((root.data(f"{folder}/maps", _LARGEST) or b"").decode("utf-8", "replace"))
    except Unknown as error:
        missing.append(str(error))
    try:
        names = root.names(f"{folder}/fd", _MOST)
        targets = [target for name in names if (target := root.link(f"{folder}/fd/{name}"))]
        current = clean(root.link(f"{folder}/cwd") or "", 4096)
        spaces = {name: found for name in _SPACES if (found := root.link(f"{folder}/ns/{name}"))}
    except Unknown as error:
        missing.append(str(error))
    return Process(
        number, command_of(root, number), environment, mapped, tuple(targets), spaces, current, tuple(missing)
    )


def _mapped(text: str) -> tuple[Mapped, ...]:
    """The files of /proc/PID/maps, each once."""
    found = {}
    for line in text.splitlines():
        if told := _LINE.fullmatch(line):
            identity = f"{told[2]}:{told[3]}"
            found[identity] = Mapped(clean(told[4], 4096), identity, told[1][3] == "s")
    return tuple(found.values())
