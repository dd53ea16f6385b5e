"""Functions that a server runs for its clients: built-in ones, and those of the server's own module.

A function takes arrays, then numbers by name, and returns one new array. The arrays are NumPy arrays on virtual GPUs,
and PyTorch tensors or CuPy arrays in the memory of a real GPU; built-in functions use only what these have in common.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waywiser.errors import InputError

Function = Callable[..., Any]


def add(a: Any, b: Any) -> Any:
    """a + b, element by element."""
    return a + b


def multiply(a: Any, b: Any) -> Any:
    """a * b, element by element."""
    return a * b


def scale(a: Any, factor: float = 1.0) -> Any:
    """a * factor."""
    return a * factor


def repeat_add(a: Any, b: Any, times: int = 1) -> Any:
    """a + b, added once more in each further repetition: a + times * b."""
    total = a + b
    for _ in range(int(times) - 1):
        total = total + b
    return total


BUILT_IN: dict[str, Function] = {each.__name__: each for each in (add, multiply, scale, repeat_add)}


def functions_of(module: str) -> dict[str, Function]:
    """The built-in functions, and those that a module (its name, or a file) has in its dictionary `functions`.

    Raises InputError if the module cannot be imported or has none.
    """
    if not module:
        return dict(BUILT_IN)
    name = module
    if module.endswith(".py"):
        file = Path(module).resolve()
        sys.path.insert(0, str(file.parent))
        name = file.stem
    try:
        theirs = importlib.import_module(name).functions
    except (ImportError, AttributeError, SyntaxError) as error:
        raise InputError(f"{module}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not isinstance(theirs, dict) or not all(isinstance(key, str) and callable(each) for key, each in theirs.items()):
        raise InputError(f"{module}: `functions` is a dictionary from names to functions")
    return BUILT_IN | theirs
