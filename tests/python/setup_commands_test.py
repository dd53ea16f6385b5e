"""What the set-up shows of a command that failed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from provision.commands import MOST_LINES, run, why
from provision.messages import SetupError

COMPILED = """
  [79/92] Building CXX object CMakeFiles/nanobind.dir/src/error.cpp.o
  /clone/halo.cpp: In function 'f':
  /clone/halo.cpp:46:74: error: no match for 'operator='
     46 |       x = {y};
  /clone/halo.cpp:46:74: error: no match for 'operator='
  /clone/a.cu(12): error #20: identifier "b" is undefined
  ninja: build stopped: subcommand failed.
  error: subprocess-exited-with-error
"""


def test_errors_of_compilers_are_shown_once() -> None:
    assert why(COMPILED).splitlines() == [
        "/clone/halo.cpp:46:74: error: no match for 'operator='",
        '/clone/a.cu(12): error #20: identifier "b" is undefined',
    ]


def test_errors_of_linkers_are_shown() -> None:
    assert why("ld: a.o: undefined reference to `f'\nmake: stopped") == "ld: a.o: undefined reference to `f'"


def test_without_such_lines_the_last_are_shown() -> None:
    lines = [f"line {index}" for index in range(MOST_LINES + 5)]
    assert why("\n\n".join(lines)).splitlines() == lines[5:]


def test_a_failed_command_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert run([sys.executable, "-c", "print('a'); print('b')"]) == ["a", "b"]
    with pytest.raises(SetupError, match=r"^failed, see above: the build$"):
        run([sys.executable, "-c", "import sys; print('x.cpp:1:2: error: y'); sys.exit('the end')"], "the build")
    assert capfd.readouterr().err == "x.cpp:1:2: error: y\n"
