"""What the installed libraries know: names of settings and defaults; and whether they take a value (a dry run)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from waywiser.doctor import libraries, ucx
from waywiser.doctor.commands import Live
from waywiser.doctor.finding import Unknown
from waywiser.doctor.root import Root

_SECONDS = 20.0
_LARGEST = 512 << 20


@dataclass(frozen=True)
class Installed:
    """A library: its version, and variable -> default for everything that it knows. `why_not` when there is none."""

    version: str = ""
    known: Mapping[str, str] | None = None
    why_not: str = ""


def installed_ucx(root: Root) -> Installed:
    """From ucx_info."""
    try:
        return Installed(".".join(map(str, ucx.version(root))), ucx.settings(root))
    except Unknown as error:
        return Installed(why_not=str(error))


def installed_openmpi(root: Root) -> Installed:
    """From ompi_info; parameters have the names of their variables."""
    try:
        told = root.run("ompi_info", "--parsable", "--all")
        version = re.search(r"v?(\d{1,3}\.\d{1,3}\.\d{1,3})", root.run("ompi_info", "--parsable", "--version"))
    except Unknown as error:
        return Installed(why_not=str(error))
    values = re.findall(r"^mca:\w*:\w*:param:(\w{1,120}):value:(.{0,400})$", told, re.MULTILINE)
    known = {f"OMPI_MCA_{name}": value for name, value in values}
    components = re.findall(r"^mca:(\w{1,40}):(\w{1,40}):version:", told, re.MULTILINE)
    known |= {f"component {framework} {component}": "" for framework, component in components}
    return Installed(version[1] if version else "unknown", known)


def installed_mpich(root: Root) -> Installed:
    """From mpivars, MPICH's own tool."""
    try:
        told = root.run("mpivars")
        version = re.search(r"Version:\s+(\S{1,20})", root.run("mpichversion"))
    except Unknown as error:
        return Installed(why_not=str(error))
    return Installed(version[1] if version else "unknown", dict.fromkeys(re.findall(r"MPIR_CVAR_\w{1,100}", told), ""))


def installed_nccl(root: Root) -> Installed:
    """The names of variables in the first libnccl: what it does not contain it cannot read."""
    copies = libraries.installed(root, "libnccl")
    if not copies:
        return Installed(why_not="needs libnccl.so.2, which is not installed")
    data = root.data(copies[0], _LARGEST) or b""
    names = {name.decode() for name in re.findall(rb"\bNCCL_[A-Z0-9_]{2,60}\b", data)}
    names |= {f"NCCL_{name.decode()}" for name in re.findall(rb"\0([A-Z][A-Z0-9_]{3,50})\0", data)}
    version = re.search(rb"NCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})", data)
    return Installed(version[1].decode() if version else Path(copies[0]).name, dict.fromkeys(names, ""))


def installed(target: str, root: Root) -> Installed:
    """The library that `target` names."""
    readers = {"ucx": installed_ucx, "openmpi": installed_openmpi, "mpich": installed_mpich, "nccl": installed_nccl}
    return readers[target](root)


def refused(target: str, settings: Mapping[str, str]) -> str:
    """A dry run: why the installed library does not take these variables together; empty when it does."""
    if target == "ucx":
        return _refused_by_ucx(settings)
    if target == "openmpi":
        return _refused_by_openmpi(settings)
    return ""


def _dry_run(command: tuple[str, ...], settings: Mapping[str, str]) -> str:
    """Both outputs of a tool with the variables set."""
    argv, extra = Live.resolved(command)
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("UCX_", "OMPI_", "PMIX_"))}
    try:
        done = subprocess.run(
            argv,
            env={**clean, **extra, **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"ERROR: {error}"
    return done.stdout if done.returncode == 0 else f"ERROR {done.returncode}: {done.stdout[-300:]}"


def _refused_by_ucx(settings: Mapping[str, str]) -> str:
    said = _dry_run(("ucx_info", "-c"), settings)
    wrong = re.search(r"^(?:.*UCX +(?:ERROR|WARN) +|ERROR)(.*)$", said, re.MULTILINE)
    if wrong:
        return " ".join(wrong[1].split())[:200]
    shown = dict(re.findall(r"^(UCX_\w+)=(.*)$", said, re.MULTILINE))
    missing = [name for name in settings if name not in shown]
    return f"ucx_info -c does not show {missing[0]}" if missing else ""


def _refused_by_openmpi(settings: Mapping[str, str]) -> str:
    said = _dry_run(("ompi_info", "--parsable", "--all"), settings)
    if said.startswith("ERROR"):
        return " ".join(said.split())[:200]
    shown = dict(re.findall(r"^mca:\w*:\w*:param:(\w+):value:(.*)$", said, re.MULTILINE))
    for name, value in settings.items():
        told = shown.get(name.removeprefix("OMPI_MCA_"))
        if told != value:
            return f"ompi_info shows {told!r} for {name}={value}"
    return ""
