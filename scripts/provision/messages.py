"""Messages of the set-up: one line each, on standard error, since standard output is for results."""

import sys


class SetupError(Exception):
    """The set-up cannot continue; the message is one line. `code` is the exit code."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


def say(text):
    print(f"waywiser: {text}", file=sys.stderr, flush=True)
