"""What Sphinx reads: the Markdown of the repository, the files that its links show, and the pages made from sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from . import cli_page, header_pages, python_page
from .headers import ROOT

LANDING = "README.md"  # the site's first page; its lists of pages are those of the table below
TABLE = "docs/README.md"
PROJECT = "CONTRIBUTING.md"  # above the pages of the folders
_LINK = re.compile(r"(\]\()([^)#\s]+)")

CPP = """\
# C++ reference

[The guide](../docs/programs.md) has a program. A page is a header that is installed; `waywiser/waywiser.hpp` includes
what a program with ranks needs.
"""


def tracked_files() -> list[str]:
    """Files that git tracks or would add, but for those in hidden folders."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in answer.stdout.splitlines() if (ROOT / name).exists() and not name.startswith(".")]


def targets(page: str) -> list[str]:
    """The files that the links of a page name, relative to the root."""
    there = [os.path.normpath(Path(page).parent / found[2]) for found in _LINK.finditer((ROOT / page).read_text())]
    return [name for name in there if (ROOT / name).is_file()]


def contents(pages: Iterable[str], caption: str = "") -> str:
    """A list for the side bar: names of pages as the one that has it says them, without .md."""
    head = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n{head}\n" + "\n".join(pages) + "\n```\n"


def chapters() -> dict[str, list[str]]:
    """The rows of the table: a title, and the pages below it."""
    rows = re.findall(r"^\| (.+?) \| (.*\]\(.*) \|$", (ROOT / TABLE).read_text(), re.MULTILINE)
    named = {
        title[0].upper() + title[1:]: [os.path.normpath(Path(TABLE).parent / found[2]) for found in _LINK.finditer(row)]
        for title, row in rows
    }
    return {title: [name.removesuffix(".md") for name in pages] for title, pages in named.items()}


def _below(page: str, markdown: list[str]) -> list[str]:
    """The pages below a page: the others of its folder of docs; below that of the project, those of all folders."""
    if page == PROJECT:
        return [name.removesuffix(".md") for name in markdown if "/" in name and not name.startswith("docs/")]
    folder = Path(page).parent
    if Path(page).name != "README.md" or not folder.is_relative_to("docs/") or page == TABLE:
        return []
    others = [Path(name) for name in markdown if Path(name).parent == folder and name != page]
    return [other.stem for other in others]


def _landing() -> str:
    reference = [f"reference/{name}" for name in ("python", "c", "cpp", "fortran", "command_line")]
    project = [
        name.removesuffix(".md") for name in tracked_files() if re.fullmatch(r"\w+\.md", name) and name != LANDING
    ]
    parts = [(ROOT / LANDING).read_text(), contents([TABLE.removesuffix(".md")])]
    parts += [contents(pages, title) for title, pages in chapters().items()]
    return "".join([*parts, contents(reference, "Reference"), contents(project, "Project")])


def _made() -> dict[str, str]:
    cpp = header_pages.cpp_pages()
    return {
        "index.md": _landing(),
        "reference/python.md": python_page.python_page(),
        "reference/c.md": header_pages.c_page(),
        "reference/fortran.md": header_pages.fortran_page(),
        "reference/command_line.md": cli_page.command_line_page(),
        "reference/cpp.md": CPP + contents(f"cpp/{name}" for name in cpp).replace(":hidden:\n", ""),
        **{f"reference/cpp/{name}.md": text for name, text in cpp.items()},
    }


def _to_landing(page: str, text: str) -> str:
    """A link to the landing page names the page that it is here."""

    def renamed(found: re.Match[str]) -> str:
        folder = Path(page).parent
        is_landing = os.path.normpath(folder / found[2]) == LANDING
        return found[1] + (os.path.relpath("index.md", folder) if is_landing else found[2])

    return _LINK.sub(renamed, text)


def lay_out(folder: Path) -> None:
    """Fills `folder`, in the layout of the repository, so that its links stay valid."""
    shutil.rmtree(folder, ignore_errors=True)
    markdown = sorted(name for name in tracked_files() if name.endswith(".md") and name != LANDING)
    shown = {name for page in [LANDING, *markdown] for name in targets(page)} - {LANDING, *markdown}
    for name in shown:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    written = _made()
    for page in markdown:
        below = _below(page, markdown)
        written[page] = _to_landing(page, (ROOT / page).read_text()) + (contents(below) if below else "")
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    here = Path(__file__).parent
    shutil.copyfile(here / "conf.py", folder / "conf.py")
    shutil.copytree(here / "style", folder / "style")
