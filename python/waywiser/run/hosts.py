"""Reads the machines of a job from a file."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from waywiser.errors import InputError
from waywiser.files import read_text
from waywiser.json_fields import clean

_MOST_RANKS = 32767
_LARGEST = 16 << 20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,252}")
_RANGE = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8}))?")
_IGNORED = re.compile(r"(?:max[_-]slots|binding|ifname)=[A-Za-z0-9:,._-]{1,80}")


@dataclass(frozen=True)
class Host:
    """A machine and its number of slots for ranks."""

    name: str
    slots: int = 1


def read_hosts(file: Path) -> list[Host]:
    """Hosts of a file, as launchers write them; `#` begins a comment. Raises InputError with the line.

    `NAME`, `NAME slots=N`, `NAME N`, `NAME:N` and `[ADDRESS]:N`; Slurm's `node[01-04,7]` stands for a host each. What
    Open MPI and MPICH write behind it (`max_slots=`, `binding=`) may only stand there, not change anything.
    """
    hosts: list[Host] = []
    for number, line in enumerate(read_text(file, _LARGEST).removeprefix("\ufeff").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        found = _hosts(words)
        if not found:
            said = clean(line.strip()[:80])
            raise InputError(f"{file}:{number}: write NAME, NAME slots=N or NAME:N, not '{said}'")
        hosts += found
        if len(hosts) > _MOST_RANKS:
            raise InputError(f"{file}:{number}: more than {_MOST_RANKS} hosts")
    if not hosts:
        raise InputError(f"{file}: no host in it")
    return hosts


def _hosts(words: Sequence[str]) -> list[Host]:
    """Those of a line; none if the words are no host."""
    name, slots = _name_and_slots(words[0])
    rest = [word for word in words[1:] if not _IGNORED.fullmatch(word)]
    if len(rest) == 1 and not slots:
        slots = ":" + rest[0].removeprefix("slots=")
    elif rest:
        return []
    slots = slots or ":1"
    if slots[0] != ":" or not _is_count(slots[1:]):
        return []
    return [Host(one, int(slots[1:])) for one in _names(name)]


def _name_and_slots(word: str) -> tuple[str, str]:
    """ "[::1]:4" -> "::1" and ":4". Two colons or more, and a leading bracket, are an address of IPv6."""
    user, at, place = word.rpartition("@")
    if place.startswith("["):
        address, end, slots = place[1:].partition("]")
        return (f"{user}{at}{address}", slots) if end and ":" in address else ("", "")
    if place.count(":") == 1:
        place, colon, slots = place.partition(":")
        return f"{user}{at}{place}", colon + slots
    return word, ""


def _names(text: str) -> list[str]:
    """The hosts of a name, or of a list of Slurm; none if it is neither."""
    user, at, place = text.rpartition("@")
    if at and not _NAME.fullmatch(user):
        return []
    if ":" in place:
        try:
            ipaddress.IPv6Address(place)
        except ValueError:
            return []
        return [text]
    places = _listed(place)
    return [f"{user}{at}{one}" for one in places] if all(_NAME.fullmatch(one) for one in places) else []


def _listed(text: str) -> list[str]:
    """ "node[01-03]-ib" -> node01-ib, node02-ib, node03-ib; a name without brackets is itself."""
    found = [""]
    for part in re.split(r"(\[[^\[\]]*\])", text):
        ways = _numbers(part[1:-1]) if part.startswith("[") else [part]
        if len(found) * len(ways) > _MOST_RANKS:
            return []
        found = [before + way for before in found for way in ways]
    return found


def _numbers(text: str) -> list[str]:
    """ "01-03,7" -> 01, 02, 03, 7; none if it is no such list."""
    found: list[str] = []
    for part in text.split(","):
        ends = _RANGE.fullmatch(part)
        first, last = (ends[1], ends[2] or ends[1]) if ends else ("1", "0")
        if int(last) < int(first) or int(last) - int(first) >= _MOST_RANKS:
            return []
        found += [f"{number:0{len(first)}}" for number in range(int(first), int(last) + 1)]
    return found


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_RANKS)) and 0 < int(text) <= _MOST_RANKS


def place_ranks(count: int, hosts: Sequence[Host]) -> list[str]:
    """The host of each rank: hosts are filled in order. Raises InputError if there are too few slots."""
    places = [host.name for host in hosts for _ in range(host.slots)]
    if count > len(places):
        raise InputError(f"{count} ranks for {len(places)} slots of {len(hosts)} hosts")
    return places[:count]
