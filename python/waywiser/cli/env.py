"""`waywiser env`: this node's settings for a shell, a module file or a Slurm prolog."""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.options import AcceptSimulated, ClusterFile, For, Output
from waywiser.errors import InputError
from waywiser.results import DEFAULT


def env(
    output: Output = DEFAULT,
    for_: For = "",
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="shell, lmod, slurm, ucx.conf, mca-params.conf, nccl.conf.")
    ] = "shell",
    fingerprint: Annotated[str, typer.Option(metavar="ID", help="For another node type instead of this machine.")] = "",
    proved: Annotated[bool, typer.Option("--proved", help="Only settings that won against the default.")] = False,
    accept_simulated: AcceptSimulated = False,
    machine: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Show the settings for a machine that is not here.")
    ] = None,
    cluster: ClusterFile = None,
) -> None:
    """Print the settings kept for this kind of machine; nothing but a comment on one that was never tuned.

    Without --proved also those that were measured and not tried yet, each with a comment that says so; never what was
    tried and did not win, nor what no benchmark can decide. What is withheld is named in a comment.
    """
    from waywiser import _core
    from waywiser.apply.hand_out import hand_out
    from waywiser.apply.render import FORMS, render
    from waywiser.apply.store import all_kept, kept
    from waywiser.cli.apply import elsewhere_settings, wanted_in

    if form not in FORMS:
        raise InputError(f"--format {form!r}: write one of {', '.join(FORMS)}")
    targets, purpose = wanted_in(for_)
    if machine is not None or cluster is not None:
        if fingerprint or proved or accept_simulated:
            raise InputError("--machine and --cluster are simulated: leave out what is about settings that are kept")
        for one in elsewhere_settings(output, machine, cluster, purpose):
            typer.echo(render(one, form, targets), nl=False)
        return
    own = fingerprint or _core.discover().fingerprint
    settings = kept(output, own)
    if settings is None:
        mark = "--" if form == "lmod" else "#"
        known = ", ".join(f"{one.machine} {one.fingerprint}" for one in all_kept(output)) or "none"
        typer.echo(f"{mark} waywiser: nothing is known about this machine ({own}); known: {known}")
        return
    given, withheld = hand_out(settings, accept_simulated)
    typer.echo(render(given.only_proved() if proved else given, form, targets, withheld), nl=False)
