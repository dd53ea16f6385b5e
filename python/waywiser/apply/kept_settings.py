"""Keeps settings, with what is kept beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from waywiser.apply.facts import Machine
from waywiser.apply.nccl import TOPOLOGY_FILE
from waywiser.apply.setting import MEASURED, Settings
from waywiser.apply.store import keep, kept
from waywiser.errors import InputError
from waywiser.files import write_text_atomically
from waywiser.progress import say
from waywiser.topology.nccl_writer import write_nccl


def known_before(output: Path, fingerprint: str) -> Settings | None:
    """The settings that are replaced; None if there are no readable ones."""
    try:
        return kept(output, fingerprint)
    except InputError as error:
        say(f"replaced: {error}")
        return None


def with_others(settings: Settings, before: Settings | None, targets: Sequence[str]) -> Settings:
    """With what is kept about the libraries that were not asked for; no predictions beside measured settings."""
    if before is None or before.source != settings.source:
        return settings
    return settings.with_others_of(before, targets)


def keep_prediction(output: Path, settings: Settings, machine: Machine, targets: Sequence[str]) -> None:
    """Keeps the settings of another machine. Raises InputError if that machine was measured."""
    if settings.source == MEASURED:
        raise InputError(f"{settings.machine} has measurements: run 'waywiser apply' on it, where names can be checked")
    keep_settings(output, with_others(settings, known_before(output, settings.fingerprint), targets), machine)


def keep_settings(output: Path, settings: Settings, here: Machine) -> None:
    file = keep(output, settings)
    if any(one.value == TOPOLOGY_FILE for one in settings.settings):
        write_text_atomically(file.with_name(TOPOLOGY_FILE), write_nccl(here.topology))
    say(f"settings kept in {file}")
