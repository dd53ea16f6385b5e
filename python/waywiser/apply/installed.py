"""Asks the installed libraries for their settings and defaults, and whether they accept a value (a dry run)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from waywiser.apply.job_libraries import JobLibraries
from waywiser.look import ucx
from waywiser.look.commands import Live
from waywiser.look.finding import Unknown
from waywiser.look.nccl_library import find_libnccl
from waywiser.look.root import Root

_SECONDS = 20.0
_LARGEST = 512 << 20


@dataclass(frozen=True)
class Installed:
    """A library: version and paths as text, and variable -> default for all its variables.

    `file`: the real path of the library; `why_not`: why there is none.
    """

    version: str = ""
    known: Mapping[str, str] | None = None
    why_not: str = ""
    file: str = ""


def _ucx_commands(jobs: JobLibraries) -> Live:
    """The UCX that jobs use, from its ucx_info. Raises Unknown."""
    program, extra = jobs.ucx_program("ucx_info")
    path = os.pathsep.join((os.path.dirname(program), jobs.environment.get("PATH", "")))
    return Live(environment={**jobs.environment, **extra, "PATH": path})


def installed_ucx(jobs: JobLibraries) -> Installed:
    """From ucx_info."""
    try:
        root = Root(commands=_ucx_commands(jobs))
        version = ".".join(map(str, ucx.version(root)))
        return Installed(f"{version} ({jobs.libucp}, of {jobs.whose})", ucx.settings(root), file=jobs.libucp)
    except Unknown as error:
        return Installed(why_not=str(error))


def installed_openmpi(jobs: JobLibraries) -> Installed:
    """Open MPI, from ompi_info; parameters have the names of their variables."""
    if jobs.mpi is None:
        return Installed(why_not=jobs.no_mpi)
    try:
        told = jobs.root().run("ompi_info", "--parsable", "--all")
    except Unknown as error:
        return Installed(why_not=str(error))
    values = re.findall(r"^mca:\w*:\w*:param:(\w{1,120}):value:(.{0,400})$", told, re.MULTILINE)
    known = {f"OMPI_MCA_{name}": value for name, value in values}
    components = re.findall(r"^mca:(\w{1,40}):(\w{1,40}):version:", told, re.MULTILINE)
    known |= {f"component {framework} {component}": "" for framework, component in components}
    if ("coll", "ucc") in components:
        known |= _ucc_variables(jobs)
    return Installed(jobs.mpi.text, known, file=jobs.mpi.libmpi or jobs.mpi.mpirun)


def _ucc_variables(jobs: JobLibraries) -> dict[str, str]:
    """Those of UCC, which runs collectives for Open MPI, with their defaults; none if there is no ucc_info."""
    try:
        told = jobs.root().run("ucc_info", "-caf")
    except Unknown:
        return {}
    return dict(re.findall(r"^(UCC_[A-Z0-9_]{1,80})=(.{0,400})$", told, re.MULTILINE))


def installed_mpich(jobs: JobLibraries) -> Installed:
    """MPICH, from its own tool mpivars."""
    root = jobs.root()
    try:
        told = root.run("mpivars")
        version = re.search(r"Version:\s+(\S{1,20})", root.run("mpichversion"))
    except Unknown as error:
        return Installed(why_not=str(error))
    where = shutil.which("mpivars", path=jobs.environment.get("PATH")) or ""
    text = f"{version[1] if version else 'version unknown'} ({where})"
    return Installed(text, mpich_names(told), file=where)


def mpich_names(told: str) -> dict[str, str]:
    """Variable -> default from the output of mpivars; its descriptions name variables too."""
    return dict(re.findall(r"^\s*(MPIR_CVAR_\w{1,100})\s*=(\S*)", told, re.MULTILINE))


def installed_nccl(jobs: JobLibraries) -> Installed:
    """NCCL: the names of variables in the first libnccl. It cannot read a variable whose name it does not contain."""
    file = find_libnccl()
    if not os.path.isabs(file):
        return Installed(why_not="needs libnccl.so.2, which is not installed")
    data = jobs.root().data(file, _LARGEST) or b""
    version = re.search(rb"NCCL version (\d{1,2}\.\d{1,3}\.\d{1,3})", data)
    told = version[1].decode() if version else "version unknown"
    return Installed(f"{told} ({file})", dict.fromkeys(nccl_names(data), ""), file=os.path.realpath(file))


def nccl_names(data: bytes) -> set[str]:
    """The names of variables that a libnccl contains; it has each of them whole."""
    return {name.decode() for name in re.findall(rb"\bNCCL_[A-Z0-9_]{2,60}\b", data)}


def installed(target: str, jobs: JobLibraries) -> Installed:
    """The library that `target` names."""
    readers = {"ucx": installed_ucx, "openmpi": installed_openmpi, "mpich": installed_mpich, "nccl": installed_nccl}
    return readers[target](jobs)


def refused(target: str, settings: Mapping[str, str], jobs: JobLibraries) -> str:
    """A dry run: why the installed library rejects these variables together; empty if it accepts them."""
    if target == "ucx":
        return _refused_by_ucx(settings, jobs)
    if target == "openmpi":
        return _refused_by_openmpi(settings, jobs)
    return ""


def _dry_run(argv: tuple[str, ...], settings: Mapping[str, str], given: Mapping[str, str]) -> str:
    """Both outputs of a tool with the variables set."""
    clean = {name: value for name, value in given.items() if not name.startswith(("UCX_", "UCC_", "OMPI_", "PMIX_"))}
    try:
        done = subprocess.run(
            argv,
            env={**clean, "LC_ALL": "C", **settings},
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


def _refused_by_ucx(settings: Mapping[str, str], jobs: JobLibraries) -> str:
    program, extra = jobs.ucx_program("ucx_info")
    said = _dry_run((program, "-c"), settings, {**jobs.environment, **extra})
    wrong = re.search(r"^(?:.*UCX +(?:ERROR|WARN) +|ERROR)(.*)$", said, re.MULTILINE)
    if wrong:
        return " ".join(wrong[1].split())[:200]
    shown = dict(re.findall(r"^(UCX_\w+)=(.*)$", said, re.MULTILINE))
    missing = [name for name in settings if name not in shown]
    return f"ucx_info -c does not show {missing[0]}" if missing else ""


def _refused_by_openmpi(settings: Mapping[str, str], jobs: JobLibraries) -> str:
    said = _dry_run(("ompi_info", "--parsable", "--all"), settings, jobs.environment)
    if said.startswith("ERROR"):
        return " ".join(said.split())[:200]
    shown = dict(re.findall(r"^mca:\w*:\w*:param:(\w+):value:(.*)$", said, re.MULTILINE))
    for name, value in settings.items():
        if name.startswith("UCC_"):  # no part of Open MPI, which does not show it
            continue
        told = shown.get(name.removeprefix("OMPI_MCA_"))
        if told != value:
            return f"ompi_info shows {told!r} for {name}={value}"
    return ""
