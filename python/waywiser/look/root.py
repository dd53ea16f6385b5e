"""The only access of checks to a machine: files below one folder, and commands with a deadline.

All access is read-only. Reads are bounded in size; a link that leads out of the folder is refused.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from waywiser.look.commands import Commands, Live
from waywiser.look.finding import Unknown

_LARGEST = 1 << 20
_LARGEST_SEARCHED = 64 << 20
_MOST_ENTRIES = 4096
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.EINVAL, errno.ELOOP, errno.ESRCH)


class Root:
    """`folder` stands for "/"; `user` is the uid whose rights are checked; `results` holds a profile, or is None."""

    def __init__(
        self,
        folder: Path | str = "/",
        environment: Mapping[str, str] | None = None,
        commands: Commands | None = None,
        user: int | None = None,
        results: Path | None = None,
    ) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.environment: Mapping[str, str] = os.environ if environment is None else environment
        self.commands: Commands = commands or Live()
        self.user = os.geteuid() if user is None else user
        self.results = results

    def of(self, environment: Mapping[str, str]) -> Root:
        """The same machine as a process with these variables sees it."""
        return Root(self.folder, environment, self.commands, self.user, self.results)

    @property
    def live(self) -> bool:
        """Whether this is the machine that the program runs on."""
        return self.folder == Path("/")

    def _place(self, path: str) -> Path:
        place = self.folder / path.lstrip("/")
        if not self.live:
            real = os.path.realpath(place)
            if not Path(real).is_relative_to(self.folder):
                raise Unknown(f"/{path.lstrip('/')} leads out of the given folder")
        return place

    def data(self, path: str, most: int = _LARGEST) -> bytes | None:
        """At most `most` bytes of a regular file; None if it does not exist. Raises Unknown if it may not be read."""
        place = self._place(path)
        try:
            handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self._check_missing(path, error)
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            parts = []
            while most > 0 and (part := os.read(handle, min(most, 1 << 16))):
                parts.append(part)
                most -= len(part)
            return b"".join(parts)
        except OSError as error:
            self._check_missing(path, error)
            return None
        finally:
            os.close(handle)

    def _check_missing(self, path: str, error: OSError) -> None:
        if error.errno not in _NOT_THERE:
            raise Unknown(f"needs the right to read {path}: {error.strerror}") from error

    def text(self, path: str) -> str | None:
        """The content, stripped of white space; None if the file does not exist. Raises Unknown as `data` does."""
        data = self.data(path)
        return None if data is None else data.decode("utf-8", "replace").replace("\0", " ").strip()

    def needed(self, path: str) -> str:
        """`text` of a file that the check needs. Raises Unknown if it does not exist."""
        found = self.text(path)
        if found is None:
            raise Unknown(f"needs {path}, which is not there")
        return found

    def number(self, path: str) -> int | None:
        """A whole number, decimal or 0x...; None if the file does not exist or holds no number."""
        try:
            return int((self.text(path) or "")[:32], 0)
        except ValueError:
            return None

    def contains(self, path: str, word: bytes) -> bool:
        """Whether a file, which may be large, contains `word`. Raises Unknown."""
        data = self.data(path, _LARGEST_SEARCHED)
        if data is None:
            raise Unknown(f"needs {path}, which is not there")
        return word in data

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        return self._place(path).exists()

    def names(self, path: str, most: int = _MOST_ENTRIES) -> list[str]:
        """Up to so many names in a folder, sorted; none if it does not exist. Raises Unknown if it may not be read."""
        try:
            return sorted(os.listdir(self._place(path)))[:most]
        except OSError as error:
            self._check_missing(path, error)
            return []

    def link(self, path: str) -> str | None:
        """The target of a link, unresolved; None if there is no link. Raises Unknown if it may not be read."""
        place = self.folder / path.lstrip("/")
        try:
            return os.readlink(place)
        except OSError as error:
            self._check_missing(path, error)
            return None

    def real(self, path: str) -> str:
        """The path with all links followed, as this root names it."""
        real = os.path.realpath(self._place(path))
        return real if self.live else "/" + os.path.relpath(real, self.folder)

    def may_open(self, path: str) -> bool:
        """Whether the user may read and write this device, by its owner and mode."""
        try:
            found = self._place(path).stat()
        except OSError:
            return False
        if self.user == 0:
            return True
        bits = 0o600 if found.st_uid == self.user else 0o006
        if found.st_gid in (os.getgroups() if self.live else ()):
            bits = 0o060 if found.st_uid != self.user else bits
        return found.st_mode & bits == bits

    def space(self, path: str) -> tuple[int, int] | None:
        """Total and free bytes of the file system at `path`; None if it does not exist."""
        recorded = self.commands.space(path)
        if recorded is not None:
            return recorded
        if not self.live:
            raise Unknown(f"needs the size of {path}, which the folder does not record")
        try:
            found = os.statvfs(path)
        except OSError as error:
            self._check_missing(path, error)
            return None
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def run(self, *command: str) -> str:
        """Standard output of a command. Raises Unknown if it is not installed, fails or takes too long."""
        return self.commands.run(command)
