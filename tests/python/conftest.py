"""Tests press Ctrl-C in programs that they start, also where a shell has started the tests in the background."""

import signal

# A shell lets what it starts in the background ignore Ctrl-C, and programs hand that on to those that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
