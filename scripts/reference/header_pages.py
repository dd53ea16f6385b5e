"""The pages of C, C++ and Fortran: declarations of the installed headers with their comments."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator

from .headers import ROOT, Entry, described_headers, read_header
from .markdown import directive, fenced, page, plain

C_HEADER = ROOT / "src/waywiser/c/waywiser.h"
_C = {"struct": "struct", "enum": "enum", "enumerator": "enumerator", "function": "function", "macro": "macro"}
_CPP = {"class": "class", "struct": "struct", "enum": "enum-class", "type": "type"}


def _entry(entry: Entry, domain: str) -> str:
    """The directive of a declaration, with those of its members inside."""
    if entry.kind == "note":
        return plain(entry.text)
    body = page(plain(entry.text), *(_entry(member, domain) for member in entry.members))
    if entry.kind == "macro":
        return directive("c:macro", entry.signature, body)
    other = {"variable": "var" if domain == "c" else "member", **(_C if domain == "c" else _CPP)}
    return directive(f"{domain}:{other.get(entry.kind, entry.kind)}", entry.signature, body)


def _sections(entries: Iterable[Entry]) -> Iterator[str]:
    """A comment that stands alone begins a section: `Groups`, or `Messages. Between two ranks they ...`."""
    for entry in entries:
        if entry.kind == "note":
            title, _, rest = re.sub(r"[.:,] ", "\0", entry.text, count=1).partition("\0")
            yield f"## {title}"
            yield plain(rest[:1].upper() + rest[1:])
        else:
            yield _entry(entry, "c")


def c_page() -> str:
    header = read_header(C_HEADER.read_text())
    lead = "Include `waywiser/c/waywiser.h`."
    return page("# C reference", lead, plain(header.text), "## Types", *_sections(header.entries))


def cpp_pages() -> dict[str, str]:
    """Name of each page -> its text; a page is a header."""
    pages = {}
    for name in described_headers():
        if name == "c/waywiser.h":
            continue
        file = ROOT / "src/waywiser" / name
        header = read_header(file.read_text())
        included = re.findall(r'#include "(waywiser/[^"]+)"', file.read_text())
        parts = [f"# {name}", f"`#include <waywiser/{name}>`", plain(header.text)]
        if included:
            parts.append("It includes " + ", ".join(f"`{each}`" for each in included) + ".")
        if any(entry.kind != "macro" for entry in header.entries):
            parts.append(directive("cpp:namespace", "waywiser"))
        pages[name.replace("/", "-").removesuffix(".hpp")] = page(
            *parts, *(_entry(each, "cpp") for each in header.entries)
        )
    return pages


def fortran_page() -> str:
    """The module as CMake makes it, each interface with a link to the C function that it calls."""
    sys.path.insert(0, str(ROOT / "cmake"))
    from fortran_module import module

    text = module(C_HEADER.read_text(), (C_HEADER.parent / "waywiser.f90.in").read_text())
    head, _, rest = text.partition("\n  interface\n")
    interfaces, _, contained = rest.partition("\n  end interface\n")
    comment = [line.removeprefix("! ") for line in head.splitlines() if line.startswith("!")]
    code = "\n".join(line for line in head.splitlines() if not line.startswith("!"))
    parts = ["# Fortran reference", plain("\n".join(comment)), "## Constants and types", fenced(code, "fortran")]
    parts.append("## Procedures")
    for lines in re.findall(r"^    (?:subroutine|function) .*?^    end \w+$", interfaces, re.DOTALL | re.MULTILINE):
        name = re.search(r"(?:subroutine|function) (\w+?)(?:_c)?\(", lines)
        assert name
        declaration = re.sub(r"^    ", "", lines, flags=re.MULTILINE).replace("  import\n", "")
        parts += [f"### {name[1]}", f"{{c:func}}`{name[1]}` describes it.", fenced(declaration, "fortran")]
    parts += ["## Functions of the module itself", fenced(re.sub(r"^  ", "", contained, flags=re.MULTILINE), "fortran")]
    return page(*parts)
