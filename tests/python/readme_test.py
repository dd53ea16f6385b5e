"""README.md: short, its figures those of the repository's files, its commands and its program run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
from pathlib import Path

import pytest
from quoted import cells, read, value
from rank_jobs import finish, runtime_folder, start
from verb_runs import Run

__all__ = ["runtime_folder"]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINES = README.splitlines()
MEASURED = "group-2xh100.json"
SIZES = {"8 B": 8, "64 KiB": 64 << 10, "1 MiB": 1 << 20, "4 MiB": 4 << 20, "16 MiB": 16 << 20}
PERFORMANCE = (ROOT / "docs/performance.md").read_text(encoding="utf-8")


def row(name: str) -> list[str]:
    (found,) = [cells(line)[1:] for line in LINES if line.startswith(f"| {name} |")]
    return found


def test_it_is_short() -> None:
    assert len(LINES) <= 120
    assert [cell for line in LINES if line.startswith("|") for cell in cells(line) if len(cell) > 250] == []


def test_its_table_is_that_of_the_file() -> None:
    file = read(MEASURED)
    assert file["date"] in README and file["machine"].partition(",")[0] in README
    assert f"NCCL {file['nccl'][0]}.{int(file['nccl'][1:3])}.{int(file['nccl'][3:])}" in README
    (header,) = [cells(line)[1:] for line in LINES if line.startswith("| | 8 B |")]
    for name, by in (("Waywiser", "group"), ("NCCL 2.28.9", "nccl")):
        kind = {"operation": "all_reduce", "how": "graph", "by": by}
        wanted = [value(MEASURED, "rows", {**kind, "bytes": SIZES[size]}, "us") for size in header]
        assert [float(figure) for figure in row(name)] == [float(f"{us:.3g}") for us in wanted]


def test_its_limit_is_that_of_a_bare_copy() -> None:
    (rate,) = [float(each) for each in re.findall(r"([\d.]+) GB/s", README)]
    assert f"{rate:g} GB/s" in PERFORMANCE
    (header,) = [cells(line)[1:] for line in LINES if line.startswith("| | 8 B |")]
    wanted = [f"{SIZES[size] / rate / 1e3:.3g}" for size in header[1:]]
    assert row("Limit") == ["-", *[each if float(each) >= 1 else f"{float(each):.2f}" for each in wanted]]


@pytest.mark.parametrize("figure", ["843 of 864", "97.6 %", "132 of 139", "95 %"])
def test_its_other_figures_are_those_of_the_page(figure: str) -> None:
    assert figure in README.replace("\n", " ") and figure in PERFORMANCE


def test_it_counts_the_ways() -> None:
    rows = re.findall(r"^\| `\w+` \| ", (ROOT / "docs/paths.md").read_text().partition("\n\n**")[0], re.MULTILINE)
    assert (len(rows), "in eleven ways" in README) == (11, True)


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


def after_the_installation() -> list[list[str]]:
    """The words of the lines below the first `pip install`, which wheel_test.py runs from the wheel."""
    first, *others = README.split("```\n")[1].splitlines()
    assert first.startswith("pip install dist/waywiser-*.whl ")
    return [shlex.split(line, comments=True) for line in others]


def of_the_line(start: str) -> list[str]:
    """The words after `waywiser` of the only line of README.md that begins so."""
    (words,) = [each[1:] for each in commands("waywiser") if " ".join(each[1:]).startswith(start)]
    return words


@pytest.fixture
def active(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an environment that is active: `python` is this one."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("active")
def test_its_ranks_add() -> None:
    code, lines, errors = finish(start(*of_the_line("run -n 2")))
    assert (code, sorted(lines)) == (0, ["3.0", "3.0"]), errors


@pytest.mark.usefixtures("active")
def test_its_program_runs() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    words = of_the_line("run -n 4")
    Path(words[-1]).write_text(program)
    code, lines, errors = finish(start(*words))
    assert (code, lines) == (0, [f"rank {rank} of 4: [4. 4. 4.]" for rank in range(4)]), errors


def test_doctor_and_serve_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, lines, errors = finish(start(*of_the_line("doctor")))
    assert code in range(4) and lines, errors
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WAYWISER_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text('[serve]\nvirtual = 1\nlisten = "127.0.0.1:0"\n')
    server = start(*of_the_line("serve"))
    assert server.stdout is not None
    assert "listening" in server.stdout.readline()
    server.send_signal(signal.SIGINT)
    finish(server)
    assert (tmp_path / ".config/waywiser/serve.key").stat().st_mode & 0o077 == 0


def test_the_commands_of_the_repository_are_two() -> None:
    assert shutil.which("make") and commands("make") == [["make", "tune"], ["make", "test"]]
