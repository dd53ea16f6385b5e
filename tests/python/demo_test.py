"""`waywiser demo`: a recorded machine, one of its choices and its page, labelled as recorded; no hardware is used."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pytest
from verb_runs import Run

from waywiser import plot_packages
from waywiser.report.browser import open_page
from waywiser.report.found import finding
from waywiser.results import recorded

MACHINE = "recorded-4xh200"
DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which it ran, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    program = [sys.executable, "-c", "from waywiser.cli import main; main()", "demo"]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_it_is_labelled_as_recorded(shown: tuple[Path, str]) -> None:
    folder, out = shown
    date = recorded(MACHINE).needed_profile().created.partition("T")[0]
    assert out.splitlines()[0] == f"RECORDED on {date}, not measured here: 4 x H200, NVSwitch, driver 580"
    assert f"latency, recorded on {date}\n" in out
    page = (folder / f"{MACHINE}-report/report.html").read_text()
    assert f"Recorded machine {MACHINE}, not measured here" in page and f"{date} " in page


def test_it_writes_the_page_and_nothing_else(shown: tuple[Path, str]) -> None:
    folder, out = shown
    assert f"\nreport: {MACHINE}-report/report.html\n" in out
    assert [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()] == [
        Path(f"{MACHINE}-report/report.html")
    ]


def test_it_shows_the_machine_and_a_choice_with_its_reasons(shown: tuple[Path, str]) -> None:
    _, out = shown
    one = finding(recorded(MACHINE))
    assert one is not None and one.text in " ".join(out.split())
    assert "gpu3  NVIDIA H200" in out and re.search(r"^gpu0 +X +NV18", out, re.MULTILINE) and "NV#: that many" in out
    assert re.search(r"^\* +courier .* fastest: copy_engine", out, re.MULTILINE)
    assert re.search(r"^courier: A resident kernel", out, re.MULTILINE)


def test_its_commands_work(shown: tuple[Path, str], run: Run) -> None:
    _, out = shown
    commands = [shlex.split(line)[1:] for line in re.findall(r"^.*: (waywiser .*)$", out, re.MULTILINE)]
    assert [words[0] for words in commands] == ["topology", "explain", "tune"]
    for words in commands[:2]:
        code, said, _ = run(*words)
        assert code == 0 and said


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Where pages would have been written, which takes seconds."""
    folders: list[Path] = []

    def write_report(results: Any, folder: Path, **options: Any) -> Path:
        folders.append(folder)
        return folder / "report.html"

    monkeypatch.setattr("waywiser.report.write.write_report", write_report)
    return folders


def test_its_answer_as_json_is_that_of_explain(run: Run, tmp_path: Path, no_page: list[Path]) -> None:
    code, out, _ = run("demo", "--json", "-o", str(tmp_path / "new"))
    told = json.loads(out)
    assert code == 0 and no_page == [tmp_path / "new"] and told["report"] == f"{tmp_path}/new/report.html"
    choice = told["choice"]
    words = ["explain", *choice["pair"].split(">"), str(choice["bytes"]), "--machine", told["machine"], "--json"]
    assert json.loads(run(*words)[1]) == choice


def test_without_the_packages_that_draw_it_says_so(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plot_packages, "find_spec", lambda name: None)
    code, out, err = run("demo", "--open")
    assert (code, err) == (
        0,
        "no report: not installed: matplotlib and plotly (pip install 'waywiser[plots]')\n",
    )
    assert "report:" not in out and out.endswith("waywiser tune --quick\n") and list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_one_line(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waywiser.report.write.render", lambda *_: "")
    (tmp_path / "file").touch()
    code, out, err = run("demo", "--json", "--output", str(tmp_path / "file"))
    assert (code, out) == (2, "") and err.splitlines()[-1].startswith(f"waywiser: {tmp_path}/file: cannot write")


@pytest.mark.usefixtures("no_page")
def test_without_a_display_it_says_that_no_browser_was_opened(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    code, _, err = run("demo", "--open")
    assert code == 0 and "not opened: no display (DISPLAY, WAYLAND_DISPLAY) and no BROWSER is set\n" in err


@pytest.mark.parametrize("name", DISPLAYS)
def test_the_browser_gets_the_address_of_the_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in DISPLAYS:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, "x")
    monkeypatch.chdir(tmp_path)
    opened: list[str] = []

    def start(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", start)
    assert open_page(Path("a report.html")) == "" and opened == [f"file://{tmp_path}/a%20report.html"]
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert open_page(Path("a report.html")) == "no browser could be started"
