"""Reads the version, settings and transports of the installed UCX from ucx_info."""

from __future__ import annotations

import re
from collections.abc import Collection

from waywiser.look.finding import Unknown
from waywiser.look.root import Root

_SETTING = re.compile(r"(UCX_[A-Z0-9_]{1,80})=(.{0,400})")
_RATE = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([KMGT]?)B(?:ps|/s|s)", re.IGNORECASE)
# GDRCopy's rates since UCX 1.18: a process alone reads at the one, all processes together write at the other.
_RENAMED = {"get": "get_dedicated", "put": "put_shared"}
# UCX counts in steps of 1024 (ucs_string_quantity_prefix_value).
_STEPS = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40}


def version(root: Root) -> tuple[int, int, int]:
    """The version of the installed UCX. Raises Unknown."""
    found = re.search(r"^# (?:Library )?[Vv]ersion:? (\d{1,3})\.(\d{1,3})\.(\d{1,3})", root.run("ucx_info", "-v"), re.M)
    if not found:
        raise Unknown("needs a version from 'ucx_info -v'")
    return int(found[1]), int(found[2]), int(found[3])


def built_with(root: Root, option: str) -> bool:
    """Whether UCX was configured with an option like "--with-cuda". Raises Unknown."""
    return re.search(rf"{option}(=(?!no\b)\S*)?(\s|$)", root.run("ucx_info", "-v")) is not None


def settings(root: Root) -> dict[str, str]:
    """Every variable that this UCX knows here, with its default. Raises Unknown."""
    lines = root.run("ucx_info", "-c").splitlines()[:10_000]
    found = {match[1]: match[2] for line in lines if (match := _SETTING.fullmatch(line.strip()))}
    if not found:
        raise Unknown("needs the variables of 'ucx_info -c', which names none")
    return found


def transports(root: Root) -> set[str]:
    """The transports that this UCX finds here. Raises Unknown."""
    return set(re.findall(r"^#\s+Transport: (\w{1,32})", root.run("ucx_info", "-d"), re.MULTILINE))


def rate(text: str) -> float | None:
    """ "11145.00MBps" -> bytes per second; None for "auto" and lists."""
    found = _RATE.fullmatch(text.strip())
    return float(found[1]) * _STEPS[found[2].upper()] if found else None


def rate_text(rate: float) -> str:
    """As UCX reads it, with three digits: another measurement of the same hardware mostly gives the same text."""
    mebibytes = rate / _STEPS["M"]
    return f"{float(f'{mebibytes:.2e}'):g}MBs"


def rates(text: str) -> dict[str, float]:
    """ "h2d:8300MBps,d2h:11660MBps" -> bytes per second by word; a single rate has the word ""."""
    found = {}
    for part in text.split(",")[:16]:
        word, colon, value = part.rpartition(":")
        number = rate(value)
        if number:
            found[word if colon else ""] = number
    return found


def word_for(direction: str, words: Collection[str]) -> str:
    """The word of a rate of GDRCopy ("get", "put") in this UCX, from the words that it has; others stay as they are."""
    renamed = _RENAMED.get(direction, direction)
    return renamed if renamed in words else direction
