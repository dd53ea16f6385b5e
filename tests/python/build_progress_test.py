"""The progress that the set-up shows of a build: of a made-up stream of Ninja, and of Ninja itself."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from consumers import tool

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from provision.build_progress import BuildProgress, run_ninja

FAILED = """FAILED: [code=1] b.o
c++ -c b.cpp -o b.o
b.cpp:1:2: error: no such thing
    1 | a
      | ^
ninja: build stopped: subcommand failed."""


class Output(io.StringIO):
    """A place to write to, on a terminal or not, with a clock that the test moves."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal, self.now = terminal, 0.0

    def isatty(self) -> bool:
        return self.terminal

    def progress(self) -> BuildProgress:
        return BuildProgress(self, lambda: self.now)


def done(files: int, of: int) -> str:
    return f"@waywiser {files} {of}@ Building CXX object {files}.o"


def test_a_line_every_twenty_seconds_without_a_terminal() -> None:
    output = Output(terminal=False)
    progress = output.progress()
    progress.line("ninja: Entering directory `build'")
    for second in range(1, 101):
        output.now = float(second)
        progress.line(done(second, 100))
    assert output.getvalue().splitlines() == [
        "waywiser: building: 20 of 100 files, about 1:20 left",
        "waywiser: building: 40 of 100 files, about 1:00 left",
        "waywiser: building: 60 of 100 files, about 0:40 left",
        "waywiser: building: 80 of 100 files, about 0:20 left",
        "waywiser: building: 100 of 100 files",
    ]


def test_what_ninja_does_before_it_builds_is_no_file() -> None:
    output = Output(terminal=True)
    progress = output.progress()
    progress.line("@waywiser 0 2@ Re-checking globbed directories...")
    assert output.getvalue() == ""


def test_a_file_that_takes_long_is_no_silence() -> None:
    output = Output(terminal=False)
    progress = output.progress()
    progress.tick()  # nothing is known yet
    progress.line(done(1, 4))
    for output.now in (0.0, 10.0, 20.0, 30.0, 40.0):
        progress.tick()
    assert output.getvalue().splitlines() == ["waywiser: building: 1 of 4 files, about 0:00 left"] * 2


def test_the_time_left_waits_for_a_tenth_of_the_files_and_goes_down_by_itself() -> None:
    output = Output(terminal=False)
    progress = output.progress()
    for output.now, files in ((40.0, 1), (80.0, 10)):
        progress.line(done(files, 100))
    output.now = 120.0
    progress.tick()
    assert output.getvalue().splitlines() == [
        "waywiser: building: 1 of 100 files",
        "waywiser: building: 10 of 100 files, about 12:00 left",
        "waywiser: building: 10 of 100 files, about 11:20 left",
    ]


def test_one_line_on_a_terminal_is_written_again() -> None:
    output = Output(terminal=True)
    progress = output.progress()
    for output.now, files in ((1.0, 1), (2.0, 2)):
        progress.line(done(files, 4))
    progress.clear()
    lines = output.getvalue().split("\r")
    assert lines == [
        "",
        "waywiser: building: 1 of 4 files, about 0:03 left\x1b[K",
        "waywiser: building: 2 of 4 files, about 0:02 left\x1b[K",
        "\x1b[K",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_what_a_compiler_prints_is_whole(terminal: bool) -> None:
    output = Output(terminal)
    progress = output.progress()
    progress.line(done(1, 2))
    for line in FAILED.splitlines():
        progress.line(line)
    written = output.getvalue().rpartition("left\x1b[K")[2].replace("\r\x1b[K", "")
    assert written == f"{FAILED}\n"


def test_a_build_without_work_says_nothing() -> None:
    output = Output(terminal=False)
    progress = output.progress()
    for line in ("ninja: Entering directory `build'", "ninja: no work to do."):
        progress.line(line)
    progress.tick()
    assert output.getvalue() == ""


RULES = """
rule made
  command = touch $out
rule warned
  command = printf 'w.cpp:1:2: warning: odd\\n' && touch $out
rule failed
  command = printf 'b.cpp:1:2: error: no\\n  1 | ä' >&2 && exit 1
build a.o: made
build w.o: warned a.o
build b.o: failed w.o
build all: phony w.o
default all
"""


@pytest.mark.parametrize("terminal", [True, False])
def test_of_ninja_itself(terminal: bool, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text(RULES)
    output = Output(terminal)
    assert run_ninja([tool("ninja"), "-C", str(tmp_path)], output) == 0
    told = output.getvalue()
    assert "w.cpp:1:2: warning: odd\n" in told and "ninja:" not in told and "@waywiser" not in told
    assert ("waywiser: building: 2 of 2 files" in told) == terminal
    assert run_ninja([tool("ninja"), "-C", str(tmp_path), "b.o"], output) == 1
    failed = output.getvalue().removeprefix(told)
    assert "\nb.cpp:1:2: error: no\n  1 | ä\nninja: build stopped: subcommand failed.\n" in failed
