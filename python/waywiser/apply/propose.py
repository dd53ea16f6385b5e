"""Proposes settings for a machine that the library knows and accepts in a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from waywiser.apply import mpich, nccl, nccl_reduction, openmpi, ucx
from waywiser.apply.facts import Machine
from waywiser.apply.installed import Installed, installed, refused
from waywiser.apply.job_libraries import JobLibraries, find_job_libraries
from waywiser.apply.setting import NOT_CHECKED, TARGETS, LeftOut, Setting, Settings
from waywiser.look.root import Root

_PROPOSERS = {"ucx": ucx.proposed, "openmpi": openmpi.proposed, "mpich": mpich.proposed, "nccl": nccl.proposed}
_USUAL_OPENMPI = {"component pml ucx": "", "OMPI_MCA_pml": "ucx", "OMPI_MCA_pml_ucx_tls": "any"} | {
    "OMPI_MCA_pml_ucx_devices": "any"
}
DryRun = Callable[[str, Mapping[str, str]], str]


def settings_for(
    machine: Machine,
    targets: Sequence[str] = TARGETS,
    libraries: Mapping[str, Installed] | None = None,
    dry_run: DryRun | None = None,
    unchecked: bool = False,
    jobs: JobLibraries | None = None,
) -> Settings:
    """The settings for a machine. `unchecked`: another machine, whose libraries cannot be asked: names are kept
    unless its version is told in `libraries`, and lacks them.

    `jobs`: the libraries that jobs use, by default those of the mpirun in PATH.
    """
    kept: list[Setting] = []
    left: list[LeftOut] = []
    versions, files = {}, {}
    if libraries is None and not unchecked:
        jobs = jobs or find_job_libraries()
        libraries = {target: installed(target, jobs) for target in targets}
    if dry_run is None:
        dry_run = partial(_dry_run, jobs)
    for target in targets:
        library = (libraries or {}).get(target) or _elsewhere(target)
        versions[target] = library.version or f"not installed: {library.why_not}"
        if library.file:
            files[target] = library.file
        for one in _PROPOSERS[target](machine, library.known or {}):
            if isinstance(one, LeftOut):
                left.append(one)
            else:
                one = replace(one, measured=one.measured and not machine.label)
                why = "" if unchecked and target not in (libraries or {}) else _why_not(one, library)
                (kept.append(one) if not why else left.append(LeftOut(target, one.name, one.value, why)))
    if not unchecked:
        kept, refusals = _tried(kept, dry_run)
        left += refusals
        left += nccl_reduction.here(Root(), targets)
    topology = machine.topology
    fingerprint = machine.profile.fingerprint if machine.profile else topology.fingerprint
    product = "" if unchecked else Root().text("/sys/class/dmi/id/product_name") or ""
    return Settings(
        fingerprint, topology.name, machine.label, versions, tuple(kept), tuple(left), product, libraries=files
    )


def _dry_run(jobs: JobLibraries | None, target: str, variables: Mapping[str, str]) -> str:
    return refused(target, variables, jobs) if jobs else ""


def _elsewhere(target: str) -> Installed:
    """Defaults for another machine: names cannot be checked; some defaults of UCX and Open MPI are known."""
    known = {"ucx": ucx.USUAL, "openmpi": _USUAL_OPENMPI}
    return Installed(NOT_CHECKED, known.get(target, {}))


def _why_not(one: Setting, library: Installed) -> str:
    if library.known is None:
        return library.why_not
    if one.name not in library.known:
        return f"{library.version} does not know this variable here"
    return "this is the default" if library.known[one.name] == one.value else ""


def _tried(settings: Iterable[Setting], dry_run: DryRun) -> tuple[list[Setting], list[LeftOut]]:
    """Tries each group as a whole; a group that the library refuses is left out with the library's message."""
    groups: dict[tuple[str, str], list[Setting]] = {}
    for one in settings:
        groups.setdefault((one.target, one.group), []).append(one)
    kept: list[Setting] = []
    left: list[LeftOut] = []
    for (target, _), members in groups.items():
        why = dry_run(target, {one.name: one.value for one in members})
        if why:
            left += [LeftOut(target, one.name, one.value, f"refused in a dry run: {why}") for one in members]
        else:
            kept += members
    return kept, left
