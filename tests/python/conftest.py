"""What many tests use; and tests press Ctrl-C in programs that they start, also where a shell started them."""

from __future__ import annotations

import signal

import pytest
from verb_runs import Run

from waywiser import cli

# A shell lets what it starts in the background ignore Ctrl-C, and programs hand that on to those that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        status = cli.run(list(arguments))
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call
