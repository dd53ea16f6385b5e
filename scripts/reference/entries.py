"""Finds the names that the built site must describe, independently of the code that writes the pages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from .built_site import Page
from .headers import ROOT, described_headers

# The definition of a class, structure or enumeration; with `;` behind it, it would be a forward declaration.
_TYPE = re.compile(r"^(?:class|struct|enum class) (?:alignas\(.*\) )?(?:\[\[.*?\]\] )?(\w+)[^;\n]*\{", re.MULTILINE)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def _members(name: str, kind: type) -> Iterator[tuple[str, object]]:
    """Methods and properties of a class that are defined in this package."""
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == "waywiser":
            for word, value in vars(base).items():
                if not word.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                    yield f"{name}.{word}", value


def _python(folder: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Names of `__all__` and the members of its classes, each with its docstring."""
    import waywiser

    page = pages[(folder / "reference/python.html").resolve()]
    shown = _words("".join(page.words))
    for name in waywiser.__all__:
        value = getattr(waywiser, name)
        wanted = {name: value, **(dict(_members(name, value)) if inspect.isclass(value) else {})}
        for entry, each in wanted.items():
            if f"waywiser.{entry}" not in page.ids:
                yield f"python.html has no waywiser.{entry}"
            described = inspect.isclass(each) or inspect.isroutine(each) or isinstance(each, property)
            if described and _words(inspect.getdoc(each) or "") not in shown:
                yield f"python.html lacks the docstring of waywiser.{entry}"


def _c(folder: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Functions of the C header, which the Fortran module has too, and its comments."""
    page = pages[(folder / "reference/c.html").resolve()]
    fortran = pages[(folder / "reference/fortran.html").resolve()]
    header = (ROOT / "src/waywiser/c/waywiser.h").read_text()
    shown = _words("".join(page.words))
    for comment in re.findall(r"/\*(.*?)\*/", header, re.DOTALL):
        # A comment that stands alone begins with its heading.
        words = [_words(part) for part in re.split(r"[.:,] ", comment, maxsplit=1)]
        if not comment.lstrip().startswith("NOLINT") and any(each.casefold() not in shown.casefold() for each in words):
            yield f"c.html lacks the comment {' '.join(comment.split())[:60]!r}"
    for name in re.findall(r"\b(ww_\w+)\([^;{]*\)(?:;| \{)", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)):
        if f"c.{name}" not in page.ids:
            yield f"c.html has no {name}"
        if name not in "".join(fortran.words):
            yield f"fortran.html has no {name}"


def _cpp(pages: dict[Path, Page]) -> Iterator[str]:
    """Installed headers of C++ and the types that they define."""
    shown = {file: "".join(page.words) for file, page in pages.items() if file.parent.name == "cpp"}
    for header in described_headers():
        if header.endswith(".h"):
            continue
        text = (ROOT / "src/waywiser" / header).read_text()
        words = next((words for words in shown.values() if f"#include <waywiser/{header}>" in words), None)
        if words is None:
            yield f"no page includes <waywiser/{header}>"
            continue
        missing = [
            name for name in dict.fromkeys(_TYPE.findall(text)) if not re.search(rf"(?:class|struct) {name}\b", words)
        ]
        yield from (f"the page of {header} has no {name}" for name in missing)


def missing(folder: Path, pages: dict[Path, Page]) -> list[str]:
    """One line for each public name that the site in `folder`, read as `pages`, does not describe."""
    return [*_python(folder, pages), *_c(folder, pages), *_cpp(pages)]
