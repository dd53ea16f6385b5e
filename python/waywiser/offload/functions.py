"""Functions of the server's own module, which it runs for its clients besides the built-in ones of the core.

A function takes arrays, then numbers by name, and returns one new array. The arrays are NumPy arrays on virtual GPUs,
and PyTorch tensors or CuPy arrays in the memory of a real GPU.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from waywiser.errors import InputError

Function = Callable[..., Any]


def functions_of(module: str) -> dict[str, Function]:
    """The functions that a module (its name, or a file) has in its dictionary `functions`.

    Raises InputError if the module cannot be imported or has none.
    """
    if not module:
        return {}
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
    return dict(theirs)
