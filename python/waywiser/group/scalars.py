"""Numbers of Python and NumPy in place of arrays: a collective of numbers gives a number of the same type."""

from __future__ import annotations

import sys
from typing import Any, TypeVar

from waywiser.errors import InputError

# Python's types of numbers -> the type of the array that carries one.
_TYPES: dict[type, str] = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}

S = TypeVar("S", bool, int, float, complex)


def is_scalar(data: Any) -> bool:
    """Whether `data` is one number, and not an array."""
    if type(data) in _TYPES:
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(data, numpy.generic)


def as_array(data: Any) -> Any:
    """An array without dimensions that holds the number. Raises InputError for an int beyond 64 bits."""
    import numpy

    try:
        return numpy.array(data, dtype=_TYPES.get(type(data)))
    except OverflowError:
        raise InputError(f"{data} does not fit into 64 bits") from None


def as_scalar(array: Any, like: Any) -> Any:
    """The number in an array of `as_array(like)`, in the type of `like`."""
    value = array[()]
    return type(like)(value) if type(like) in _TYPES else value
