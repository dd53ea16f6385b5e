"""Parses XML from outside: no entities, no own document type, bounded size, depth and number of elements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from waywiser.errors import InputError

_LARGEST = 32 << 20
_DEEPEST = 64
_MOST_ELEMENTS = 200_000
_HWLOC_DOCTYPE = re.compile(r'<!DOCTYPE\s+topology\s+SYSTEM\s+"hwloc2?\.dtd"\s*>')


class _Bounded(ElementTree.TreeBuilder):
    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what
        self._depth = 0
        self._elements = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> ElementTree.Element:
        self._depth += 1
        self._elements += 1
        if self._depth > _DEEPEST:
            raise InputError(f"{self._what}: elements are nested deeper than {_DEEPEST}")
        if self._elements > _MOST_ELEMENTS:
            raise InputError(f"{self._what}: more than {_MOST_ELEMENTS} elements")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag)


def parse_xml(text: str, what: str) -> ElementTree.Element:
    """The root element of `text`; `what` names it in messages. Raises InputError with one line."""
    if len(text) > _LARGEST:
        raise InputError(f"{what}: larger than {_LARGEST >> 20} MiB")
    text = _HWLOC_DOCTYPE.sub("", text, count=1)
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise InputError(f"{what}: XML with a document type or entities is refused")
    parser = ElementTree.XMLParser(target=_Bounded(what))
    try:
        parser.feed(text)
        root = parser.close()
    except InputError:
        raise
    except (ElementTree.ParseError, ValueError, UnicodeError) as error:
        raise InputError(f"{what}: not valid XML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(root, ElementTree.Element):
        raise InputError(f"{what}: not valid XML: no element")
    return root


def open_tag(name: str, attributes: Mapping[str, object], *, close: bool = False) -> str:
    """`<name key="value" ...>`, without attributes that are None or empty.

    Values are in double quotes, the only quotes that the parsers of hwloc and NCCL accept.
    """
    texts = "".join(f' {key}="{_quoted(str(v))}"' for key, v in attributes.items() if v not in (None, ""))
    return f"<{name}{texts}{'/' if close else ''}>"


def _quoted(text: str) -> str:
    return escape(_printable(text), {'"': "&quot;"})


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def whole(text: str | None, fallback: int = 0, most: int = 1 << 62) -> int:
    """A whole number from 0 to `most`; the fallback for anything else."""
    if text is None or len(text) > 20 or not text.strip().isascii() or not text.strip().isdigit():
        return fallback
    number = int(text)
    return number if number <= most else fallback


def decimal(text: str | None) -> float:
    """A positive finite number; 0.0 for anything else."""
    if text is None or not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,12})?", text.strip()):
        return 0.0
    return float(text)
