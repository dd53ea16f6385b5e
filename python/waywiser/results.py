"""The folder of results: topology.json, profile.json, plan.json, verification.json, peers.json, report.html, plots/.

Files may be gzipped (profile.json.gz). Recorded machines are such folders inside the package.
"""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import waywiser.verification
from waywiser.errors import InputError
from waywiser.file_lock import held_file
from waywiser.files import parse_json, read_bytes, write_text_atomically
from waywiser.plan import Plan, read_plan, with_found
from waywiser.profile import Profile
from waywiser.profile_reader import read_profile
from waywiser.verification import Verification, read_verification

DEFAULT = Path("waywiser-results")
MACHINES = Path(__file__).with_name("machines")
PEERS = ("waywiser.peers", 1)
TOPOLOGY = ("waywiser.topology", 1)
_LARGEST = 256 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def recorded_machines() -> list[str]:
    """Names of the recorded machines that have a profile."""
    return sorted(folder.name for folder in MACHINES.glob("*") if Results(folder).file("profile") is not None)


def recorded(name: str) -> Results:
    """The results of a recorded machine. Raises InputError that lists the names."""
    names = recorded_machines()
    if name in names and _NAME.fullmatch(name):
        return Results(MACHINES / name, f"machine {name}")
    known = "none" if not names else ", ".join(names)
    raise InputError(f"machine {name!r}: has no recorded measurements; machines with measurements: {known}")


def measured_at(name: str) -> tuple[Results, Profile]:
    """A recorded machine, else a folder of results, else a profile with its folder. Raises InputError."""
    path = Path(name)
    if name in recorded_machines():
        found = recorded(name)
    elif path.is_dir():
        found = Results(path)
    elif path.exists():
        return Results(path.parent), load_profile(path)
    else:
        known = ", ".join(recorded_machines()) or "none"
        raise InputError(f"{name}: there is no such profile or folder of results; recorded machines: {known}")
    return found, found.needed_profile()


def _inflate(data: bytes, what: str) -> bytes:
    try:
        inflater = zlib.decompressobj(wbits=31)
        text = inflater.decompress(data, _LARGEST)
    except zlib.error as error:
        raise InputError(f"{what}: not valid gzip: {error}") from error
    if not inflater.eof:
        raise InputError(f"{what}: {'larger than 256 MiB' if inflater.unconsumed_tail else 'ends in the middle'}")
    return text


def read_document(file: Path) -> bytes:
    """The content of a file, inflated if its name ends in .gz; at most 256 MiB. Raises InputError."""
    data = read_bytes(file)
    return _inflate(data, str(file)) if file.suffix == ".gz" else data


def load_profile(file: Path) -> Profile:
    """The profile in `file` (JSON, or gzipped JSON). Raises InputError."""
    return read_profile(read_document(file), str(file))


class Results:
    """A folder of results. Values are read and checked on first use; None if there is no such file."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self.folder = folder
        self.name = name or str(folder)

    @property
    def is_recorded(self) -> bool:
        """Whether this is a recorded machine of the package."""
        return self.folder.parent == MACHINES

    def file(self, stem: str) -> Path | None:
        """`stem`.json or `stem`.json.gz, whichever exists."""
        files = [self.folder / f"{stem}.json", self.folder / f"{stem}.json.gz"]
        if stem == "topology" and self.is_recorded:
            files.append(MACHINES / f"{self.folder.name}.json")
        return next((file for file in files if file.exists()), None)

    def text(self, stem: str) -> str | None:
        """The JSON text of one file, or None."""
        file = self.file(stem)
        return None if file is None else read_document(file).decode("utf-8", "replace")

    def _value(
        self, stem: str, schema: str, version: int, oldest: int | None = None
    ) -> tuple[dict[str, Any], str] | None:
        file = self.file(stem)
        if file is None:
            return None
        return parse_json(read_document(file), str(file), schema, version, oldest), str(file)

    @cached_property
    def topology(self) -> dict[str, Any] | None:
        """The machine, as the object of topology.json, checked by the core."""
        found = self._value("topology", *TOPOLOGY)
        if found is None:
            return None
        import waywiser._core as _core

        value: dict[str, Any] = json.loads(_core.Topology.from_json(json.dumps(found[0]), found[1]).to_json())
        return value

    @cached_property
    def peers(self) -> dict[str, Any] | None:
        """The classic peer report, as the object of peers.json."""
        found = self._value("peers", *PEERS)
        return None if found is None else found[0]

    @cached_property
    def profile(self) -> Profile | None:
        """The measurements."""
        file = self.file("profile")
        return None if file is None else load_profile(file)

    @cached_property
    def plan(self) -> Plan | None:
        """The choices."""
        file = self.file("plan")
        return None if file is None else read_plan(read_document(file), str(file))

    @cached_property
    def verification(self) -> Verification | None:
        """The verification of the choices."""
        found = self._value("verification", waywiser.verification.SCHEMA, waywiser.verification.VERSION)
        return None if found is None else read_verification(*found)

    def needed_profile(self) -> Profile:
        """The profile. If there is none, raises InputError that says how to get one."""
        if self.profile is None:
            raise InputError(
                f"{self.name}: no profile.json there: run 'waywiser measure' first, or name a recorded machine"
            )
        return self.profile

    def needed_profile_text(self) -> str:
        """The checked profile as JSON text, for the core."""
        self.needed_profile()
        return self.text("profile") or ""

    def write(self, stem: str, text: str) -> Path:
        """Replaces `stem`.json by `text`, whole or not at all, and drops the values read from it."""
        file = self.folder / f"{stem}.json"
        write_text_atomically(file, text)
        (self.folder / f"{stem}.json.gz").unlink(missing_ok=True)
        self.__dict__.pop(stem, None)
        return file

    def write_plan(self, text: str) -> Path:
        """Replaces plan.json, but for the rows that programs have added to it."""
        return self.write("plan", with_found(text, self.text("plan")))

    @contextmanager
    def held(self) -> Iterator[None]:
        """While inside, no other process measures into this folder. Raises InputError that names the one that does."""
        self.make_writable()
        with held_file(self.folder / ".measuring") as holder:
            if holder:
                raise InputError(
                    f"{self.folder}: {holder} is measuring into it: wait for it, or name another --results"
                )
            yield

    def make_writable(self) -> None:
        """Makes the folder and writes a test file, so that no measurement is lost later. Raises InputError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.write(b"0" * 4096)
                file.flush()
        except OSError as error:
            raise InputError(f"{self.folder}: cannot write results there: {error.strerror or error}") from error
