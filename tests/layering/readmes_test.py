"""READMEs of folders: each file that one names is there, and each source file of a folder is named in its README."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = {".hpp", ".cpp", ".cuh", ".cu", ".h", ".c", ".inc", ".in", ".py", ".js", ".css"}
FILE = re.compile(r"[\w./*-]+\.(hpp|cpp|cuh|cu|h|cc|c|inc|in|py|js|css|json|xml|md|def|yaml)|[\w./-]+/")
OF_OTHERS = {"cuda.h"}  # NVIDIA's
MADE_FROM_IT = re.compile(r"NAME|TARGET")  # stand for names


def repository() -> list[PurePosixPath]:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        pytest.skip("not a git checkout", allow_module_level=True)
    return [PurePosixPath(line) for line in answer.stdout.splitlines() if (ROOT / line).exists()]


def readmes(files: list[PurePosixPath]) -> list[PurePosixPath]:
    return [path for path in files if path.name == "README.md" and path.parts[0] != "docs" and len(path.parts) > 1]


def names_in(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


def first_cells(text: str) -> set[str]:
    """The names in the first column of the tables of files."""
    found: set[str] = set()
    for table in re.findall(r"^\| (?:File|Folder|Room)[^\n]*\n\|[-|]+\n((?:\|.*\n?)+)", text, re.MULTILINE):
        for line in table.splitlines():
            found |= names_in(line.split(" | ")[0])
    return found


def names(written: str, path: PurePosixPath) -> bool:
    """Whether a README means the file `path`, which is relative to the README's folder.

    A name stands for the files of its stem in any folder below; `folder/` for all files in it; `*` for anything."""
    if written.endswith("/"):
        return f"/{written}" in f"/{path.parent}/"
    stem, wanted = PurePosixPath(written), path.parent / path.name.split(".")[0]
    pattern = str(stem.parent / stem.name.split(".")[0])
    return fnmatch(str(wanted), pattern) or fnmatch(str(wanted), f"*/{pattern}")


def absent(text: str, below: list[PurePosixPath], everywhere: list[PurePosixPath]) -> list[str]:
    """The names in a README that no file has: of its table below its folder, others anywhere."""
    table = [each for each in first_cells(text) if re.fullmatch(r"[\w./*-]+", each)]
    wrong = [
        each for each in table if not any(names(each, path) for path in below) and each not in map(str, everywhere)
    ]
    for each in names_in(text) - set(table) - OF_OTHERS:
        if FILE.fullmatch(each) and not MADE_FROM_IT.search(each):
            tail = f"*/{each}*" if each.endswith("/") else f"*/{each}"
            if not any(fnmatch(f"/{path}", tail) for path in everywhere):
                wrong.append(each)
    return sorted(wrong)


def unnamed(text: str, below: list[PurePosixPath]) -> list[str]:
    written = names_in(text)
    sources = [path for path in below if path.suffix in SOURCE and path.name != "__init__.py"]
    return [str(path) for path in sources if not any(names(each, path) for each in written)]


FILES = repository()


@pytest.mark.parametrize("readme", readmes(FILES), ids=str)
def test_a_readme_and_its_folder_agree(readme: PurePosixPath) -> None:
    folder, text = readme.parent, (ROOT / readme).read_text(encoding="utf-8")
    of_others = [other.parent for other in readmes(FILES) if folder in other.parent.parents]
    below = [path.relative_to(folder) for path in FILES if folder in path.parents and path != readme]
    own = [path for path in below if not any(other in (folder / path).parents for other in of_others)]
    assert absent(text, below, FILES) == []
    assert unnamed(text, own) == []


def test_what_is_wrong_is_found() -> None:
    below = [PurePosixPath(path) for path in ("a.hpp", "a.cpp", "b.cpp", "room/c.hpp", "cuda/d.cu")]
    text = "| File | What |\n|---|---|\n| `a.hpp`, `gone` | x |\n| `room/` | `c.hpp`, `d*`, `lost.hpp`, `a word` |\n"
    assert absent(text, below, below) == ["gone", "lost.hpp"]
    assert unnamed(text, below) == ["b.cpp"]
    assert unnamed("`room/c`, `a`, `other/d.cu`", below) == ["b.cpp", "cuda/d.cu"]
