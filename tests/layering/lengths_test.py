"""Files of C++ and Python are short, those of the tests too."""

from __future__ import annotations

from collections.abc import Mapping

from layering_test import CPP, ROOT, repository_files

LINES = 300
FOLDERS = ("apps", "examples", "petsc", "python", "scripts", "src", "tests")  # each of benchmarks/ stands alone
SUFFIXES = {*CPP, ".cc", ".py"}
# Tests that are longer, with their lines: none grows, and none joins them.
LONG = {
    "collective/fused_order_test.cpp": 458,
    "collective/fused_test.cpp": 441,
    "collective/gpu_failure_test.cpp": 402,
    "collective/group_memory_test.cpp": 464,
    "collective/program_order_test.cpp": 500,
}


def too_long(lines: Mapping[str, int], long: Mapping[str, int]) -> list[str]:
    """The files that are longer than they may be, and those of `long` that are short now."""
    wrong = [f"{file}: {count} lines" for file, count in lines.items() if count > long.get(file, LINES - 1)]
    return wrong + [f"{file}: is short or gone" for file in long if lines.get(file, 0) < LINES]


def test_a_file_that_is_too_long_is_found() -> None:
    lines = {"a": 299, "b": 300, "c": 350, "d": 401, "e": 299}
    found = too_long(lines, {"c": 400, "d": 400, "e": 400, "f": 400})
    assert found == ["b: 300 lines", "d: 401 lines", "e: is short or gone", "f: is short or gone"]


def test_files_are_short() -> None:
    files = [path for path in repository_files() if path.parts[0] in FOLDERS and path.suffix in SUFFIXES]
    assert {path.parts[0] for path in files} == {*FOLDERS}
    lines = {str(path).removeprefix("tests/"): (ROOT / path).read_text().count("\n") for path in files}
    assert too_long(lines, LONG) == []
