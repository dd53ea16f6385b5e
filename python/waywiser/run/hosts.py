"""Reads the machines of a job from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.checked import clean
from waywiser.errors import InputError
from waywiser.files import read_text

_MOST_RANKS = 32767
_LARGEST = 16 << 20


@dataclass(frozen=True)
class Host:
    """A machine and its number of slots for ranks."""

    name: str
    slots: int = 1


def read_hosts(file: Path) -> list[Host]:
    """Hosts of a file: `NAME`, `NAME slots=N` or `NAME:N` on each line, `#` begins a comment. Raises InputError."""
    hosts = []
    for number, line in enumerate(read_text(file, _LARGEST).removeprefix("\ufeff").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        host = _host(words)
        if host is None:
            said = clean(line.strip()[:80])
            raise InputError(f"{file}:{number}: write NAME, NAME slots=N or NAME:N, not '{said}'")
        hosts.append(host)
    if not hosts:
        raise InputError(f"{file}: no host in it")
    return hosts


def _host(words: Sequence[str]) -> Host | None:
    """None if the words are no host. Two colons or more, and brackets, are an address of IPv6."""
    name, slots = words[0], ""
    if name.startswith("["):
        name, end, slots = name[1:].partition("]")
        if not end:
            return None
    elif name.count(":") == 1:
        name, colon, slots = name.partition(":")
        slots = colon + slots
    if len(words) == 2 and not slots:
        slots = ":" + words[1].removeprefix("slots=")
    elif len(words) > 1:
        return None
    slots = slots or ":1"
    if not name or name.startswith("-") or slots[0] != ":" or not _is_count(slots[1:]):
        return None
    return Host(name, int(slots[1:]))


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(_MOST_RANKS)) and 0 < int(text) <= _MOST_RANKS


def place_ranks(count: int, hosts: Sequence[Host]) -> list[str]:
    """The host of each rank: hosts are filled in order. Raises InputError if there are too few slots."""
    places = [host.name for host in hosts for _ in range(host.slots)]
    if count > len(places):
        raise InputError(f"{count} ranks for {len(places)} slots of {len(hosts)} hosts")
    return places[:count]
