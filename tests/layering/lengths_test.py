"""Files of C++ and Python are short, those of the tests too."""

from __future__ import annotations

from collections.abc import Mapping

from layering_test import CPP, ROOT, repository_files

LINES = 300
FOLDERS = ("apps", "examples", "plugins", "python", "scripts", "src", "tests")  # each of benchmarks/ stands alone
SUFFIXES = {*CPP, ".cc", ".py"}


def too_long(lines: Mapping[str, int]) -> list[str]:
    return [f"{file}: {count} lines" for file, count in lines.items() if count >= LINES]


def test_a_file_that_is_too_long_is_found() -> None:
    assert too_long({"a": 299, "b": 300, "c": 301}) == ["b: 300 lines", "c: 301 lines"]


def test_files_are_short() -> None:
    files = [path for path in repository_files() if path.parts[0] in FOLDERS and path.suffix in SUFFIXES]
    assert {path.parts[0] for path in files} == {*FOLDERS}
    assert too_long({str(path): (ROOT / path).read_text().count("\n") for path in files}) == []
