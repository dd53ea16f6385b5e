"""The fields of an exchange: arrays, with or without components."""

from __future__ import annotations

from typing import Any, NamedTuple, Union

from waywiser.errors import InputError
from waywiser.group.types import Array


class ComponentsFirst(NamedTuple):
    """A vector field of a halo exchange whose components are the first dimension of its array, not the last."""

    array: Array


HaloField = Union[Array, ComponentsFirst]  # noqa: UP007 - for Python 3.10


def array_of(field: Any) -> Any:
    """The array of a field."""
    return field.array if isinstance(field, ComponentsFirst) else field


def described(field: Any, local_shape: tuple[int, ...]) -> tuple[Array, int, bool]:
    """As the core expects it: array, number of components, whether they are the first dimension."""
    array, first = array_of(field), isinstance(field, ComponentsFirst)
    shape = tuple(getattr(array, "shape", local_shape))
    if shape == local_shape and not first:
        return array, 1, False
    cells, components = (shape[1:], shape[:1]) if first else (shape[:-1], shape[-1:])
    if cells != local_shape or not components:
        where = "first" if first else "last"
        raise InputError(f"a field of shape {shape}: {local_shape} was expected, or that with components {where}")
    return array, components[0], first
