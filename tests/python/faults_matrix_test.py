"""docs/faults.md: each cell of its tables names tests that are there, or a reason; each call of a group has a row."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from faults_test import CALLS

import waywiser as ww

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
# Not calls that wait for others; `synchronize` is of GPU arrays, `close` of its own section.
NO_ROW = {"bytes_of", "synchronize", "close", "why_staged", "why_not_fused", "encrypted_by"}


@dataclass
class Section:
    """A matrix, what its capital letters mean, and the reasons of its small ones."""

    title: str
    rows: list[list[str]] = field(default_factory=list)
    tests: dict[str, list[str]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def sections(text: str) -> list[Section]:
    found: list[Section] = []
    table = ""
    for line in text.splitlines():
        if line.startswith("## "):
            found.append(Section(line[3:]))
        if not line.startswith("|"):
            table = ""
            continue
        first = cells(line)
        if not table:
            table = first[0]
        elif not set("".join(first)) <= set("-"):
            take(found[-1], table, first)
    return [section for section in found if section.rows]


def take(section: Section, table: str, row: list[str]) -> None:
    if table == "Call":
        section.rows.append(row)
    elif table == "Cell":
        section.tests[row[0]] = re.findall(r"`([^`]+)`", row[2])
    elif table == "Reason":
        section.reasons[row[0]] = row[1]


@cache
def names_in_cpp() -> set[str]:
    """Suite.Name of all of them."""
    found: set[str] = set()
    for file in (ROOT / "tests").rglob("*.cpp"):
        named = re.findall(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", file.read_text(encoding="utf-8"), re.MULTILINE)
        found.update(f"{suite}.{name}" for suite, name in named)
    return found


@cache
def names_in_python(file: str) -> set[str]:
    path = ROOT / file
    if not path.is_file():
        return set()
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def is_there(test: str) -> bool:
    file, both, name = test.partition("::")
    return name in names_in_python(file) if both else test in names_in_cpp()


def problems(text: str) -> list[str]:
    found = []
    for section in sections(text):
        used = set()
        for row in section.rows:
            for key in [key.strip() for cell in row[2:] for key in cell.split(",")]:
                used.add(key)
                if key not in section.tests and not section.reasons.get(key):
                    found.append(f"{section.title}: {row[0]}, {row[1]}: {key!r} is neither a test nor a reason")
            if len(row) != 10:
                found.append(f"{section.title}: {row[0]}: {len(row)} cells")
        found += [f"{section.title}: no cell is {key!r}" for key in {*section.tests, *section.reasons} - used]
        for key, tests in section.tests.items():
            found += [f"{section.title}: {key}: there is no test {test}" for test in tests if not is_there(test)]
            found += [] if tests else [f"{section.title}: {key} names no test"]
    return found


def test_every_cell_names_tests_that_are_there_or_a_reason() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert len(sections(text)) == 4
    assert problems(text) == []


def test_what_is_wrong_with_a_page_is_found() -> None:
    page = """
## Section
| Call | Mode | dead | stopped | late | wrong call | stranger | no memory | raises | signal |
|---|---|---|---|---|---|---|---|---|---|
| send | blocking | A | B |  | A | A | r | q | A |

| Cell | What is seen | Tests |
|---|---|---|
| A | something | `Fault.KilledBetweenCollectives` `Fault.NotThere` |
| B | something | |
| C | something | `tests/python/faults_test.py::test_nothing` |

| Reason | Why |
|---|---|
| r | because |
| q | |
"""
    said = "\n".join(problems(page))
    for words in (
        "send, blocking: '' is neither",
        "send, blocking: 'q' is neither",
        "A: there is no test Fault.NotThere",
        "B names no test",
        "no cell is 'C'",
        "C: there is no test tests/python/faults_test.py::test_nothing",
    ):
        assert words in said
    assert len(problems(page)) == 6


def test_every_call_of_a_group_has_a_row() -> None:
    host = next(s for s in sections(PAGE.read_text(encoding="utf-8")) if s.title == "Arrays of the host")
    assert [(row[1], row[0]) for row in host.rows] == CALLS
    words = set(re.findall(r"\w+", " ".join(name for _, name in CALLS)))
    calls = {name for name in vars_of(ww.Group) if not name.startswith("start_")}
    assert calls - words - NO_ROW == set()


def vars_of(kind: type) -> set[str]:
    """The methods that are its own, and those of its parts."""
    parts = [part for part in kind.__mro__ if part.__module__.startswith("waywiser.group")]
    return {
        name for part in parts for name, value in vars(part).items() if not name.startswith("_") and callable(value)
    }
