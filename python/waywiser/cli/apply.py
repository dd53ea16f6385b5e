"""`waywiser apply`: settings of UCX, Open MPI, MPICH and NCCL for this machine, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import ClusterFile, For, Mpirun, Recorded, ResultsFolder, results_of
from waywiser.errors import InputError
from waywiser.results import DEFAULT, Results

if TYPE_CHECKING:
    from waywiser.apply.facts import Machine
    from waywiser.apply.job_libraries import JobLibraries
    from waywiser.apply.setting import Settings


def apply(
    output: ResultsFolder = DEFAULT,
    for_: For = "",
    machine: Recorded = None,
    cluster: ClusterFile = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="A description of a machine, without measurements.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the settings as JSON.")] = False,
    collectives: Annotated[
        bool, typer.Option("--collectives", help="Also time all-reduce algorithms, and write a file of rules.")
    ] = False,
    ranks: Annotated[int, typer.Option("--ranks", "-n", metavar="N", min=2, max=4096, help="For --collectives.")] = 2,
    write: Annotated[
        bool | None,
        typer.Option("--write/--no-write", help="Keep the settings in the results folder."),
    ] = None,
    mpirun: Mpirun = None,
    markdown: Annotated[bool, typer.Option(help="For other machines: tables for a document.")] = False,
    ucx_version: Annotated[
        str, typer.Option("--ucx-version", metavar="V", help="For other machines: leave out what this UCX lacks.")
    ] = "",
    nccl_version: Annotated[
        str, typer.Option("--nccl-version", metavar="V", help="For other machines: the same of NCCL.")
    ] = "",
) -> None:
    """Propose settings that are better than the defaults, each with its measurement; names are checked first.

    For paths to other nodes, also compare GPUDirect RDMA and GDRCopy: one setting for all sizes, and the best by size.
    """
    from waywiser.apply.job_libraries import find_job_libraries
    from waywiser.apply.known_versions import told_libraries
    from waywiser.apply.propose import settings_for
    from waywiser.prove.prove import with_verdicts_of

    targets, purpose = wanted_in(for_)
    told = told_libraries(ucx_version, nccl_version)
    several = cluster is not None or "," in (machine or "")
    if several:
        if (cluster and machine) or from_ or collectives or mpirun:
            raise InputError("--cluster has several machines: leave out options for one machine")
        nodes = _machines(output, machine, cluster, purpose)
        found = [(one, settings_for(one, targets, told, unchecked=True)) for one in nodes]
        for one, settings in found if write else []:
            _write_prediction(output, settings, one, targets)
        return _show(found, as_json, markdown)
    if markdown and machine is None:
        raise InputError("--markdown is for other machines: write --machine or --cluster")
    elsewhere = machine is not None or from_ is not None
    if elsewhere and (collectives or mpirun):
        raise InputError("--collectives and --mpirun are for this machine; leave out --machine and --from")
    if told and not elsewhere:
        raise InputError("--ucx-version and --nccl-version are for other machines; here the libraries are asked")
    jobs = None if elsewhere else find_job_libraries(mpirun)
    here = replace(_machine(output, machine, from_), purpose=purpose)
    settings = settings_for(here, targets, told or None, unchecked=elsewhere, jobs=jobs)
    before = None if elsewhere else _known_before(output, settings.fingerprint)
    if not elsewhere:
        settings = with_verdicts_of(before, settings)
    if collectives and jobs:  # the file has new rules now, so earlier verdicts about it are invalid
        settings = _with_collectives(settings, output, ranks, jobs)
    if elsewhere and write:
        _write_prediction(output, settings, here, targets)
    if not elsewhere and write is not False:
        _write(output, _with_others(settings, before, targets), here)
    _show([(here, settings)], as_json, markdown)


def _show(found: Sequence[tuple[Machine, Settings]], as_json: bool, markdown: bool) -> None:
    """Prints the settings of one machine, or of each type of node after the paths between them."""
    from waywiser.apply.node_table import node_markdown, node_table, settings_markdown
    from waywiser.apply.table import print_settings
    from waywiser.terminal import print_result

    if as_json:
        texts = [settings.to_json() for _, settings in found]
        typer.echo(texts[0] if len(texts) == 1 else f"[{','.join(texts)}]")
        return
    profiles = [one.profile for one, _ in found if one.profile]
    if markdown:
        label = next((one.warning() for one in profiles if one.warning()), "")
        parts = [f"{label}." if label else "", node_markdown(profiles), settings_markdown([one for _, one in found])]
        typer.echo("\n\n".join(part for part in parts if part))
        return
    between = node_table(profiles)
    if between:
        print_result(between)
    for _, settings in found:
        if between:
            print_result("")
        print_settings(settings)


def _known_before(output: Path, fingerprint: str) -> Settings | None:
    """The settings that are replaced; None if there are no readable ones."""
    from waywiser.apply.store import kept
    from waywiser.progress import say

    try:
        return kept(output, fingerprint)
    except InputError as error:
        say(f"replaced: {error}")
        return None


def wanted_in(text: str) -> tuple[tuple[str, ...], str]:
    """ "ucx,nccl,latency" -> the two libraries (all if none is named) and the purpose. Raises InputError."""
    from waywiser.apply.node_switches import PURPOSES
    from waywiser.apply.setting import TARGETS

    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if word not in (*TARGETS, *PURPOSES):
            raise InputError(f"--for {word!r}: write some of {', '.join(TARGETS)} and one of {', '.join(PURPOSES)}")
    purposes = [word for word in words if word in PURPOSES]
    if len(purposes) > 1:
        raise InputError(f"--for {text}: write one of {', '.join(PURPOSES)}")
    return tuple(word for word in words if word in TARGETS) or TARGETS, purposes[0] if purposes else "mixed"


def targets_in(text: str) -> tuple[str, ...]:
    """The libraries of `wanted_in`."""
    return wanted_in(text)[0]


def elsewhere_settings(output: Path, machine: str | None, cluster: Path | None, purpose: str) -> list[Settings]:
    """Settings of other machines: each type of node of a cluster file, or those that `machine` names."""
    from waywiser.apply.propose import settings_for

    return [settings_for(one, unchecked=True) for one in _machines(output, machine, cluster, purpose)]


def _machines(output: Path, names: str | None, cluster: Path | None, purpose: str) -> list[Machine]:
    """Machines by name, or each (named) type of node of a cluster file with the paths to the others: as `tune` has left
    them, else simulated now."""
    from waywiser.apply.facts import Machine
    from waywiser.cli.options import node_results
    from waywiser.simulator.cluster import read_cluster
    from waywiser.topology.load import load_topology

    words = [word.strip() for word in (names or "").split(",") if word.strip()]
    if cluster is None:
        return [replace(_machine(output, word, None), purpose=purpose) for word in words]
    read = read_cluster(cluster)
    found = node_results(output, read)
    for word in words:
        if word not in found:
            raise InputError(f"--machine {word}: {cluster} has {', '.join(found)}")
    chosen = {name: results for name, results in found.items() if not words or name in words}
    return [
        Machine(load_topology(name), one.needed_profile(), purpose, read.beginning_with(name))
        for name, one in chosen.items()
    ]


def _machine(output: Path, name: str | None, from_: str | None) -> Machine:
    from waywiser import _core
    from waywiser.apply.facts import Machine
    from waywiser.topology.choose import chosen_topology
    from waywiser.topology.load import load_topology

    if name:
        return Machine(load_topology(name), results_of(output, name, for_settings=True).needed_profile())
    if from_:
        return Machine(chosen_topology(from_, None))
    topology = _core.discover()
    profile = Results(output).needed_profile()
    if profile.fingerprint != topology.fingerprint:
        raise InputError(f"{output}: its profile is of {profile.machine} ({profile.fingerprint}), not of this machine")
    return Machine(topology, profile)


def _with_collectives(settings: Settings, output: Path, ranks: int, jobs: JobLibraries) -> Settings:
    """The settings with newly measured rules for collectives, for the libraries that can be timed here."""
    from waywiser import _core
    from waywiser.progress import say
    from waywiser.prove.collectives import timed_rules

    return timed_rules(settings, output, ranks, len(_core.discover().ids("gpu")), jobs, say)


def _with_others(settings: Settings, before: Settings | None, targets: Sequence[str]) -> Settings:
    """With what is kept about the libraries that were not asked for; no predictions beside measured settings."""
    if before is None or before.source != settings.source:
        return settings
    return settings.with_others_of(before, targets)


def _write_prediction(output: Path, settings: Settings, machine: Machine, targets: Sequence[str]) -> None:
    """Keeps the settings of another machine. Raises InputError if that machine was measured."""
    from waywiser.apply.setting import MEASURED

    if settings.source == MEASURED:
        raise InputError(f"{settings.machine} has measurements: run 'waywiser apply' on it, where names can be checked")
    _write(output, _with_others(settings, _known_before(output, settings.fingerprint), targets), machine)


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
