"""The errors of the package, and their exit codes on the command line."""

from __future__ import annotations

BAD_INPUT = 2
FAILURE = 1
INTERRUPTED = 130


class Error(RuntimeError):
    """A failure of Waywiser; the message is one line that names the exact cause.

    Calls raise one of the classes below; each has its own `kind`.
    """

    __module__ = "waywiser"
    kind = ""


class InputError(Error, ValueError):
    """A file, option, argument, variable or message from outside is wrong, or the ranks' calls do not match."""

    __module__ = "waywiser"
    kind = "invalid input"


class InputTypeError(InputError, TypeError):
    """An argument has a type that the call does not accept."""

    __module__ = "waywiser"


class UnavailableError(Error):
    """This machine, or this build, does not support the request."""

    __module__ = "waywiser"
    kind = "unavailable"


class DeadlineError(Error, TimeoutError):
    """A call has exceeded its timeout."""

    __module__ = "waywiser"
    kind = "timeout"


class DeviceError(Error):
    """A GPU, its driver or another library failed."""

    __module__ = "waywiser"
    kind = "device"


class TransferError(Error, OSError):
    """A rank is gone or has failed, or a file or a socket could not be read or written."""

    __module__ = "waywiser"
    kind = "io"


class CorruptionError(Error):
    """The data that arrived differ from the data that were sent."""

    __module__ = "waywiser"
    kind = "corrupt"


class InterruptionError(Error):
    """The job was asked to stop. Ctrl-C of this process is a KeyboardInterrupt."""

    __module__ = "waywiser"
    kind = "interrupted"


# The Python error for each kind of C++ error.
BY_KIND: dict[str, type[Error]] = {
    kind.kind: kind
    for kind in (
        InputError, UnavailableError, DeadlineError, DeviceError, TransferError, CorruptionError, InterruptionError
    )
}  # fmt: skip

_EXIT_CODES = {"invalid input": BAD_INPUT, "io": BAD_INPUT, "interrupted": INTERRUPTED}


def exit_code(error: BaseException) -> int:
    """The exit code for `error`: its own, 2 for bad input and files, 130 for an interruption, else 1."""
    told = getattr(error, "exit_code", None)
    if isinstance(told, int):
        return told
    if isinstance(error, Error):
        return _EXIT_CODES.get(error.kind, FAILURE)
    if isinstance(error, OSError):
        return BAD_INPUT
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILURE
