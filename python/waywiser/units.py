"""Parses and formats sizes, times and rates. Sizes are binary (1 KiB = 1024 B); rates are decimal (1 GB = 1e9 B)."""

from __future__ import annotations

import re

from waywiser.errors import InputError

_SIZE = re.compile(r"\s*(\d{1,19})\s*(?:([KMGT])(?:iB|B)?|B)?\s*", re.IGNORECASE)
_STEPS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
ENDLESS = 1 << 50  # a range that ends here or above is open


def parse_bytes(text: str) -> int:
    """ "64K", "64 KiB", "2M", "1G", "17" -> bytes. Raises InputError for anything else and above 1 PiB."""
    found = _SIZE.fullmatch(text)
    value = int(found[1]) << _STEPS[(found[2] or "").upper()] if found else ENDLESS + 1
    if value > ENDLESS:
        raise InputError(f"{text!r} is not a size: write 17, 64K, 2M or 1G")
    return value


def format_bytes(size: int) -> str:
    """65536 -> "64 KiB"; sizes that are not a multiple of the unit get three digits: 65535 -> "64.0 KiB"."""
    for letter in "TGMK":
        unit = 1 << _STEPS[letter]
        if size >= unit:
            whole, rest = divmod(size, unit)
            return f"{whole} {letter}iB" if rest == 0 else f"{_digits(size / unit)} {letter}iB"
    return f"{size} B"


def format_range(first: int, last: int) -> str:
    """The sizes from `first` to `last`, both included: "1 B to 4 KiB", "4 KiB to < 64 KiB", "2 MiB and more"."""
    first = max(first, 1)
    if last >= ENDLESS:
        return "every size" if first <= 1 else f"{format_bytes(first)} and more"
    if first == last:
        return format_bytes(first)
    below = (last + 1) & last == 0 or (last >= 1 << 20 and (last + 1) % (1 << 20) == 0)
    return f"{format_bytes(first)} to {'< ' + format_bytes(last + 1) if below else format_bytes(last)}"


def format_seconds(seconds: float) -> str:
    """Three digits and a unit: "1.21 µs"."""
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= 0.9995 * factor:
            return f"{_digits(seconds / factor)} {unit}"
    return f"{_digits(seconds / 1e-9)} ns"


def format_rate(bytes_per_second: float) -> str:
    """Three digits and a unit, 1 GB = 1e9 bytes: "396 GB/s"."""
    for factor, unit in ((1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")):
        if bytes_per_second >= 0.9995 * factor:
            return f"{_digits(bytes_per_second / factor)} {unit}"
    return f"{_digits(bytes_per_second)} B/s"


def format_percent(fraction: float) -> str:
    """0.934 -> "93 %"; "< 1 %" for less than that."""
    return f"{100 * fraction:.0f} %" if fraction >= 0.01 or fraction == 0 else "< 1 %"


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}"
