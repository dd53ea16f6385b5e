"""Reads a header of C or C++, as clang-format writes it: its public declarations and the comments before them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_CONTAINER = re.compile(r"(?:typedef )?(class|struct|enum class|enum)\b(?! \w+\* )")
_TRANSPARENT = re.compile(r'(?:namespace(?: [\w:]+)?|extern "C") \{')
_NOT_FOR_READERS = re.compile(
    r"\[\[gnu::\w+(?:\(\"default\"\))?\]\] |\balignas\((?:[^()]|\([^()]*\))*\) |\bWW_API | WW_ANY_INT\b"
    r"|\bWAYWISER_(?:DEVICE|APART) |^inline (?!constexpr)"
)
_FORWARD = re.compile(r"(template ?<.*> )?(class|struct|enum(?: class)?) \w+(?: : [\w:]+)?$")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'')
_CLOSING = {"(": ")", "{": "}", "[": "]"}


@dataclass
class Entry:
    kind: str  # class, struct, enum, enumerator, function, variable, type, macro; note: a comment that stands alone
    signature: str
    text: str  # of the comment
    members: list[Entry] = field(default_factory=list)


@dataclass
class Header:
    text: str = ""  # of the comment at the head of the file
    entries: list[Entry] = field(default_factory=list)


def public_headers() -> list[str]:
    """The headers that cmake/Library.cmake installs, relative to src/waywiser."""
    listed = re.search(r"set\(public_headers\s(.*?)\)", (ROOT / "cmake/Library.cmake").read_text(), re.DOTALL)
    return listed[1].split() if listed else []


def described_headers() -> list[str]:
    """Those of them that have a page: not the parts of the standard library that NVRTC lacks."""
    return [name for name in public_headers() if not name.startswith("kernels/rtc/")]


def _words(comment: str) -> str:
    """The comment without its marks and without directives to the linter."""
    if comment.startswith("/*"):
        lines = [re.sub(r"^\s*\*? ?", "", line) for line in comment[2:-2].splitlines()]
    else:
        lines = [re.sub(r"^\s*// ?", "", comment)]
    text = re.sub(r"\s*-{20,}\s*$", "", "\n".join(lines)).strip()
    return "" if text.startswith(("NOLINT", "namespace ")) else text


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def header(self) -> Header:
        found = Header()
        found.entries = list(self._entries(found, "public"))
        return found

    def _entries(self, header: Header | None, access: str) -> Iterator[Entry]:
        """Public declarations up to the closing brace of the container, or the end of the file."""
        comment: list[str] = []
        in_condition, macros = False, set[str]()
        while (gap := self._gap()) is not None:
            if gap.count("\n") > 1 and comment and not in_condition:
                if header is not None and header.text:
                    yield Entry("note", "", "\n".join(comment))
                elif header is not None:
                    header.text = "\n".join(comment)
                comment = []
            if found := _COMMENT.match(self.text, self.at):
                self.at = found.end()
                if words := _words(found[0]):
                    comment.append(words)
            elif self.text[self.at] == "#":
                line = self._directive()
                if line.startswith("#include") and header is not None and not header.text:
                    header.text = "\n".join(comment)
                if line.startswith(("#else", "#elif")):  # the same declarations again, for another compiler
                    self._skip_to_endif()
                if not line.startswith(("#if", "#define")):
                    in_condition, comment = False, []
                    continue
                in_condition = True
                if header is not None and not header.text and line.startswith("#ifndef"):
                    header.text, comment = "\n".join(comment), []
                if comment and (macro := re.match(r"#define (\w+)", line)) and macro[1] not in macros:
                    macros.add(macro[1])
                    yield Entry("macro", macro[1], "\n".join(comment))
            elif found := _TRANSPARENT.match(self.text, self.at):
                self.at, comment, in_condition = found.end(), [], False
                if "float8" in found[0] or "detail" in found[0]:
                    self._skip_group("{")
            elif self.text[self.at] == "}":
                self.at += 1
                if header is None:
                    return
            elif found := re.match(r"(public|private|protected):", self.text[self.at :]):
                self.at, access, comment = self.at + found.end(), found[1], []
            else:
                entries = self._declaration("\n".join(comment))
                comment, in_condition = [], False
                if access == "public":
                    yield from entries

    def _gap(self) -> str | None:
        """Skips white space and lone semicolons; None at the end of the file."""
        gap = re.compile(r"[\s;]*").match(self.text, self.at)
        self.at = gap.end() if gap else self.at
        return gap[0] if gap and self.at < len(self.text) else None

    def _directive(self) -> str:
        line = re.compile(r"(?:[^\n\\]|\\.)*", re.DOTALL).match(self.text, self.at)
        assert line
        self.at = line.end()
        return line[0]

    def _skip_to_endif(self) -> None:
        """To behind the `#endif` of the condition that the text is in."""
        depth = 1
        for found in re.compile(r"^ *#(if|endif).*", re.MULTILINE).finditer(self.text, self.at):
            depth += 1 if found[1] == "if" else -1
            if depth == 0:
                self.at = found.end()
                return

    def _skip_group(self, opening: str) -> None:
        """From behind an opening bracket to behind its closing one."""
        depth = [_CLOSING[opening]]
        while depth:
            if found := _COMMENT.match(self.text, self.at) or _LITERAL.match(self.text, self.at):
                self.at = found.end()
                continue
            character = self.text[self.at]
            self.at += 1
            if character in _CLOSING:
                depth.append(_CLOSING[character])
            elif character == depth[-1]:
                depth.pop()

    def _trailing(self) -> str:
        """The comment behind a declaration, which may continue in the lines below it."""
        found = re.compile(r",?[ ]*(//[^\n]*|/\*[^\n]*?\*/)((?:\n[ ]{20,}//[^\n]*)*)").match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return "\n".join(_words(line.strip()) for line in (found[1] + found[2]).splitlines()).strip()

    def _declaration(self, comment: str) -> list[Entry]:
        """One declaration, whose body is left out; several for `int a, b;`."""
        start = self.at
        pieces: list[str] = []
        while True:
            if found := _COMMENT.match(self.text, self.at) or _LITERAL.match(self.text, self.at):
                pieces.append(found[0] if found[0][0] in "\"'" else " ")
                self.at = found.end()
                continue
            character = self.text[self.at]
            head = " ".join("".join(pieces).split())
            if character == ";":
                self.at += 1
                return self._plain(head, comment)
            if character == "{":
                plain = _without_template(_NOT_FOR_READERS.sub("", head))
                if plain.startswith("requires"):  # of a partial specialisation
                    self.at += 1
                    self._skip_group("{")
                    if re.search(r"\b(?:struct|class) [\w<>:, ]+$", plain):
                        return []
                    continue
                if _CONTAINER.match(plain) and "(" not in re.sub(r"\[\[.*?\]\]", "", plain):
                    return self._container(head, comment)
                if (
                    "(" in head
                    and not re.search(r"(?<!operator)(?<![=<>!])=(?![=>]) ?$", head)
                    and (self.text[self.at - 1] == " ")
                ):
                    self.at += 1
                    self._skip_group("{")
                    return self._plain(re.split(r"(?<=[)\w]) : ", head)[0], comment)
            self.at += 1
            if character in _CLOSING:
                inner = self.at
                self._skip_group(character)
                character += _COMMENT.sub("", self.text[inner : self.at])
            pieces.append(character)
            assert self.at > start

    def _plain(self, head: str, comment: str) -> list[Entry]:
        trailing = self._trailing()
        text = "\n".join(part for part in (comment, trailing) if part)
        head = _NOT_FOR_READERS.sub("", _NOT_FOR_READERS.sub("", head)).replace("[[noreturn]] ", "")
        head = re.sub(r"^inline ", "", head)
        if re.match(r"template ?<[^>]*> concept ", head):  # Sphinx has another directive for it
            return []
        if opaque := re.fullmatch(r"typedef struct (\w+) \1", head):
            return [Entry("struct", opaque[1], text)]
        if comment and (template := re.fullmatch(r"(template ?<(?!>).*>) struct (\w+)", head)):
            return [Entry("struct", f"{template[1]} {template[2]}", text)]
        unread = _FORWARD.match(head) or re.match(r"friend |static_assert|template ?<>|using [^=]*$", head)
        if unread or re.search(r"\b\w+::\w+ ?[{=]", head.split("(")[0]):
            return []
        if alias := re.match(r"(template ?<.*> )?using (\w+ = .*)", head):
            return [Entry("type", (alias[1] or "") + alias[2], text)]
        if re.match(r"(?!typedef )[\w ]+\(\*\w+\)\(", head):  # a pointer to a function
            return [Entry("variable", head, text)]
        if "(" in head.split(" = ")[0].split("{")[0] and not re.match(r"std::function", head):
            return [Entry("function", re.sub(r" ?\{\}$", "", head), text)]
        return [Entry("variable", each, text) for each in _apart(head)]

    def _container(self, head: str, comment: str) -> list[Entry]:
        self.at += 1
        head = _NOT_FOR_READERS.sub("", head)
        found = _CONTAINER.match(_without_template(head))
        assert found
        kind = found[1].split()[0]
        if kind == "enum":
            entry = Entry("enum", head, comment, list(self._enumerators()))
        else:
            entry = Entry(kind, head, comment, list(self._entries(None, "private" if kind == "class" else "public")))
        entry.signature = re.sub(r"^(typedef )?(enum class|\w+) ", "", _without_template(head))
        if head.startswith("template"):
            entry.signature = f"{head[: len(head) - len(_without_template(head))]}{entry.signature}"
        entry.text = "\n".join(part for part in (entry.text, self._behind()) if part)
        return [] if re.match(r"template ?<>", head) or " requires" in head else [entry]

    def _behind(self) -> str:
        """The text after the closing brace: `} ww_error;` and a comment."""
        found = re.compile(r"[ ]?\w*;").match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self._trailing()

    def _enumerators(self) -> Iterator[Entry]:
        while (self._gap() is not None) and self.text[self.at] != "}":
            if found := _COMMENT.match(self.text, self.at):
                self.at = found.end()
                continue
            found = re.compile(r"(\w+)(?: = ([^,}\n/]*[^,}\n/ ]))?").match(self.text, self.at)
            assert found, self.text[self.at : self.at + 60]
            self.at = found.end()
            text = self._trailing()
            comma = re.compile(r",").match(self.text, self.at)
            self.at = comma.end() if comma else self.at
            yield Entry("enumerator", found[1] + (f" = {found[2]}" if found[2] else ""), text)
        self.at += 1


def _without_template(head: str) -> str:
    """Without `template <...>` before it."""
    if not head.startswith("template"):
        return head
    depth = 0
    for place, character in enumerate(head):
        depth += (character == "<") - (character == ">")
        if character == ">" and depth == 0:
            return head[place + 1 :].strip()
    return head


def _apart(head: str) -> list[str]:
    """`int a = 0, b = 1` as two declarations."""
    depth, parts = 0, [""]
    for character in head:
        depth += (character in "({[<") - (character in ")}]>")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    kind = re.match(r"(.*?[ *&])\w+(?: = .*|\{.*|\[.*)?$", parts[0])
    return [parts[0], *(f"{kind[1] if kind else ''}{part.strip()}" for part in parts[1:])]


def read_header(text: str) -> Header:
    """The public declarations of a header's text, in its order. Specialisations of templates are left out."""
    return _Reader(text.replace("#pragma once\n", "")).header()
