"""Lists in options: words, sizes and numbers."""

from __future__ import annotations

import re

from waywiser.errors import InputError
from waywiser.units import parse_bytes

MOST_SIZES = 256


def words_in(text: str) -> list[str]:
    """Separated by commas or spaces."""
    return [word for word in re.split(r"[,\s]+", text) if word]


def among(words: list[str], known: tuple[str, ...], option: str) -> list[str]:
    """Each once. Raises InputError for one that is not known."""
    for word in words:
        if word not in known:
            raise InputError(f"{option} {word!r}: write some of {','.join(known)}")
    if not words:
        raise InputError(f"{option}: write some of {','.join(known)}")
    return list(dict.fromkeys(words))


def sizes_in(text: str) -> list[int]:
    """ "8,1K", "8..64M" (powers of two, both ends included) or "4K..8K/64" (steps) -> bytes, ascending."""
    found: set[int] = set()
    for word in words_in(text):
        ends, steps, step = word.partition("/")
        first, dots, last = ends.partition("..")
        low, high = parse_bytes(first), parse_bytes(last) if dots else parse_bytes(first)
        if high < low:
            raise InputError(f"--sizes {word!r}: the second size is below the first")
        stride = parse_bytes(step) if steps else 0
        if steps and (not dots or stride < 1):
            raise InputError(f"--sizes {word!r}: steps need two sizes, such as 4K..8K/64")
        if steps and (high - low) // stride < MOST_SIZES:
            found.update(range(low, high + 1, stride))
        elif steps:
            raise InputError(f"--sizes {word!r}: more than {MOST_SIZES} sizes")
        else:
            found.update(1 << power for power in range(51) if low <= 1 << power <= high)
        found.update((low, high))
    if not found or len(found) > MOST_SIZES:
        raise InputError(f"--sizes {text!r}: write 1 to {MOST_SIZES} sizes, such as 8,1K,64M or 8..64M")
    return sorted(found)


def numbers_in(text: str, option: str, most: int, example: str) -> list[int]:
    """Whole numbers from 1 to `most`, ascending. Raises InputError."""
    numbers = set()
    for word in words_in(text):
        if not word.isdecimal() or not 1 <= int(word) <= most:
            raise InputError(f"{option} {word!r}: write numbers from 1 to {most}, such as {example}")
        numbers.add(int(word))
    if not numbers:
        raise InputError(f"{option}: write numbers from 1 to {most}, such as {example}")
    return sorted(numbers)
