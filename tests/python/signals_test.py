"""Signals that ask a verb to end count, whatever Python is doing when they come."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# The first one comes in a destructor, where Python loses the exception of the handler.
PROGRAM = """
import os, sys, threading
from waywiser.signals import ended_by_signals
class Dies:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        for turn in range(1000):  # the handler runs here
            pass
try:
    with ended_by_signals():
        Dies()
        print("goes on", flush=True)
        threading.Event().wait()
finally:
    print("ends what it has started", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_in_a_destructor_ends_the_program(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(number))], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (128 + number, "")
    assert done.stdout.splitlines() == ["goes on", "ends what it has started"]
