"""docs/faults.md equals the output of scripts/fault_matrix; each cell has a test or a reason, each call a row."""

from __future__ import annotations

import re

import pytest
from fault_cells import COLUMNS, PAGE, Declared, declared_by_tests, read_cpp, read_python, tables, with_tables
from fault_words import HOST, NOT_TESTED, SECTIONS, Row, Section
from faults_test import CALLS

import waywiser as ww

# Not calls that wait for others; `synchronize` is of GPU arrays, `close` of its own section.
NO_ROW = {
    "bytes_of",
    "synchronize",
    "close",
    "why_staged",
    "why_not_fused",
    "encrypted_by",
    "prepare",
    "iprobe",  # waits for others only as long as it is told
    "mprobe",  # waits as probe does; a message of another length is right, since its status says how long it is
    "abort",
    "failure",
    # Calls above: two all_reduces, a split, a split and a join.
    "minloc",
    "maxloc",
    "split_by_machine",
    "split_apart",
    # Objects are pickled into the messages and collectives above.
    "send_object",
    "recv_object",
    "broadcast_object",
    "gather_objects",
    "all_gather_objects",
}


def test_the_page_is_what_the_tests_say() -> None:
    declared = declared_by_tests()
    assert declared.problems == []
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page, declared) == page, "docs/faults.md is not what the tests say: run scripts/fault_matrix"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.key)
def test_every_cell_has_a_meaning_and_every_meaning_a_test(section: Section) -> None:
    declared = declared_by_tests()
    used = {letter for row in section.rows for cell in row.cells.split() for letter in cell.split(",")}
    assert used - {*section.seen, *section.reasons, NOT_TESTED} == set()
    assert {*section.seen, *section.reasons} - used == set()
    assert all(len(row.cells.split()) == len(COLUMNS) for row in section.rows)
    assert [cell for cell in section.seen if not declared.of(section, cell)] == []


SMALL = Section("host", [Row("send", "blocking", "D S L,H W s M R I")], {"D": "an error", "L": "nothing"}, {"s": "why"})


def test_a_cell_that_no_test_shows_is_said_to_be_untested() -> None:
    declared = Declared()
    declared.add("Fault.Dead", ["host D"])
    text = tables(SMALL, declared)
    assert "| send | blocking | D | u | u | u | s | u | u | u |" in text
    assert "| D | an error | `Fault.Dead` |" in text
    assert "| L |" not in text
    assert "| u | not tested |" in text


def test_what_tests_say_is_read() -> None:
    declared = Declared()
    read_cpp(declared, "a_test.cpp", "// Who dies.\n// Faults: host D; gpus D T\nTEST_F(Fault, Dead) {\n")
    read_python(declared, "a_test.py", "@pytest.mark.faults('host S', 'forming J')\ndef test_stopped(): pass\n")
    assert declared.problems == []
    assert declared.tests["host"] == {"D": ["Fault.Dead"], "S": ["a_test.py::test_stopped"]}
    assert declared.tests["gpus"] == {"D": ["Fault.Dead"], "T": ["Fault.Dead"]}
    assert declared.tests["forming"] == {"J": ["a_test.py::test_stopped"]}


def test_what_is_wrong_with_what_tests_say_is_found() -> None:
    declared = Declared()
    read_cpp(declared, "a_test.cpp", "// Faults: host D\n\nTEST(Fault, Dead) {\n")
    read_cpp(declared, "b_test.cpp", "// Faults: guests D; host Z; host\nTEST(Fault, Dead) {\n")
    said = "\n".join(declared.problems)
    for words in ("a_test.cpp:1: no test follows", "'guests D' is no section", "host has no cell 'Z'", "'host' is no"):
        assert words in said
    assert len(declared.problems) == 4


def test_a_page_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="has no lines <!-- faults: host --> and <!-- end -->"):
        with_tables("# Faults\n<!-- faults: gpus -->\n<!-- end -->\n", Declared())


def test_every_call_of_a_group_has_a_row() -> None:
    assert [(row.mode, row.call) for row in HOST.rows] == CALLS
    words = set(re.findall(r"\w+", " ".join(name for _, name in CALLS)))
    calls = {name for name in vars_of(ww.Group) if not name.startswith("start_")}
    assert calls - words - NO_ROW == set()


def vars_of(kind: type) -> set[str]:
    """The class's own methods, and those of its parts."""
    parts = [part for part in kind.__mro__ if part.__module__.startswith("waywiser.group")]
    return {
        name for part in parts for name, value in vars(part).items() if not name.startswith("_") and callable(value)
    }
