"""Signals that ask a program to end."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

# From a batch system or a user; from a session that closes.
ENDING = (signal.SIGTERM, signal.SIGHUP)
_AGAIN = 0.02  # seconds until a signal that was lost in a destructor comes again: it has ended by then, or waits more


def handle(
    numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], object]
) -> dict[signal.Signals, Any]:
    """Sets the handler of these signals; what nohup, or a shell for its background, ignores stays ignored. Returns the
    handlers before, for restore(). Does nothing in other threads than the first, which gets no signal."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in heard}


def restore(before: dict[signal.Signals, Any]) -> None:
    """Sets the handlers that handle() has replaced."""
    for number, handler in before.items():
        signal.signal(number, handler)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While inside, SIGTERM and SIGHUP act like Ctrl-C: they end the program and the processes it started."""
    previous = handle(ENDING, end_at_once)
    try:
        yield
    finally:
        restore(previous)


def end_at_once(number: int, _frame: FrameType | None) -> NoReturn:
    """Ends the program by an exception, so that it ends what it has started.

    Python loses an exception that comes while it calls a destructor: then the signal comes once more, a little later.
    """
    error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
    before = sys.unraisablehook

    def look(lost: sys.UnraisableHookArgs) -> None:
        if lost.exc_value is error:
            sys.unraisablehook = before
            threading.Timer(_AGAIN, os.kill, [os.getpid(), number]).start()
        else:
            before(lost)

    sys.unraisablehook = look
    raise error
