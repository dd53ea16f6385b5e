"""The fault matrix of docs/faults.md: its rows and words; which tests show a cell, the tests themselves say.

In C++ the last line above the test is `// Faults: host D S; gpus T`, in Python it has `@pytest.mark.faults("host D S",
"gpus T")`: a section and some of its cells. `scripts/fault_matrix` writes the tables from both.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

from fault_words import NOT_TESTED, SECTIONS, Section

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faults.md"
COLUMNS = ("dead", "stopped", "late", "wrong call", "stranger", "no memory", "raises", "signal")
TEST = re.compile(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
MARK = "// Faults: "


@dataclass
class Declared:
    """Section -> cell -> the tests that show it; and the errors in the tests' declarations."""

    tests: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, test: str, words: list[str]) -> None:
        known = {section.key: section for section in SECTIONS}
        for part in words:
            key, *cells = part.split()
            if key not in known or not cells:
                self.problems.append(f"{test}: {part!r} is no section with cells; there are {', '.join(known)}")
                continue
            for cell in cells:
                if cell not in known[key].seen:
                    self.problems.append(f"{test}: {key} has no cell {cell!r}")
                self.tests.setdefault(key, {}).setdefault(cell, []).append(test)

    def of(self, section: Section, cell: str) -> list[str]:
        return self.tests.get(section.key, {}).get(cell, [])


def read_cpp(declared: Declared, name: str, text: str) -> None:
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.lstrip().startswith(MARK.strip()):
            continue
        found = TEST.match(lines[number + 1]) if number + 1 < len(lines) else None
        if found is None:
            declared.problems.append(f"{name}:{number + 1}: no test follows the line that says which faults it shows")
            continue
        declared.add(f"{found[1]}.{found[2]}", [part.strip() for part in line.split(":", 1)[1].split(";")])


def read_python(declared: Declared, name: str, text: str) -> None:
    for node in ast.parse(text).body:
        for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else []:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.faults":
                words = [ast.literal_eval(argument) for argument in mark.args]
                assert isinstance(node, ast.FunctionDef)
                declared.add(f"{name}::{node.name}", words)


def declared_by_tests() -> Declared:
    declared = Declared()
    for path in sorted((ROOT / "tests").rglob("*_test.cpp")):
        read_cpp(declared, path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "tests").rglob("*_test.py")):
        if path.name != "faults_matrix_test.py":
            read_python(declared, path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    return declared


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def shown(section: Section, declared: Declared, cell: str) -> str:
    """Cells that no test shows are said to be so."""
    letters = [
        each if each in section.reasons or declared.of(section, each) else NOT_TESTED for each in cell.split(",")
    ]
    return ", ".join(dict.fromkeys(letters))


def tables(section: Section, declared: Declared) -> str:
    rows = [
        [row.call, row.mode, *(shown(section, declared, cell) for cell in row.cells.split())] for row in section.rows
    ]
    used = {letter for row in rows for cell in row[2:] for letter in cell.split(", ")}
    text = [line(["Call", "Mode", *COLUMNS]), "|---" * (2 + len(COLUMNS)) + "|", *map(line, rows)]
    text += ["", *section.note.splitlines(), ""] if section.note else [""]
    text += [line(["Cell", "What is seen", "Tests"]), "|---|---|---|"]
    for cell, words in section.seen.items():
        if tests := declared.of(section, cell):
            text.append(line([cell, words, " ".join(f"`{test}`" for test in tests)]))
    text += ["", line(["Reason", "Why there is no test of this cell"]), "|---|---|"]
    reasons = {**section.reasons, NOT_TESTED: "not tested"}
    text += [line([key, why]) for key, why in reasons.items() if key in used]
    return "\n".join(text)


def with_tables(page: str, declared: Declared) -> str:
    """The page with new tables in all its sections. Raises ValueError if it has no place for a table."""
    for section in SECTIONS:
        begin, end = f"<!-- faults: {section.key} -->", "<!-- end -->"
        before, found, rest = page.partition(begin)
        old, ended, after = rest.partition(end)
        if not found or not ended or "<!--" in old:
            raise ValueError(f"the page has no lines {begin} and {end}")
        page = f"{before}{begin}\n{tables(section, declared)}\n{end}{after}"
    return page
