"""`waywiser apply`: settings of UCX, Open MPI, MPICH and NCCL for this machine, with reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import ClusterFile, For, Mpirun, Recorded, ResultsFolder
from waywiser.errors import InputError
from waywiser.results import DEFAULT

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
    from waywiser.apply.kept_settings import keep_prediction, keep_settings, known_before, with_others
    from waywiser.apply.known_versions import told_libraries
    from waywiser.apply.nccl_tuner_switch import with_tuner
    from waywiser.apply.propose import settings_for
    from waywiser.apply.targets import wanted_in
    from waywiser.cli.machines import machine_named, machines_named
    from waywiser.prove.prove import with_verdicts_of

    targets, purpose = wanted_in(for_)
    told = told_libraries(ucx_version, nccl_version)
    several = cluster is not None or "," in (machine or "")
    if several:
        if (cluster and machine) or from_ or collectives or mpirun:
            raise InputError("--cluster has several machines: leave out options for one machine")
        nodes = machines_named(output, machine, cluster, purpose)
        found = [(one, settings_for(one, targets, told, unchecked=True)) for one in nodes]
        for one, settings in found if write else []:
            keep_prediction(output, settings, one, targets)
        return _show(found, as_json, markdown)
    if markdown and machine is None:
        raise InputError("--markdown is for other machines: write --machine or --cluster")
    elsewhere = machine is not None or from_ is not None
    if elsewhere and (collectives or mpirun):
        raise InputError("--collectives and --mpirun are for this machine; leave out --machine and --from")
    if told and not elsewhere:
        raise InputError("--ucx-version and --nccl-version are for other machines; here the libraries are asked")
    jobs = None if elsewhere else find_job_libraries(mpirun)
    here = replace(machine_named(output, machine, from_), purpose=purpose)
    settings = settings_for(here, targets, told or None, unchecked=elsewhere, jobs=jobs)
    before = None if elsewhere else known_before(output, settings.fingerprint)
    if not elsewhere:
        settings = with_tuner(settings, output)
    if not elsewhere:
        settings = with_verdicts_of(before, settings)
    if collectives and jobs:  # the file has new rules now, so earlier verdicts about it are invalid
        settings = _with_collectives(settings, output, ranks, jobs)
    if elsewhere and write:
        keep_prediction(output, settings, here, targets)
    if not elsewhere and write is not False:
        keep_settings(output, with_others(settings, before, targets), here)
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


def _with_collectives(settings: Settings, output: Path, ranks: int, jobs: JobLibraries) -> Settings:
    """The settings with newly measured rules for collectives."""
    from waywiser.progress import say
    from waywiser.prove.collectives import timed_rules

    return timed_rules(settings, output, ranks, jobs, say)
