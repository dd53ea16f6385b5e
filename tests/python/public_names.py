"""The functions that public headers declare without a body: a program finds them in the library or nowhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

NO_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.DOTALL | re.MULTILINE)
SCOPE = re.compile(r"^(?:template )?(?:inline )?(?:namespace|class|struct|union)\s+([\w:]+)")
FUNCTION = re.compile(r"([\w:]*~?\w+|operator\W+?)\s*\(")
OTHER = re.compile(r"^(?:template|using|typedef|friend|static_assert|enum)\b|=\s*(?:delete|default|0)$")


def plain(statement: str) -> str:
    """Without attributes, labels of access and arguments of templates."""
    statement = re.sub(r"\[\[.*?\]\]|\b(?:public|private|protected):", " ", statement)
    while (shorter := re.sub(r"(?<!operator)<[^<>]*>", "", statement)) != statement:
        statement = shorter
    return " ".join(statement.split())


def function_of(statement: str) -> str | None:
    found = FUNCTION.search(statement)
    return None if found is None or OTHER.search(statement) or "=" in statement[: found.start()] else found.group(1)


def names_in(header: str) -> Counter[str]:
    """Functions without a body in this header, as `waywiser::Group::rank`, with the number of overloads."""
    names = Counter[str]()
    scopes: list[str | None] = [""]  # None: the body of a function, an enumeration, a value
    statement = ""
    for piece in re.split(r"([{};])", NO_CODE.sub(" ", header)):
        scope, text = scopes[-1], plain(statement)
        if piece == "{" and scope is not None and text.count("(") > text.count(")"):
            scopes.append(scope)  # a default argument
        elif piece == "{":
            opened = SCOPE.match(text)
            scopes.append(f"{scope}{opened.group(1)}::" if scope is not None and opened else None)
            name = function_of(text) or ""
            names[f"{scope}{name}"] -= scope is not None and "::" in name  # the body of what a class has declared
            statement = ""
        elif piece == "}":
            closed = scopes.pop()
            statement = statement if closed == scopes[-1] else ""
        elif scope is None:
            continue
        elif piece == ";":
            if (name := function_of(text)) is not None:
                names[scope + name] += 1
            statement = ""
        else:
            statement += piece
    assert scopes == [""]
    return names


def declared_only(headers: Iterable[str]) -> Counter[str]:
    names = Counter[str]()
    for header in headers:
        names.update(names_in(header))
    return +names


def without_arguments(symbol: str) -> str:
    """`waywiser::text[abi:cxx11](waywiser::Place)` -> `waywiser::text`."""
    return re.sub(r"\[abi:\w+\]|\(.*", "", symbol.replace("operator()(", "operator("))
