"""docs/programs.md, "The same calls in each language": each name is public, and called in a test of its language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import waywiser

ROOT = Path(__file__).parents[2]
TABLE = (
    (ROOT / "docs/programs.md").read_text().partition("## The same calls in each language\n")[2].partition("\n## ")[0]
)
ROWS = [[cell.strip() for cell in line.split(" | ")] for line in TABLE.splitlines() if line.startswith("| ")][1:]
COLUMNS = {"python": 1, "c++": 2, "c": 3, "fortran": 3}


def texts(*patterns: str) -> str:
    return "".join(
        path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern)) if path != Path(__file__)
    )


PUBLIC = {
    "python": " ".join([*dir(waywiser), *dir(waywiser.Group), *dir(waywiser.Future)]),
    "c++": texts("src/waywiser/**/*.hpp"),
    "c": texts("src/waywiser/c/waywiser.h", "src/waywiser/c/waywiser_mpi.h"),
    "fortran": texts("src/waywiser/c/waywiser.h").lower(),  # of which the module is made
}
TESTS = {
    "python": texts("tests/python/*.py"),
    "c++": texts("tests/group/*.cpp", "tests/comm/*.cpp", "tests/consumers/mpi/*.cpp"),
    "c": texts("tests/consumers/*/main.c"),
    "fortran": texts("tests/consumers/*/main.f90"),
}


def names(language: str) -> list[str]:
    cells = [row[COLUMNS[language]].rstrip(" |") for row in ROWS]
    found = [name for cell in cells for name in re.findall(r"`\"?([\w:]+)\"?`", cell)]
    return [name.lower() for name in found if name != "ww_join_mpi"] if language == "fortran" else found


@pytest.mark.parametrize("language", COLUMNS)
def test_the_names_of_the_page_are_public_and_tested(language: str) -> None:
    found = names(language)
    assert len(found) > 15
    operations = {"band", "bor", "bxor", "land", "lor", "lxor"}  # words of Python; enumerators elsewhere
    for name in found:
        last = name.rpartition("::")[2]
        public = operations if name in operations else PUBLIC[language]
        assert re.search(rf"\b{last}\b", " ".join(public) if isinstance(public, set) else public), name
        assert re.search(rf"\b{last}\b", TESTS[language]), f"{name} is called in no test"
