"""Fixtures of many tests. Programs that tests start obey Ctrl-C, and write whole lines, whatever started the tests."""

from __future__ import annotations

import os
import signal

import pytest
from verb_runs import Run

from waywiser import cli

# A shell makes background programs ignore Ctrl-C, and their children inherit this.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# With it, print() writes each word apart, and the lines of ranks that share a pipe are torn.
os.environ.pop("PYTHONUNBUFFERED", None)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call
