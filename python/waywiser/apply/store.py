"""Keeps settings in the results: one file for each fingerprint, so that one folder serves a mixed cluster."""

from __future__ import annotations

import re
from pathlib import Path

from waywiser.apply.hand_out import hand_out
from waywiser.apply.render import OWN_FILES, render
from waywiser.apply.setting import MEASURED, SCHEMA, SIMULATED, VERSION, Settings, read_settings
from waywiser.errors import InputError
from waywiser.files import read_json, write_text_atomically

_FINGERPRINT = re.compile(r"[A-Za-z0-9]{4,64}")


def is_fingerprint(text: str) -> bool:
    """Whether settings can be kept for it."""
    return _FINGERPRINT.fullmatch(text) is not None


def file_of(results: Path, fingerprint: str) -> Path:
    """The file of one kind of machine. Raises InputError for an invalid fingerprint."""
    if not is_fingerprint(fingerprint):
        raise InputError(f"{fingerprint!r} is no fingerprint")
    return results / "settings" / f"{fingerprint}.json"


def keep(results: Path, settings: Settings) -> Path:
    """Writes the settings under their fingerprint, and the libraries' own files with the settings of `hand_out`.

    Raises InputError if simulated settings would replace measured ones.
    """
    file = file_of(results, settings.fingerprint)
    before = kept(results, settings.fingerprint) if settings.source == SIMULATED else None
    if before and before.source == MEASURED:
        raise InputError(f"{file}: holds measured settings; simulated ones do not replace them")
    write_text_atomically(file, settings.to_json())
    given, withheld = hand_out(settings)
    for form, target in OWN_FILES.items():
        own = file.with_suffix(f".{form}")
        if any(one.target == target for one in given.settings):
            write_text_atomically(own, render(given, form, (target,), withheld))
        else:
            own.unlink(missing_ok=True)
    return file


def kept(results: Path, fingerprint: str) -> Settings | None:
    """The settings for a fingerprint; None if there are none."""
    file = file_of(results, fingerprint)
    if not file.exists():
        return None
    settings = read_settings(read_json(file, SCHEMA, VERSION), str(file))
    if settings.fingerprint != fingerprint:
        raise InputError(f"{file}: is for {settings.fingerprint}, not for {fingerprint}")
    return settings


def all_kept(results: Path) -> list[Settings]:
    """The settings of every kind of machine in the folder."""
    names = sorted(file.stem for file in (results / "settings").glob("*.json"))
    return [found for name in names if _FINGERPRINT.fullmatch(name) and (found := kept(results, name))]
