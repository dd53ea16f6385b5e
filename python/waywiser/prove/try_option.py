"""Settings that the user wants to try: NAME=VALUE, checked like proposed settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from waywiser.apply.installed import installed, refused
from waywiser.apply.job_libraries import JobLibraries
from waywiser.apply.setting import NAME, Setting, Settings
from waywiser.errors import InputError

# UCC runs collectives for Open MPI, so its variables only make sense beside those of coll ucc.
_PREFIXES = {
    "openmpi": {"OMPI_MCA_": "openmpi", "UCC_": "openmpi", "UCX_": "ucx"},
    "nccl": {"NCCL_": "nccl"},
    "ucx": {"UCX_": "ucx"},
    "PROGRAM": {"OMPI_MCA_": "openmpi", "UCC_": "openmpi", "UCX_": "ucx", "NCCL_": "nccl"},
}


def tried(settings: Settings, library: str, options: Sequence[str], jobs: JobLibraries) -> Settings:
    """Adds the settings of the options "NAME=VALUE NAME=VALUE", a group each; they replace settings of the same name.

    Raises InputError for variables that `library` does not read, or that the installed version rejects.
    """
    added = [one for text in options for one in _group(text, library)]
    for target in {one.target for one in added}:
        _check(target, [one for one in added if one.target == target], jobs)
    names = [one.name for one in added]
    if len(set(names)) < len(names):
        raise InputError(f"--try: {next(name for name in names if names.count(name) > 1)} is given twice")
    return replace(settings, settings=(*(one for one in settings.settings if one.name not in names), *added))


def _group(text: str, library: str) -> list[Setting]:
    found = []
    for word in text.split():
        name, equals, value = word.partition("=")
        target = next((t for prefix, t in _PREFIXES[library].items() if name.startswith(prefix)), "")
        if not equals or not value or not target or not NAME.fullmatch(name):
            prefixes = " or ".join(f"{prefix}NAME=VALUE" for prefix in _PREFIXES[library])
            raise InputError(f"--try {word!r}: with {library} write {prefixes}")
        found.append(Setting(target, name, value, "", "tried by hand", " ".join(text.split()), measured=False))
    if not found:
        raise InputError("--try: write NAME=VALUE")
    return found


def _check(target: str, added: Sequence[Setting], jobs: JobLibraries) -> None:
    library = installed(target, jobs)
    if library.known is None:
        raise InputError(f"--try {added[0].name}: {library.why_not}")
    for one in added:
        if one.name not in library.known:
            raise InputError(f"--try {one.name}: {target} {library.version} does not know this variable")
    for group in {one.group for one in added}:
        if why := refused(target, {one.name: one.value for one in added if one.group == group}, jobs):
            raise InputError(f"--try {group}: refused in a dry run: {why}")
