"""Files of a folder are compiled together, so what one of them declares for itself has a name of its own there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from layering_test import ROOT, without_comments

COMPILED = ("src/waywiser", "tests", "python/bindings")
# In the namespace without a name; clang-format indents nothing there.
LOCAL = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.MULTILINE | re.DOTALL)
TYPE = r"(?:[\w:]+(?:<[^;={}()]*>)?(?: ?[&*]+)?)"
VARIABLES = re.compile(
    rf"^(?:static |thread_local |inline )*(?:const|constexpr) (?:const )?{TYPE}[ ]?([^;(]+?[=;{{][^;]*);?", re.M
)
MUTABLE = re.compile(r"^(?:thread_local )?(?:std::atomic<[^\n;]*?>|std::mutex|int|bool) (\w+)(?: =|;|\{)", re.M)
FUNCTIONS = re.compile(
    rf"^(?:template <[^\n]*>\n)?(?:inline |constexpr |static |\[\[\w+\]\] )*{TYPE} (\w+)(\([^{{;]*?\))[^;{{]*\{{", re.M
)


def local_names(text: str) -> Iterator[str]:
    """Of variables, and of functions with the types of their parameters."""
    for part in map(without_comments, LOCAL.findall(text)):
        for declared in VARIABLES.findall(part):
            bare, before = re.sub(r"\"[^\"]*\"", "", declared), ""
            while bare != before:
                bare, before = re.sub(r"\{[^{}]*\}|\([^()]*\)|<[^<>]*>", "", bare), bare
            yield from re.findall(r"(?:^|, )[*&]?(\w+)(?:\[[^\]]*\])*(?= =|$|;|,|\{)", bare)
        yield from MUTABLE.findall(part)
        for name, parameters in FUNCTIONS.findall(part):
            types = re.sub(r"(?<=[\w>&*]) ?\b\w+(?= = [^,]*|,|\))", "", parameters)
            yield name + re.sub(r"\s+", " ", re.sub(r" = [^,)]*", "", types))


def test_local_names_are_found() -> None:
    text = (
        'namespace {\nconstexpr int a = 1, b = f(2, 3);\nconst std::string c = "x, d = 1";\nconst P p{A{1, {}}, {2}};\n'
    )
    text += "std::mutex f;\nint g(const A& one, int two = 3) {\n  const int h = 1;\n}\n}  // namespace\nint i() {\n}\n"
    assert sorted(local_names(text)) == ["a", "b", "c", "f", "g(const A&, int)", "p"]


def test_no_two_files_of_a_folder_have_one_local_name() -> None:
    files: dict[tuple[Path, str], list[str]] = {}
    for path in sorted(path for folder in COMPILED for path in (ROOT / folder).rglob("*.cpp")):
        for name in sorted(set(local_names(path.read_text()))):
            files.setdefault((path.parent.relative_to(ROOT), name), []).append(path.name)
    assert {where: names for where, names in files.items() if len(names) > 1} == {}
