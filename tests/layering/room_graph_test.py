"""docs/rooms.md shows the rooms as they are."""

from __future__ import annotations

from pathlib import Path

from room_graph import GRAPHS, PAGE, ROOT, circles, graphs, in_order, matrix, tables, today


def test_the_page_shows_the_rooms_of_today() -> None:
    assert today(PAGE.read_text(encoding="utf-8"))[1] == tables(ROOT), "run scripts/room_graph"


def test_no_rooms_need_each_other() -> None:
    assert {title: circles(edges) for title, edges in graphs(ROOT).items()} == {title: [] for title in GRAPHS}


def test_a_circle_is_found_and_shown() -> None:
    edges = {("b", "a"), ("c", "b"), ("b", "c"), ("d", "c")}
    assert circles(edges) == [["b", "c"]]
    assert in_order(edges) == ["a", "b", "c", "d"]
    assert [line.split()[2:] for line in list(matrix(edges))[1:]] == [
        *(["-", ".", ".", "."], ["x", "-", "o", "."], [".", "x", "-", "."], [".", ".", "x", "-"])
    ]


def test_includes_and_imports_are_read(tmp_path: Path) -> None:
    for name, text in {
        "src/waywiser/comm/session/a.cpp": '#include "waywiser/comm/bootstrap/b.hpp"\n#include "waywiser/base/c.hpp"\n',
        "python/waywiser/run/a.py": "def f():\n    from waywiser import look, units\n    import waywiser.apply.b\n",
        "python/waywiser/look/__init__.py": "import os\nfrom waywiser import remote\n",
        "python/waywiser/units.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "python/waywiser/apply").mkdir()
    assert list(graphs(tmp_path).values()) == [
        {("comm", "base")},
        {("session", "bootstrap")},
        {("run", "look"), ("run", "ground"), ("run", "apply"), ("look", "waywiser")},
    ]
