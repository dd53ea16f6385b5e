"""The tables of a case file: typed values by key, refusals that name the line."""

from __future__ import annotations

import math
from pathlib import Path

import yaml
from program import RunError


class CaseError(RunError):
    """A case file, or a mesh for it, is wrong; the text says where in one line."""


def one_line(error: object) -> str:
    """Its words."""
    return " ".join(str(error).split())[:300]


class Table:
    """One mapping of a YAML file. Every key must be asked for before `end()`."""

    def __init__(self, node: yaml.Node, file: Path, what: str) -> None:
        self.file, self.what, self.line = file, what, node.start_mark.line + 1
        self.nodes: dict[str, yaml.Node] = {}
        self.asked: list[str] = []
        if not isinstance(node, yaml.MappingNode):
            self.refuse(f"{what} is a table of keys and values")
        for key, value in node.value:
            name = str(key.value)
            if name in self.nodes:
                self.refuse(f"{name} is there twice", key)
            self.nodes[name] = value

    def refuse(self, why: str, node: yaml.Node | None = None) -> None:
        """Raises CaseError with the line."""
        line = node.start_mark.line + 1 if node is not None else self.line
        raise CaseError(f"{self.file}, line {line}: {one_line(why)}")

    def node(self, key: str, needed: bool = False) -> yaml.Node | None:
        """The value of a key; None if there is none, unless it is needed."""
        self.asked.append(key)
        if needed and key not in self.nodes:
            self.refuse(f"{self.what} needs {key}")
        return self.nodes.get(key)

    def text(self, key: str, choices: tuple[str, ...] = (), default: str | None = None) -> str:
        """A word, one of the choices if there are any; needed unless there is a default."""
        node = self.node(key, default is None)
        if node is None:
            return str(default)
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            self.refuse(f"{key} is a word", node)
        if choices and node.value not in choices:
            self.refuse(f"{key}: {node.value!r}: write one of {', '.join(choices)}", node)
        return str(node.value)

    def number(
        self, key: str, least: float = -math.inf, most: float = math.inf, default: float | None = None,
        above: bool = False,
    ) -> float:  # fmt: skip
        """A number from `least` (`above`: more than it) to `most`; needed unless there is a default."""
        node = self.node(key, default is None)
        if node is None:
            assert default is not None
            return default
        value = self._number(key, node)
        if value < least or value > most or (above and value == least):
            bound = f"more than {least:g}" if above else f"from {least:g} to {most:g}"
            self.refuse(f"{key}: {value:g}: a number {bound}", node)
        return value

    def _number(self, key: str, node: yaml.Node) -> float:
        try:
            value = float(node.value)
        except (TypeError, ValueError):
            self.refuse(f"{key} is a number", node)
        if not math.isfinite(value):
            self.refuse(f"{key} is not finite", node)
        return value

    def vector(self, key: str, default: list[float] | None = None) -> list[float]:
        """Three numbers; two are those of the plane."""
        node = self.node(key, default is None)
        if node is None:
            assert default is not None
            return default
        if not isinstance(node, yaml.SequenceNode) or len(node.value) not in (2, 3):
            self.refuse(f"{key} is a list of 2 or 3 numbers", node)
        return [*(self._number(key, each) for each in node.value), 0.0][:3]

    def flag(self, key: str, default: bool = False) -> bool:
        """Yes or no."""
        return self.text(key, ("yes", "no", "true", "false"), "yes" if default else "no") in ("yes", "true")

    def table(self, key: str, needed: bool = False) -> Table | None:
        """A table within; None if there is none, unless it is needed."""
        node = self.node(key, needed)
        return None if node is None else Table(node, self.file, key)

    def end(self) -> None:
        """Raises CaseError if there is a key that nobody has asked for."""
        for key, node in self.nodes.items():
            if key not in self.asked:
                self.refuse(f"unknown key {key!r}: {self.what} has {', '.join(dict.fromkeys(self.asked))}", node)


def read_table(file: Path) -> Table:
    """The outermost table of a file. Raises CaseError."""
    try:
        text = file.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{file}: cannot be read: {one_line(getattr(error, 'strerror', None) or error)}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CaseError(f"{file}: not YAML: {one_line(error)}") from None
    if root is None:
        raise CaseError(f"{file}: it is empty")
    return Table(root, file, "a case")
