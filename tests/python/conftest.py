"""Fixtures of many tests. Programs that tests start obey signals, and write whole lines, whatever started the tests."""

from __future__ import annotations

import os
import signal

import pytest
from verb_runs import Run

from waywiser import cli

# A shell makes background programs ignore Ctrl-C, nohup the end of the session, and their children inherit this.
for number, usual in {
    signal.SIGINT: signal.default_int_handler, signal.SIGQUIT: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL
}.items():  # fmt: skip
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
# With it, print() writes each word apart, and the lines of ranks that share a pipe are torn.
os.environ.pop("PYTHONUNBUFFERED", None)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call
