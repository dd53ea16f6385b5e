"""A file that one process at a time holds, wherever it runs; the kernel lets go of it when the process ends."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waywiser.checked import clean


@contextmanager
def held_file(path: Path) -> Iterator[str]:
    """Yields "" while this process holds the file, which is gone afterwards; else who does: "process 17 on node1".

    Where files cannot be locked nobody holds any.
    """
    handle = _open(path)
    try:
        if handle is None:
            yield _holder(path)
            return
        with suppress(OSError):  # a full disk
            os.ftruncate(handle, 0)
            os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        yield ""
    finally:
        if handle is not None:
            path.unlink(missing_ok=True)
            os.close(handle)


def _open(path: Path) -> int | None:
    """The locked file; None: somebody else has it. Who had it before may have removed it in between."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                return handle
            os.close(handle)
            raise
        os.close(handle)


def _holder(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return clean(file.read(200).decode("utf-8", "replace").strip()) or "another process"
    except OSError:
        return "another process"
