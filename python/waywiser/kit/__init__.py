"""Files for systemd, Prometheus, Grafana and Slurm, with places for the command and the folders of a site."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from waywiser.errors import InputError
from waywiser.files import write_text_atomically

_HERE = Path(__file__).parent
_PLACE = re.compile(r"@([A-Z]+)@")
# Such words are safe in a unit of systemd and in a shell without quotes.
_SAFE = re.compile(r"[A-Za-z0-9/._,+:=-]+")
# Checks that need no measurement, take a second and concern every job.
CHECKS = "D04,D12,D13,D14,D22,D23,D41"


def kit_files() -> list[Path]:
    """The files of the kit, as they are installed."""
    return sorted(file for file in _HERE.iterdir() if file.is_file() and file.suffix not in (".py", ".pyc", ".md"))


def command_here() -> str:
    """The installed command of this interpreter."""
    return str(Path(sys.argv[0]).resolve()) if Path(sys.argv[0]).name == "waywiser" else "waywiser"


def write_kit(folder: Path, places: Mapping[str, str]) -> list[Path]:
    """Writes the files with `places` filled in. Raises InputError for a value with blanks or quotes."""
    for name, value in places.items():
        if not _SAFE.fullmatch(value):
            raise InputError(f"{name.lower()} {value!r}: letters, digits and / . _ , + : = - are allowed")
    written = []
    for file in kit_files():
        text = _PLACE.sub(lambda found: places[found[1]], file.read_text(encoding="utf-8"))
        target = folder / file.name
        write_text_atomically(target, text)
        if text.startswith("#!"):
            target.chmod(0o755)
        written.append(target)
    return written
