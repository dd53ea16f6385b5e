"""The lists of options of `simulate step`: NAME=VALUE,..., with one line of error for what is wrong."""

from __future__ import annotations

import re

from waywiser.errors import InputError
from waywiser.lists import words_in

_MOST = 1e18
_YES = {"yes": True, "no": False}


def pairs_in(text: str, option: str, known: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words_in(text):
        name, equals, value = word.partition("=")
        if not equals or name not in known:
            examples = ",".join(f"{one}={example}" for one, example in known.items())
            raise InputError(f"{option} {word[:60]!r}: write some of {examples}")
        if name in found:
            raise InputError(f"{option}: {name} is given twice")
        found[name] = value
    return found


def number(found: dict[str, str], name: str, option: str, default: float | None = None, most: float = _MOST) -> float:
    """From just above 0 to `most`; "7e9", "7B", "350M"."""
    if name not in found:
        if default is None:
            raise InputError(f"{option}: {name} is missing")
        return default
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,9})?(?:e\d{1,2})?)([KMGBT]?)", found[name])
    value = float(match[1]) * {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}[match[2]] if match else 0.0
    if not 0 < value <= most:
        raise InputError(f"{option}: {name} must be a number above 0 and at most {most:g}, not {found[name][:40]!r}")
    return value


def whole(found: dict[str, str], name: str, option: str, default: int | None = None) -> int:
    value = number(found, name, option, default)
    if value != int(value):
        raise InputError(f"{option}: {name} must be a whole number, not {found[name][:40]!r}")
    return int(value)


def flag(found: dict[str, str], name: str, option: str, default: bool) -> bool:
    value = found.get(name, "yes" if default else "no")
    if value not in _YES:
        raise InputError(f"{option}: {name} must be yes or no, not {value[:40]!r}")
    return _YES[value]
