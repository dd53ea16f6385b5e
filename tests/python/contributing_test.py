"""CONTRIBUTING.md quotes code that is there, and names files and all folders that are there; CHANGELOG.md is short."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
import yaml

import waywiser

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
QUOTED = ["transport/host_copy/host_copy.cpp", "collective/all_to_all/direct.cpp"]


def test_the_examples_are_quoted() -> None:
    code = "".join((ROOT / "src/waywiser" / file).read_text() for file in QUOTED)
    blocks = re.findall(r"```cpp\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 4
    assert len([block for block in blocks if block not in code]) == 1  # the excerpt below


def test_the_excerpt_is_in_the_example_that_it_names() -> None:
    chapter = PAGE.partition("## The plan inside the library\n")[2]
    name = re.search(r"\]\((examples/\w+\.cpp)\)", chapter)
    block = re.search(r"```cpp\n(.*?)```", chapter, re.DOTALL)
    assert name and block
    assert textwrap.indent(block[1], "  ") in (ROOT / name[1]).read_text()


def test_the_files_are_there() -> None:
    files = re.findall(r"`((?:src|python|tests|docs|cmake|\.ci)/[\w./]+)`", PAGE) + re.findall(r"\]\(([\w./]+)\)", PAGE)
    assert len(files) > 8
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_every_folder_of_the_sources_has_its_line() -> None:
    folders = {f"src/waywiser/{path.name}/" for path in (ROOT / "src/waywiser").iterdir() if path.is_dir()}
    assert {folder for folder in folders if f"`{folder}`" not in PAGE} == set()


def test_the_next_changes_fit_on_a_few_screens() -> None:
    (following,) = re.findall(
        r"^## Next\n(.*?)(?=^## |\Z)", (ROOT / "CHANGELOG.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert len(following.splitlines()) <= 150


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["cff-version"], citation["title"], citation["type"]) == ("1.2.0", "Waywiser", "software")
    assert citation["version"] == waywiser.__version__
    assert {"message", "authors", "license"} <= citation.keys()


@pytest.mark.parametrize("template", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.name)
def test_templates_of_issues_say_what_they_are_for(template: Path) -> None:
    front, _, text = template.read_text().removeprefix("---\n").partition("---\n")
    assert yaml.safe_load(front).keys() == {"name", "about"} and text.strip()
