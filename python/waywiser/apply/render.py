"""Settings as text: exports for a shell, a module file, a Slurm prolog, and the libraries' own files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from waywiser.apply.provable import not_proved
from waywiser.apply.setting import LeftOut, Setting, Settings

FORMS = ("shell", "lmod", "slurm", "ucx.conf", "mca-params.conf", "nccl.conf")
OWN_FILES = {"ucx.conf": "ucx", "mca-params.conf": "openmpi", "nccl.conf": "nccl"}
_QUOTES = re.compile(r"[\\\"]")


def render(settings: Settings, form: str, targets: Sequence[str], withheld: Sequence[LeftOut] = ()) -> str:
    """The settings in one form; comments give the measurements and the withheld settings."""
    if form in OWN_FILES:
        targets = [target for target in targets if target == OWN_FILES[form]]
    chosen = [one for one in settings.settings if one.target in targets]
    kept_back = [f"not exported: {one.name}={one.value}: {one.why}" for one in withheld if one.target in targets]
    if form in OWN_FILES:
        return _own_file(settings, chosen, form, kept_back)
    mark = "--" if form == "lmod" else "#"
    lines = [f"{mark} {line}" for line in head(settings)]
    for one in chosen:
        lines += [f"{mark} {_reason(one)}", _line(one, form)]
    if not chosen and not kept_back:
        lines.append(f"{mark} nothing to set: the defaults are best here, as far as measured")
    lines += [f"{mark} {line}" for line in kept_back]
    prefix = ["#!/bin/bash"] if form == "slurm" else []
    return "\n".join([*prefix, *lines]) + "\n"


def settings_json(settings: Settings, targets: Sequence[str], withheld: Sequence[LeftOut] = ()) -> str:
    """The settings as a document of schema waywiser.settings; those that are withheld are among the left out."""
    chosen = tuple(one for one in settings.settings if one.target in targets)
    kept_back = tuple(one for one in (*withheld, *settings.left_out) if one.target in targets)
    return replace(settings, settings=chosen, left_out=kept_back).to_json()


def head(settings: Settings) -> list[str]:
    """The first comment lines: the machine and the source of the settings."""
    lines = [f"waywiser: {settings.machine}, fingerprint {settings.fingerprint}"]
    if settings.label:
        lines.append(settings.label)
    targets = {one.target for one in settings.settings}
    lines += settings.checked_with("with ", targets)
    unproved = sum(not one.proof for one in settings.settings)
    if settings.settings and not unproved:
        lines.append("each setting won against the default")
    elif settings.settings:
        lines.append(f"{unproved} of {len(settings.settings)} settings are not proved; --proved leaves them out")
    elif settings.proved:
        lines.append("no setting won against the default")
    return lines


def _reason(one: Setting) -> str:
    default = f"; default {one.default}" if one.default else ""
    return f"{one.why}; {one.proof or not_proved(one)}{default}"


def _line(one: Setting, form: str) -> str:
    if form == "lmod":
        return f'setenv("{one.name}", "{_QUOTES.sub(_escaped, one.value)}")'
    if form == "slurm":  # a task prolog sets variables of the task by printing
        return f"echo {shlex.quote(f'export {one.name}={one.value}')}"
    return f"export {one.name}={shlex.quote(one.value)}"


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


def _own_file(settings: Settings, chosen: Sequence[Setting], form: str, kept_back: Sequence[str]) -> str:
    lines = [f"# {line}" for line in head(settings)]
    if form == "ucx.conf" and settings.product:  # UCX uses a section if all of its filters match
        lines += [f"[waywiser {settings.fingerprint}]", f"Product name={settings.product}"]
    for one in chosen:
        if one.name.startswith("UCC_"):  # UCC reads no file of Open MPI
            lines.append(f"# {one.name}={one.value}: only in the environment")
            continue
        name = one.name.removeprefix("OMPI_MCA_") if form == "mca-params.conf" else one.name
        lines += [f"# {_reason(one)}", f"{name} = {one.value}" if form == "mca-params.conf" else f"{name}={one.value}"]
    lines += [f"# {line}" for line in kept_back]
    return "\n".join(lines) + "\n"
