"""The manual pages that `make docs` writes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from waywiser import cli

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from reference import man_pages

PAGES = man_pages.man_pages()


def test_there_is_a_page_for_each_verb() -> None:
    assert set(PAGES) == {"waywiser.1", *(f"waywiser-{verb}.1" for verb in cli.VERBS)}
    for verb, line in cli.VERBS.items():
        assert f".B {verb}\n{line}".replace("-", "\\-") in PAGES["waywiser.1"]


@pytest.mark.parametrize("name", PAGES)
def test_the_sections_of_a_page(name: str) -> None:
    page = PAGES[name]
    heads = [line[4:] for line in page.splitlines() if line.startswith(".SH ")]
    assert [head for head in heads if head not in ("ARGUMENTS", "VERBS")] == [
        "NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "ENVIRONMENT", "EXIT STATUS",
    ]  # fmt: skip
    assert "\\-\\-help" in page and "<list" not in page
    commands = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert commands == {".TH", ".SH", ".TP", ".B"} | ({".PP"} if ".PP" in page else set())


def test_groff_reads_them(tmp_path: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("there is no groff")
    man_pages.write_man_pages(tmp_path)
    files = sorted((tmp_path / "man1").glob("*.1"))
    assert len(files) == len(PAGES)
    for file in files:
        done = subprocess.run(["groff", "-man", "-ww", "-z", file], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, ""), file
