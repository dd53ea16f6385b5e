"""Values in the YAML of a cluster file, with the line of each for messages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import yaml

from waywiser.errors import InputError
from waywiser.json_fields import clean

MOST_NODES = 100000
_YES_NO = {"yes": True, "no": False, "true": True, "false": False, "on": True, "off": False}


class Words:
    """Reads values; each raises InputError with file and line."""

    def __init__(self, what: str) -> None:
        self.what = what

    def refuse(self, node: Any, why: str) -> InputError:
        return InputError(f"{self.what}, line {node.start_mark.line + 1}: {clean(why)}")

    def text(self, node: Any, key: str, allowed: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.refuse(node, f"'{key}' must be {allowed}")
        return str(node.value).strip()

    def number(self, node: Any, key: str, least: float, most: float, whole: bool = False) -> float:
        allowed = f"a {'whole ' if whole else ''}number from {least:g} to {most:g}"
        text = self.text(node, key, allowed)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or (whole and value != int(value)):
            raise self.refuse(node, f"'{key}' must be {allowed}, not {str(node.value)[:40]!r}")
        return value

    def flag(self, node: Any, key: str, words: dict[str, bool] = _YES_NO) -> bool:
        allowed = " or ".join([*words][:2])
        if (word := self.text(node, key, allowed).lower()) not in words:
            raise self.refuse(node, f"'{key}' must be {allowed}, not {node.value[:40]!r}")
        return words[word]

    def pairs(self, node: Any, key: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(node, yaml.MappingNode):
            raise self.refuse(node, f"{key} must be a list of NAME: VALUE")
        seen = set()
        for name, value in node.value:
            text = self.text(name, key, "a list of NAME: VALUE")
            if text in seen:
                raise self.refuse(name, f"'{text[:40]}' is given twice")
            seen.add(text)
            yield text, value

    def items(self, node: Any, key: str) -> list[Any]:
        if not isinstance(node, yaml.SequenceNode) or len(node.value) > MOST_NODES:
            raise self.refuse(node, f"'{key}' must be a list, such as [3, 17]")
        return list(node.value)
