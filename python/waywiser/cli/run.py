"""`waywiser run`: starts the ranks of a program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waywiser.launcher import Job, Launcher, place_ranks, read_hosts

# What follows the program belongs to it.
CONTEXT = {"allow_interspersed_args": False}


def run(
    command: Annotated[list[str], typer.Argument(metavar="PROGRAM [ARGUMENT]...", help="What each rank runs.")],
    count: Annotated[int, typer.Option("-n", metavar="N", min=1, max=32767, help="How many ranks.")] = 1,
    hosts: Annotated[
        Path | None, typer.Option("--hosts", metavar="FILE", help="Machines, by ssh: a line NAME [slots=N] for each.")
    ] = None,
    prefix: Annotated[bool, typer.Option("--prefix", help="Begin each line of output with the rank.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Where rank 0 listens, with --hosts.")
    ] = None,
    ssh: Annotated[str, typer.Option("--ssh", metavar="COMMAND", help="In place of ssh.")] = "ssh -o BatchMode=yes",
) -> int:
    """Runs PROGRAM N times, as ranks 0 to N - 1 of one group: `waywiser.join()` in it finds the others.

    Signals go to all ranks. When one fails, the others have a few seconds to say what they saw; then they are ended,
    and the exit code is that of the first failure.
    """
    places = place_ranks(count, read_hosts(hosts)) if hosts else None
    return Launcher(Job(command, count, places, port, tuple(ssh.split())), prefix).run()
