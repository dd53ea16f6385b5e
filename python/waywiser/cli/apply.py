"""`waywiser apply`: what to set in UCX, Open MPI, MPICH and NCCL on this machine, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import Mpirun, Output, Recorded, results_of
from waywiser.errors import InputError
from waywiser.results import DEFAULT, Results

if TYPE_CHECKING:
    from waywiser.apply.facts import Machine
    from waywiser.apply.job_libraries import JobLibraries
    from waywiser.apply.setting import Settings


def apply(
    output: Output = DEFAULT,
    for_: Annotated[str, typer.Option("--for", metavar="LIST", help="Some of ucx,openmpi,mpich,nccl.")] = "",
    machine: Recorded = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="A description of a machine, without measurements.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the settings as JSON.")] = False,
    collectives: Annotated[
        bool, typer.Option("--collectives", help="Also time the algorithms of all-reduce, for a file of rules.")
    ] = False,
    ranks: Annotated[int, typer.Option("--ranks", "-n", min=2, max=4096, help="For --collectives.")] = 2,
    write: Annotated[
        bool | None,
        typer.Option("--write/--no-write", help="Keep the settings in the results; of another machine only if told."),
    ] = None,
    mpirun: Mpirun = None,
) -> None:
    """Settings that differ from the defaults and are worth it, each with its measurement; names are checked first."""
    from waywiser.apply.job_libraries import find_job_libraries
    from waywiser.apply.propose import settings_for
    from waywiser.apply.prove import with_verdicts_of
    from waywiser.apply.setting import MEASURED

    elsewhere = machine is not None or from_ is not None
    if elsewhere and (collectives or mpirun):
        raise InputError("--collectives and --mpirun are of this machine; leave out --machine and --from")
    jobs = None if elsewhere else find_job_libraries(mpirun)
    here = _machine(output, machine, from_)
    settings = settings_for(here, targets_in(for_), unchecked=elsewhere, jobs=jobs)
    if elsewhere and write and settings.source == MEASURED:
        raise InputError(f"{settings.machine} has measurements: run 'waywiser apply' on it, where names can be checked")
    if not elsewhere:
        settings = with_verdicts_of(_known_before(output, settings.fingerprint), settings)
    if collectives and jobs:  # the same file has other rules now: no verdict about it holds
        settings = _with_collectives(settings, output, ranks, jobs)
    if write if write is not None else not elsewhere:
        _write(output, settings, here)
    if as_json:
        typer.echo(settings.to_json())
    else:
        from waywiser.apply.table import print_settings

        print_settings(settings)


def _known_before(output: Path, fingerprint: str) -> Settings | None:
    """The settings that are replaced; None where there are none, or none that can be read."""
    from waywiser.apply.store import kept
    from waywiser.progress import say

    try:
        return kept(output, fingerprint)
    except InputError as error:
        say(f"replaced: {error}")
        return None


def targets_in(text: str) -> tuple[str, ...]:
    """ "ucx,nccl" -> the two; all for an empty text. Raises InputError."""
    from waywiser.apply.setting import TARGETS

    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in TARGETS:
            raise InputError(f"--for {word!r}: write some of {', '.join(TARGETS)}")
    return words or TARGETS


def _machine(output: Path, name: str | None, from_: str | None) -> Machine:
    from waywiser import _core
    from waywiser.apply.facts import Machine
    from waywiser.topology.choose import chosen_topology
    from waywiser.topology.load import load_topology

    if name:
        return Machine(load_topology(name), results_of(output, name).needed_profile())
    if from_:
        return Machine(chosen_topology(from_, None))
    topology = _core.discover()
    profile = Results(output).needed_profile()
    if profile.fingerprint != topology.fingerprint:
        raise InputError(f"{output}: its profile is of {profile.machine} ({profile.fingerprint}), not of this machine")
    return Machine(topology, profile)


def _with_collectives(settings: Settings, output: Path, ranks: int, jobs: JobLibraries) -> Settings:
    """The settings with the rules of collectives that were measured now, for the libraries that can be timed here."""
    from waywiser import _core
    from waywiser.apply.collectives import timed_rules
    from waywiser.progress import say

    return timed_rules(settings, output, ranks, len(_core.discover().ids("gpu")), jobs, say)


def _write(output: Path, settings: Settings, here: Machine) -> None:
    from waywiser.apply.nccl import TOPOLOGY_FILE
    from waywiser.apply.store import keep
    from waywiser.files import write_text_atomically
    from waywiser.progress import say
    from waywiser.topology.nccl_writer import write_nccl

    file = keep(output, settings)
    if any(one.value == TOPOLOGY_FILE for one in settings.settings):
        write_text_atomically(file.with_name(TOPOLOGY_FILE), write_nccl(here.topology))
    say(f"settings kept in {file}")
