"""CONTRIBUTING.md quotes code that is there, and names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
QUOTED = ["transport/host_copy/host_copy.cpp", "collective/all_to_all/direct.cpp"]


def test_the_examples_are_quoted() -> None:
    code = "".join((ROOT / "src/waywiser" / file).read_text() for file in QUOTED)
    blocks = re.findall(r"```cpp\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 3
    assert [block for block in blocks if block not in code] == []


def test_the_files_are_there() -> None:
    files = re.findall(r"`((?:src|python|tests|docs|cmake|\.ci)/[\w./]+)`", PAGE) + re.findall(r"\]\(([\w./]+)\)", PAGE)
    assert len(files) > 8
    assert [file for file in files if not (ROOT / file).exists()] == []
