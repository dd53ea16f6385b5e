"""The key that a server of GPUs and its clients share: a file that only its owner reads."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from waywiser.errors import InputError
from waywiser.files import read_text

_BYTES = 32
_WHITE_SPACE = " \t\r\n\v\f"


def usual_key_file() -> Path:
    """`waywiser/serve.key` in the user's folder for configuration. Raises nothing."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "waywiser" / "serve.key"


def make_key(path: Path) -> None:
    """Writes a new random key, in a file that only this user may read. Raises InputError if `path` exists already."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from error
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(_BYTES) + "\n")


def read_key(path: Path) -> bytes:
    """The key in a file, as clients read it: white space before and after the digits does not count.

    Raises InputError if it cannot be read, has no key, or if other users may read it.
    """
    text = read_text(path, 4096).strip(_WHITE_SPACE)
    status = path.stat()
    if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
        raise InputError(f"{path}: other users may read this key: chmod 600 {path}, and make a new key")
    if not re.fullmatch(f"(?:[0-9a-fA-F]{{2}}){{{_BYTES},}}", text):
        raise InputError(
            f"{path}: a key has at least {2 * _BYTES} hexadecimal digits: `waywiser serve --new-key` makes one"
        )
    return bytes.fromhex(text)


class KeyFile:
    """The key in a file that may be replaced: read again only when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[tuple[int, ...], bytes] | None = None

    def read(self) -> bytes:
        """Raises as read_key."""
        facts = self._facts()
        if self._known is None or self._known[0] != facts:
            self._known = facts, read_key(self._path)
        return self._known[1]

    def _facts(self) -> tuple[int, ...]:
        try:
            facts = self._path.stat()
        except OSError as error:
            raise InputError(f"{self._path}: cannot read: {error.strerror or error}") from error
        return facts.st_dev, facts.st_ino, facts.st_mode, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns
