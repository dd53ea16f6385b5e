"""The page of the Python package: the names in `waywiser.__all__` with their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import waywiser
import waywiser.group.types

from .markdown import directive, page, plain

_TYPES = Path(waywiser.group.types.__file__).read_text()


def own_members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public names of a class, those of its bases in this package included, in the order of the sources.

    The fields of a NamedTuple are in its signature.
    """
    seen: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.split(".")[0] != "waywiser":
            continue
        for name, value in vars(base).items():
            if not name.startswith("_") and name not in (*seen, *getattr(kind, "_fields", ())):
                seen.add(name)
                yield name, value


def _signature(function: Any, without_self: bool) -> str:
    """As written: annotations are texts."""
    try:
        told = inspect.signature(function)
    except (TypeError, ValueError):
        return "()"
    parameters = list(told.parameters.values())[1 if without_self else 0 :]
    words = str(told.replace(parameters=parameters))
    return re.sub(r"'([^']*)'", r"\1", words) if "Literal" not in words else re.sub(r": '([^']*)'", r": \1", words)


def _signature_of_class(kind: type) -> str:
    """The signature of the constructor; empty for errors and for types that only the package makes."""
    if fields := getattr(kind, "_fields", ()):
        annotations, defaults = kind.__annotations__, kind._field_defaults  # type: ignore[attr-defined]
        words = [f"{name}: {getattr(annotations[name], '__forward_arg__', annotations[name])}" for name in fields]
        words = [
            f"{word} = {defaults[name]!r}" if name in defaults else word
            for name, word in zip(fields, words, strict=True)
        ]
        return f"({', '.join(words)})"
    if issubclass(kind, BaseException) or kind.__init__ is object.__init__ or "_core" in str(inspect.signature(kind)):
        return ""
    return _signature(kind, False).removesuffix(" -> None")


def _member(name: str, value: Any) -> str:
    text = plain(inspect.getdoc(value) or "") if callable(value) or hasattr(value, "__get__") else ""
    if isinstance(value, property):
        kind = inspect.signature(value.fget).return_annotation if value.fget else ""
        return directive("py:property", name, page(f"Type: `{kind}`.", text) if kind else text)
    if isinstance(value, classmethod | staticmethod):
        return directive("py:method", f"{name}{_signature(value.__func__, isinstance(value, classmethod))}", text)
    if callable(value):
        return directive("py:method", f"{name}{_signature(value, True)}", text)
    return directive("py:attribute", name, f"Value: `{value!r}`." if isinstance(value, str | int | float) else "")


def _alias(name: str) -> str:
    """A name for a type: its comment and its text in types.py."""
    found = re.search(rf"((?:^#[^\n]*\n)*)^{name} = (.*?)(?=\n\S|\n\n|\Z)", _TYPES, re.DOTALL | re.MULTILINE)
    assert found, name
    comment = "\n".join(line.removeprefix("# ") for line in found[1].splitlines())
    return directive("py:data", name, page(plain(comment), f"`{' '.join(found[2].partition('  #')[0].split())}`"))


def _entry(name: str) -> str:
    value = getattr(waywiser, name)
    if inspect.isclass(value):
        is_error = issubclass(value, BaseException)
        bases = ", ".join(
            f"`{base.__name__}`" for base in value.__bases__ if base.__module__ in ("waywiser", "builtins")
        )
        parts = [f"Bases: {bases}."] if is_error else []
        parts += [plain(inspect.getdoc(value) or ""), *(_member(*member) for member in own_members(value))]
        return directive(
            "py:exception" if is_error else "py:class", f"{name}{_signature_of_class(value)}", page(*parts)
        )
    if inspect.isfunction(value):
        return directive("py:function", f"{name}{_signature(value, False)}", plain(inspect.getdoc(value) or ""))
    if re.search(rf"^{name} = ", _TYPES, re.MULTILINE):
        return _alias(name)
    return directive("py:data", name, plain(inspect.getdoc(type(value)) or ""))


def _sort(name: str) -> int:
    value = getattr(waywiser, name)
    if inspect.isfunction(value):
        return 0
    if inspect.isclass(value):
        return 3 if issubclass(value, BaseException) else 1
    return 2


def python_page() -> str:
    """Functions, classes, other names, errors."""
    names = sorted(waywiser.__all__, key=lambda name: name != "Error")  # the base of the others comes first
    parts = ["# Python reference", directive("py:module", "waywiser"), plain(inspect.getdoc(waywiser.group) or "")]
    for number, title in enumerate(("Functions", "Classes", "Types and other names", "Errors")):
        parts += [f"## {title}", *(_entry(name) for name in names if _sort(name) == number)]
    return page(*parts)
