"""A lock file: one process at a time holds it, on any machine; the kernel releases it when the process ends."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waywiser.json_fields import clean


@contextmanager
def held_file(path: Path) -> Iterator[str]:
    """Yields "" while this process holds the file, which is removed afterwards; else the holder: "process 17 on node1".

    If files cannot be locked, no process counts as the holder.
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
    """The locked file; None if another process holds it. The previous holder may have removed it in between."""
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
