"""A copy of a machine's /sys, /proc and /dev in a folder. Its `waywiser-root.json` holds facts that are not files:

{"schema": "waywiser.root", "version": 1, "commands": {"dmesg": "...", "ibv_devinfo": null}, "environment": {},
 "spaces": {"/dev/shm": [total, free]}, "user": 1000}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from waywiser.errors import InputError
from waywiser.files import read_json
from waywiser.json_fields import Node
from waywiser.look.commands import Replayed
from waywiser.look.root import Root

FILE, SCHEMA, VERSION = "waywiser-root.json", "waywiser.root", 1


def recorded_root(folder: Path, results: Path | None = None) -> Root:
    """The machine in `folder`; without waywiser-root.json only its files are known. Raises InputError."""
    if not folder.is_dir():
        raise InputError(f"--root {folder}: no such folder")
    file = folder / FILE
    value = read_json(file, SCHEMA, VERSION) if file.exists() else {}
    node = Node(value, str(file))
    spaces = {}
    for path, pair in _object(node, "spaces").items():
        numbers = [one.as_number() for one in Node(pair, f"{file}: spaces").elements()]
        if len(numbers) != 2:
            raise node.refuse("spaces must hold pairs: total and free bytes")
        spaces[path] = (int(numbers[0]), int(numbers[1]))
    answers = _object(node, "commands")
    environment = _object(node, "environment")
    if not all(isinstance(text, (str, type(None))) for text in (*answers.values(), *environment.values())):
        raise node.refuse("commands and environment must hold texts")
    user = node.integer("user", 0, most=1 << 32)
    return Root(folder, environment, Replayed(answers, spaces), user, results)


def _object(node: Node, key: str) -> dict[str, Any]:
    value = node.child(key).value if node.has(key) else {}
    if not isinstance(value, dict):
        raise node.child(key).refuse("must be an object")
    return value
