"""README.md: short, its figures those of the repository's files, its commands run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from rank_jobs import finish, runtime_folder, start
from verb_runs import Run

__all__ = ["runtime_folder"]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = README.splitlines()
MEASURED = ROOT / "benchmarks/results/group-2xh100.json"
SIZES = {"8 B": 8, "64 KiB": 64 << 10, "1 MiB": 1 << 20, "4 MiB": 4 << 20, "16 MiB": 16 << 20}


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def row(name: str) -> list[str]:
    (found,) = [cells(line)[1:] for line in LINES if line.startswith(f"| {name} |")]
    return found


def test_it_is_short() -> None:
    assert len(LINES) <= 120
    assert [cell for line in LINES if line.startswith("|") for cell in cells(line) if len(cell) > 250] == []


def test_its_table_is_that_of_the_file() -> None:
    file = json.loads(MEASURED.read_text())
    assert file["date"] in README and file["machine"].partition(",")[0] in README
    assert f"NCCL {file['nccl'][0]}.{int(file['nccl'][1:3])}.{int(file['nccl'][3:])}" in README
    (header,) = [cells(line)[1:] for line in LINES if line.startswith("| | 8 B |")]
    for name, by in (("Waywiser", "group"), ("NCCL 2.28.9", "nccl")):
        wanted = {
            each["bytes"]: each["us"]
            for each in file["rows"]
            if (each["operation"], each["how"], each["by"]) == ("all_reduce", "graph", by)
        }
        assert [float(value) for value in row(name)] == [float(f"{wanted[SIZES[size]]:.3g}") for size in header]


@pytest.mark.parametrize("figure", ["843 of 864", "97.6 %", "132 of 139", "50.8"])
def test_its_other_figures_are_those_of_the_page(figure: str) -> None:
    assert figure in README.replace("\n", " ") and figure in (ROOT / "docs/performance.md").read_text()


def commands(program: str) -> list[list[str]]:
    """The words of each line that starts `program`, in blocks without a language and in the table of doors."""
    blocks = re.findall(r"^```\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).splitlines() + re.findall(r"\| `(waywiser [^`]+)` \|", README)
    return [words for words in (shlex.split(line, comments=True) for line in lines) if words[:1] == [program]]


RECORDED = [words[1:] for words in commands("waywiser") if "--machine" in words]


@pytest.mark.parametrize("words", RECORDED, ids=" ".join)
def test_its_commands_on_machines_that_are_not_here(
    words: list[str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said, _ = run(*words)
    assert code == 0 and said


def test_its_ranks_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # an environment that is active
    (words,) = [words[1:] for words in commands("waywiser") if words[1:4] == ["run", "-n", "2"]]
    code, lines, errors = finish(start(*words))
    assert (code, sorted(lines)) == (0, ["[2. 2. 2.]", "[2. 2. 2.]"]), errors


def test_each_first_command_is_a_verb() -> None:
    doors = [words for words in commands("waywiser") if words[1] in ("doctor", "run", "serve", "simulate")]
    assert len(doors) >= 4 and shutil.which("make")
    assert commands("make") == [["make", "tune"], ["make", "test"]]
