"""The command line: exit codes, one line per failure, verbs that are loaded only when they are named."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from waywiser import _core, cli
from waywiser.cli.program import run_command
from waywiser.errors import InputError

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from waywiser.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_package_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "waywiser", "report", "nowhere"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "") and done.stderr == run("report", "nowhere").stderr


@pytest.fixture
def failing_verb(monkeypatch: pytest.MonkeyPatch) -> dict[str, BaseException]:
    """A verb `fail` that raises what the test puts into the returned dictionary."""
    raised: dict[str, BaseException] = {}

    def fail() -> None:
        raise raised["error"]

    module = types.ModuleType("waywiser.cli.fail")
    module.fail = fail  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "waywiser.cli.fail", module)
    monkeypatch.setitem(cli.VERBS, "fail", "Fails.")
    return raised


def core_error(kind: str) -> Exception:
    error = _core.Error("the exact cause")
    error.kind = kind
    return error


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (InputError("a.json: broken"), 2, "waywiser: a.json: broken\n"),
        (InputError("two\nlines"), 2, "waywiser: two lines\n"),
        (
            FileNotFoundError(2, "No such file or directory", "x.json"),
            2,
            "waywiser: x.json: No such file or directory\n",
        ),
        (core_error("invalid input"), 2, "waywiser: the exact cause\n"),
        (core_error("io"), 2, "waywiser: the exact cause\n"),
        (core_error("device"), 1, "waywiser: the exact cause\n"),
        (core_error("interrupted"), 130, "waywiser: the exact cause\n"),
        (KeyboardInterrupt(), 130, "waywiser: interrupted\n"),
        (ValueError(), 1, "waywiser: ValueError\n"),
    ],
)
def test_failures_are_one_line_and_a_code(
    failing_verb: dict[str, BaseException],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    line: str,
) -> None:
    failing_verb["error"] = error
    assert cli.run(["fail"]) == code
    captured = capsys.readouterr()
    assert captured.err.lstrip("\n") == line
    assert captured.out == ""


def test_verbose_shows_where(failing_verb: dict[str, BaseException], capsys: pytest.CaptureFixture[str]) -> None:
    failing_verb["error"] = InputError("broken")
    assert cli.run(["fail", "--verbose"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--no-such-option"], ["no-such-verb"]])
def test_bad_arguments_are_one_line(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("waywiser: ") and done.stderr.count("\n") == 1


def test_version_and_help() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "waywiser")
    shown = run("--help")
    assert shown.returncode == 0
    assert all(verb in shown.stdout for verb in ("Usage: waywiser", *cli.VERBS))


@pytest.mark.parametrize("arguments", [[], ["--verbose"]])
def test_without_a_verb_it_prints_the_doors_of_the_readme(arguments: list[str]) -> None:
    shown = run(*arguments)
    lines = shown.stdout.splitlines()
    assert (shown.returncode, shown.stderr) == (0, "")
    assert len(lines) <= 14 and max(map(len, lines)) <= 80
    told = re.findall(r" (waywiser .*)", re.sub(r"\\\n +", "", shown.stdout))
    doors = re.findall(r"^\| .* \| `(waywiser [^`]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(doors) == 4
    assert told == ["waywiser demo", "waywiser tune --quick", *doors, "waywiser --help"]


def test_help_and_doors_load_no_verb_no_heavy_package_and_nothing_of_what_programs_use() -> None:
    script = (
        "import sys; from waywiser import cli; cli.run(['--help']);"
        "helped = set(sys.modules); cli.run([]);"
        "unneeded = {'numpy', 'matplotlib', 'plotly', 'waywiser._core', *(f'waywiser.cli.{v}' for v in cli.VERBS)};"
        "unneeded |= {f'waywiser.{room}' for room in ('group', 'halo', 'heap', 'offload')};"
        "heavy = {name for name in helped if name.split('.')[0] in ('typer', 'click', 'rich', 'asyncio')};"
        "found = unneeded & set(sys.modules) | heavy;"
        "sys.exit(str(found) if found else 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_verb_starts_without_what_would_double_its_time() -> None:
    """Typer from 0.29 on imports pydantic for every verb, and builds models of its options."""
    script = "import sys; from waywiser import cli; sys.exit(cli.run(['topology']) or 'pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], stdout=subprocess.DEVNULL, timeout=60).returncode == 0


def test_help_is_what_typer_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.run(["--help"]) == 0
    prepared = capsys.readouterr().out
    assert run_command(["--help"]) == 0
    assert prepared == capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    assert cli.run(["--help"]) == 0
    folded = capsys.readouterr().out
    assert max(map(len, folded.splitlines())) <= 60
    assert folded.split() == prepared.split()
