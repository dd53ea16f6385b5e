"""Checks files from outside on reading; writes our own files whole or not at all."""

from __future__ import annotations

import io
import json
import os
import select
import stat
import tempfile
import time
from pathlib import Path
from typing import Any

from waywiser.errors import InputError

_LARGEST = 256 << 20
_PART = 1 << 20
_PATIENCE = 10  # seconds to wait for the next bytes of a pipe
_LONGEST = 120  # seconds for all bytes of a pipe


def write_bytes_atomically(path: Path | str, data: bytes) -> None:
    """Writes `data` beside `path`, syncs it and renames it over `path`; makes missing folders.

    If the disk is full or the place cannot be written, raises InputError and leaves the old file unchanged.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), 0o666 & ~_umask())
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{target}: cannot write: {error.strerror or error}") from error


def write_text_atomically(path: Path | str, text: str) -> None:
    """`write_bytes_atomically` of the text in UTF-8."""
    write_bytes_atomically(path, text.encode("utf-8"))


def read_bytes(path: Path | str, most: int = _LARGEST) -> bytes:
    """The content of a file of at most `most` bytes. Raises InputError with the reason if it cannot be read.

    Pipes (`<(...)`, /dev/stdin) are read too, but it is an error if nothing comes for 10 s, or if their end does not
    come in 120 s.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(handle, "rb", buffering=0) as file:
            data = bytearray()
            until = time.monotonic() + _LONGEST
            while len(data) <= most and (part := _part_of(file, str(path), until)):
                data += part
    except InputError:
        raise
    except (OSError, ValueError) as error:  # a name with a NUL byte is a ValueError
        raise InputError(f"{path}: cannot read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > most:
        raise InputError(f"{path}: larger than {most >> 20} MiB")
    return bytes(data)


def _part_of(file: io.FileIO, what: str, until: float) -> bytes:
    """The next bytes; none at the end."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        if time.monotonic() > until:
            raise InputError(f"{what}: cannot read: its end did not come in {_LONGEST} s")
        poll = select.poll()
        poll.register(file, select.POLLIN)
        if not poll.poll(_PATIENCE * 1000):
            raise InputError(f"{what}: cannot read: nothing came for {_PATIENCE} s")
    return file.read(_PART) or b""


def read_text(path: Path | str, most: int = _LARGEST) -> str:
    """`read_bytes` as text in UTF-8."""
    try:
        return read_bytes(path, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not text in UTF-8 (byte {error.start})") from None


def read_json(path: Path | str, schema: str, version: int, oldest: int | None = None) -> dict[str, Any]:
    """The JSON object in `path`; its "schema" and "version" must be the given ones. Raises InputError.

    `oldest`: the oldest version that is also accepted.
    """
    return parse_json(read_bytes(path), str(path), schema, version, oldest)


def parse_json(data: bytes, what: str, schema: str, version: int, oldest: int | None = None) -> dict[str, Any]:
    """`read_json` of bytes in memory; `what` names them in errors."""
    check_json_bounds(data, what)
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise InputError(f"{what}: not valid JSON: {' '.join(str(error).split())}") from error
    if not isinstance(value, dict):
        raise InputError(f"{what}: must be a JSON object")
    if value.get("schema") != schema:
        raise InputError(f'{what}: "schema" is {_shown(value.get("schema"))}, not "{schema}"')
    found, first = value.get("version"), version if oldest is None else oldest
    if not isinstance(found, int) or isinstance(found, bool) or not first <= found <= version:
        readable = f"{first} to {version}" if first < version else f"{version}"
        raise InputError(f'{what}: "version" is {_shown(found)}; this program reads {readable}')
    return value


def check_json_bounds(data: bytes, what: str) -> None:
    """Raises InputError for JSON that would take too long or too much memory to parse."""
    from waywiser import _core

    try:
        _core.check_json_bounds(data, what)
    except _core.Error as error:
        raise InputError(str(error)) from None


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _umask() -> int:
    """The process's umask, read without changing it."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
