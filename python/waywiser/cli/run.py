"""`waywiser run`: starts the ranks of a program."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import AcceptSimulated, ResultsFolder
from waywiser.errors import InputError
from waywiser.results import DEFAULT
from waywiser.run.hosts import place_ranks, read_hosts
from waywiser.run.job import Job
from waywiser.run.launcher import Launcher

# All arguments after the program belong to it.
CONTEXT = {"allow_interspersed_args": False}


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="PROGRAM [ARGUMENT]...", help="The program that each rank runs.")
    ],
    count: Annotated[int, typer.Option("-n", metavar="N", min=1, max=32767, help="Number of ranks.")] = 1,
    hosts: Annotated[
        Path | None, typer.Option("--hosts", metavar="FILE", help="Machines, by ssh: lines NAME [slots=N] or NAME:N.")
    ] = None,
    prefix: Annotated[bool, typer.Option("--prefix", help="Begin each line of output with the rank.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", min=1, max=65535, help="Where rank 0 listens, with --hosts.")
    ] = None,
    ssh: Annotated[
        str, typer.Option("--ssh", metavar="COMMAND", help="The command to use instead of ssh.")
    ] = "ssh -o BatchMode=yes",
    output: ResultsFolder = DEFAULT,
    require: Annotated[
        str, typer.Option(metavar="LIST", help="Do not start without these paths: gdr,nvlink,rdma,cma,...")
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", help="Count bytes to show which paths they took.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the settings of each rank; start nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: print JSON.")] = False,
    bind: Annotated[
        str, typer.Option(metavar="default|none", help="Bind each rank to CPUs, memory and NIC near its GPU.")
    ] = "default",
    plain: Annotated[bool, typer.Option("--plain", help="No settings and no binding.")] = False,
    accept_simulated: AcceptSimulated = False,
    trust_network: Annotated[
        bool, typer.Option("--trust-network", help="The machines' network is private: NCCL may use it.")
    ] = False,
    encrypt: Annotated[
        bool, typer.Option("--encrypt", help="Encrypt and authenticate traffic between machines (TLS 1.3).")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Let the other ranks go on when one has failed.")
    ] = False,
) -> int:
    """Run PROGRAM N times, as ranks 0 to N - 1 of one group: `waywiser.join()` in it finds the others.

    Each rank gets the settings kept for its machine, its GPU's CPUs and the nearest NIC. If mpirun, srun or torchrun
    starts this command, it sets up only its own rank. Signals go to all ranks. If a rank fails, the others have a few
    seconds to report their errors; then they are ended, unless told otherwise, and the exit code is that of the first
    failure.
    """
    from waywiser import _core
    from waywiser.run.one_rank import be_a_rank, running_in_job, started_command

    if bind not in ("default", "none"):
        raise InputError(f"--bind {bind!r}: write default or none")
    if as_json and not dry_run:
        raise InputError("--json is for --dry-run: otherwise the output is that of the program")
    wanted, bound = _required(require), bind == "default"
    if trust_network:
        os.environ["WAYWISER_TRUST_NETWORK"] = "1"
    if encrypt:
        os.environ["WAYWISER_ENCRYPT"] = "1"
    in_job = running_in_job(count) and hosts is None
    if dry_run:
        return _dry_run(output, in_job, count, bound, accept_simulated, as_json)
    if hosts is None and shutil.which(command[0]) is None:
        raise InputError(f"there is no program '{command[0]}'")
    if in_job:
        started = started_command(list(command), plain, output, bound, accept_simulated)
        return be_a_rank(started, output, wanted if watch else None)
    places = place_ranks(count, read_hosts(hosts)) if hosts else None
    job = Job(command, count, places, None if plain else output, port, tuple(ssh.split()), bind=bound,
              trust_network=trust_network, encrypt=os.environ.get("WAYWISER_ENCRYPT") == "1",
              accept_simulated=accept_simulated, keep_going=keep_going)  # fmt: skip
    _core.sweep_runtime_folder()
    launcher = Launcher(job, prefix)
    if not watch:
        return launcher.run()
    from waywiser.run.watch import watching

    return watching(output, wanted, launcher.run, len(set(places or ("here",))))


def _required(text: str) -> list[str]:
    if not text:
        return []
    from waywiser.run.require import required_here

    return required_here(text)


def _dry_run(output: Path, in_job: bool, count: int, bound: bool, accept_simulated: bool, as_json: bool) -> int:
    """Prints the setup of each rank of this node."""
    from waywiser.look.job import local_rank
    from waywiser.run.setups import setups_json, show_setups
    from waywiser.run.start_rank import setups_here

    ranks = [local_rank()] if in_job else [(rank, count) for rank in range(count)]
    setups = setups_here(output, ranks, os.environ, bound, accept_simulated)
    if as_json:
        print(setups_json([rank for rank, _ in ranks], setups))
    else:
        show_setups(ranks, setups)
    return 0
