"""The pages of the four doors, docs/start-*.md: what comes out of their first commands is what they show."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from quoted import ROOT
from rank_jobs import finish, runtime_folder, start
from remote_gpu import Server, server, start_client
from verb_runs import Run

__all__ = ["runtime_folder", "server"]
PAGES = {file.stem: file.read_text(encoding="utf-8") for file in sorted((ROOT / "docs").glob("start-*.md"))}


def block(page: str, language: str) -> str:
    """The first block of a page in a language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGES[page], re.DOTALL | re.MULTILINE)
    return next(text for kind, text in blocks if kind == language)


def test_there_are_four_and_readme_leads_to_them() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert list(PAGES) == ["start-cluster", "start-planning", "start-programs", "start-remote"]
    assert all(f"(docs/{name}.md) |" in readme or f"(docs/{name}.md):" in readme for name in PAGES)
    assert all(len(text.splitlines()) <= 60 and "\n## Where to go on\n" in text for text in PAGES.values())


def test_the_cluster_page_ends_as_the_recorded_output() -> None:
    recorded = (ROOT / "docs/recorded/doctor-4xh200.txt").read_text(encoding="utf-8")
    assert recorded.endswith(block("start-cluster", "text"))


def test_the_program_prints_what_its_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # an environment that is active
    (tmp_path / "program.py").write_text(block("start-programs", "python"))
    words = block("start-programs", "").split()
    assert words == ["waywiser", "run", "-n", "4", "python", "program.py"]
    code, lines, errors = finish(start(*words[1:]))
    assert (code, lines) == (0, block("start-programs", "text").splitlines()), errors


def test_the_client_prints_what_its_page_shows(server: Server) -> None:
    program = block("start-remote", "python")
    at = 'ww.remote("127.0.0.1:7421")'
    assert at in program
    client = start_client(program.replace(at, f"ww.remote({server.address!r}, key={str(server.key)!r})"), server)
    out, errors = client.communicate(timeout=100)
    assert (client.returncode, out) == (0, block("start-remote", "text")), errors


def cells(table: str) -> list[str]:
    """The words of a table: how wide its columns are depends on the version of rich."""
    return table.replace("─", " ").split()


def test_the_simulation_prints_what_its_page_shows(run: Run) -> None:
    words = block("start-planning", "").split()
    code, said, _ = run(*words[1:])
    shown = cells(block("start-planning", "text"))
    assert code == 0 and cells(said)[: len(shown)] == shown


COMMANDS = re.findall(r"\| `waywiser ([^`]+ --machine [^`]+)` \|", PAGES["start-planning"])


@pytest.mark.parametrize("line", [line for line in COMMANDS if not line.startswith(("tune", "apply"))])
def test_its_other_commands_on_machines_that_are_not_here(
    line: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said, _ = run(*line.split())
    assert code == 0 and said
