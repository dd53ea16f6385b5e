"""Reads the output of nvidia-smi, indented "key : value" lines, into nested dictionaries."""

from __future__ import annotations

import re
from typing import Any

from waywiser.look.finding import Unknown
from waywiser.look.root import Root

Section = dict[str, Any]
_MOST_LINES = 20_000
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*")


def parse_query(text: str) -> tuple[Section, dict[str, Section]]:
    """The head, and a section for each GPU by its bus address ("0000:17:00.0"), of `nvidia-smi -q`."""
    head: Section = {}
    found: dict[str, Section] = {}
    stack: list[tuple[int, Section]] = [(-1, head)]
    for line in text.splitlines()[:_MOST_LINES]:
        gpu = _GPU.fullmatch(line)
        if gpu:
            stack = [(-1, found.setdefault(bus_address(gpu[1]), {}))]
        elif line.strip() and not line.startswith("="):
            _add(stack, line)
    return head, found


def _add(stack: list[tuple[int, Section]], line: str) -> None:
    depth = len(line) - len(line.lstrip())
    key, colon, value = line.strip().partition(" : ")
    if not colon:
        key, colon, value = line.strip().rstrip(":").strip(), "", ""
    while len(stack) > 1 and stack[-1][0] >= depth:
        stack.pop()
    if colon:
        stack[-1][1][key.strip()] = value.strip()
    else:
        section = stack[-1][1].setdefault(key, {})
        stack.append((depth, section if isinstance(section, dict) else {}))


def bus_address(text: str) -> str:
    """nvidia-smi's address 00000000:17:00.0 in the kernel's form, 0000:17:00.0."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def query(root: Root) -> tuple[Section, dict[str, Section]]:
    """`nvidia-smi -q`. Raises Unknown."""
    head, found = parse_query(root.run("nvidia-smi", "-q"))
    if not found:
        raise Unknown("nvidia-smi -q names no GPU")
    return head, found


def value(section: Section, *keys: str) -> str:
    """The value under nested keys; empty if a key is missing."""
    here: Any = section
    for key in keys:
        here = here.get(key) if isinstance(here, dict) else None
    return here if isinstance(here, str) else ""


def mebibytes(text: str) -> int | None:
    """ "81559 MiB" -> 81559."""
    found = re.fullmatch(r"(\d{1,9}) MiB", text)
    return int(found[1]) if found else None


def nvlinks(root: Root) -> dict[int, tuple[int, int]]:
    """(active, all) NVLinks of each GPU that has any, from `nvidia-smi nvlink -s`. Raises Unknown, also for a message
    in place of the links."""
    counts: dict[int, list[int]] = {}
    gpu: list[int] | None = None
    lines = root.run("nvidia-smi", "nvlink", "-s").splitlines()[:_MOST_LINES]
    for line in lines:
        if named := re.match(r"GPU (\d{1,4}):", line):
            gpu = counts.setdefault(int(named[1]), [0, 0])
        found = re.match(r"\s+Link \d{1,2}: (.{0,40})", line)
        if found and gpu:
            gpu[1] += 1
            gpu[0] += found[1][:1].isdecimal()
        elif not named and line.strip() and "not support" not in line.lower():
            raise Unknown(f"nvidia-smi nvlink -s: {line.strip()[:160]}")
    if not counts:
        raise Unknown("nvidia-smi nvlink -s names no GPU")
    return {number: (active, links) for number, (active, links) in counts.items() if links}


def is_above(section: Section, *keys: str) -> bool:
    """Whether the value under nested keys is a number above 0."""
    return value(section, *keys).isdecimal() and int(value(section, *keys)) > 0


def watts(text: str) -> float | None:
    """ "700.00 W" -> 700."""
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?) W", text)
    return float(found[1]) if found else None


def megahertz(text: str) -> int | None:
    """ "1980 MHz" -> 1980."""
    found = re.fullmatch(r"(\d{1,6}) MHz", text)
    return int(found[1]) if found else None
