"""Reads fields of JSON from outside: type, range and size are checked, and the error names the field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from waywiser.errors import InputError

_LONGEST_TEXT = 4096
_MOST_ITEMS = 1_000_000
_LARGEST_NUMBER = 1e30


def clean(text: str, longest: int = _LONGEST_TEXT) -> str:
    """`text`, shortened and without control characters and broken code points, so that it is safe on a terminal."""
    if len(text) <= longest and text.isprintable():
        return text
    kept = "".join(c if c.isprintable() else " " for c in text[:longest])
    return kept.encode("utf-8", "replace").decode("utf-8")


def check_by_core(check: Callable[[str, str], None], data: bytes, what: str) -> None:
    """Calls a check of the core; its InputError names `what` (a file name), and is safe on a terminal."""
    try:
        check(data.decode("utf-8"), what)
    except InputError as error:  # of a place or a word it names no file
        said, name = clean(str(error)), clean(what)
        raise InputError(said if said.startswith(name) else f"{name}: {said}") from None


class Node:
    """A JSON value together with its place: "profile.json: series[3].limit"."""

    def __init__(self, value: Any, where: str) -> None:
        self.value = value
        self.where = where

    def refuse(self, why: str) -> InputError:
        """The error with this value's place and `why`."""
        return InputError(f"{self.where}: {why}")

    def has(self, key: str) -> bool:
        """Whether this is an object with a value other than null under `key`."""
        return isinstance(self.value, dict) and self.value.get(key) is not None

    def child(self, key: str) -> Node:
        """The value under `key`, which must exist."""
        if not isinstance(self.value, dict):
            raise self.refuse("must be an object")
        if key not in self.value:
            raise self.refuse(f'"{key}" is missing')
        return Node(self.value[key], f"{self.where}: {key}" if "[" not in self.where else f"{self.where}.{key}")

    def items(self, key: str) -> Iterator[Node]:
        """The elements of the list under `key`; a missing list is empty."""
        if isinstance(self.value, dict) and key not in self.value:
            return
        yield from self.child(key).elements()

    def elements(self) -> Iterator[Node]:
        """The elements of this list."""
        if not isinstance(self.value, list) or len(self.value) > _MOST_ITEMS:
            raise self.refuse(f"must be a list of at most {_MOST_ITEMS} values")
        for index, value in enumerate(self.value):
            yield Node(value, f"{self.where}[{index}]")

    def text(self, key: str, default: str | None = None, longest: int = _LONGEST_TEXT) -> str:
        """A string, cleaned of control characters."""
        if default is not None and not self.has(key):
            return default
        node = self.child(key)
        if not isinstance(node.value, str):
            raise node.refuse("must be a string")
        return clean(node.value, longest)

    def flag(self, key: str, default: bool = False) -> bool:
        """A boolean."""
        if not self.has(key):
            return default
        node = self.child(key)
        if not isinstance(node.value, bool):
            raise node.refuse("must be true or false")
        return node.value

    def number(self, key: str, default: float | None = None, above_zero: bool = False) -> float:
        """A finite number >= 0 (or > 0)."""
        if default is not None and not self.has(key):
            return default
        return self.child(key).as_number(above_zero)

    def as_number(self, above_zero: bool = False) -> float:
        """This value as a finite number >= 0 (or > 0)."""
        value = self.value
        valid = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not valid or not 0 <= value <= _LARGEST_NUMBER or math.isnan(value) or (above_zero and value == 0):
            raise self.refuse(f"must be a number {'above' if above_zero else 'from'} 0")
        return float(value)

    def integer(self, key: str, default: int | None = None, least: int = 0, most: int = (1 << 64) - 1) -> int:
        """A whole number from `least` to `most`."""
        if default is not None and not self.has(key):
            return default
        node = self.child(key)
        if not isinstance(node.value, int) or isinstance(node.value, bool) or not least <= node.value <= most:
            raise node.refuse(f"must be a whole number from {least} to {most}")
        return node.value

    def word(self, key: str, words: tuple[str, ...]) -> str:
        """One of `words`."""
        value = self.text(key)
        if value not in words:
            raise self.child(key).refuse(f"must be one of {', '.join(words)}")
        return value
