"""Tables for the terminal and for a pipe."""

from __future__ import annotations

import pytest
from rich.text import Text

from waywiser.terminal import add, print_result, table


def test_a_wide_table_goes_wide_in_a_pipe(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    made = table(*(f"!head{i}" for i in range(8)))
    cells = [f"{i}" * 30 for i in range(8)]
    add(made, *cells)
    print_result(made)
    shown = capsys.readouterr().out
    assert "…" not in shown and shown.splitlines()[2].split() == cells


def test_a_long_text_still_wraps_at_100(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    print_result(Text("word " * 60))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and max(map(len, lines)) <= 100
