"""`waywiser env`: this node's settings for a shell, a module file or a Slurm prolog."""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.options import AcceptSimulated, AsJson, ClusterFile, For, ResultsFolder
from waywiser.errors import InputError
from waywiser.results import DEFAULT


def env(
    output: ResultsFolder = DEFAULT,
    for_: For = "",
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="shell, lmod, slurm, ucx.conf, mca-params.conf, nccl.conf.")
    ] = "shell",
    fingerprint: Annotated[str, typer.Option(metavar="ID", help="For another node type instead of this machine.")] = "",
    proved: Annotated[bool, typer.Option("--proved", help="Only settings that won against the default.")] = False,
    accept_simulated: AcceptSimulated = False,
    machine: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Show the settings for another machine.")
    ] = None,
    cluster: ClusterFile = None,
    as_json: AsJson = False,
) -> None:
    """Print the settings kept for this kind of machine; only a comment if it was never tuned.

    Without --proved this includes settings that were measured and not yet tried, each marked by a comment. Settings
    that did not win or that no benchmark can decide are never exported. Comments name the withheld settings.
    """
    from waywiser import _core
    from waywiser.apply.hand_out import hand_out
    from waywiser.apply.render import FORMS, render, settings_json
    from waywiser.apply.setting import Settings
    from waywiser.apply.store import all_kept, kept
    from waywiser.apply.targets import wanted_in
    from waywiser.cli.machines import elsewhere_settings

    if form not in FORMS:
        raise InputError(f"--format {form!r}: write one of {', '.join(FORMS)}")
    targets, purpose = wanted_in(for_)
    if machine is not None or cluster is not None:
        if fingerprint or proved or accept_simulated:
            raise InputError("--machine and --cluster are simulated: leave out options for kept settings")
        found = elsewhere_settings(output, machine, cluster, purpose)
        if as_json:
            texts = [settings_json(one, targets) for one in found]
            typer.echo(texts[0] if len(texts) == 1 else f"[{','.join(texts)}]")
            return
        for one in found:
            typer.echo(render(one, form, targets), nl=False)
        return
    own = fingerprint or _core.discover().fingerprint
    settings = kept(output, own)
    if settings is None and as_json:
        typer.echo(settings_json(Settings(own, ""), targets))
        return
    if settings is None:
        mark = "--" if form == "lmod" else "#"
        known = ", ".join(f"{one.machine} {one.fingerprint}" for one in all_kept(output)) or "none"
        typer.echo(f"{mark} waywiser: nothing is known about this machine ({own}); known: {known}")
        return
    given, withheld = hand_out(settings, accept_simulated)
    given = given.only_proved() if proved else given
    if as_json:
        typer.echo(settings_json(given, targets, withheld))
        return
    typer.echo(render(given, form, targets, withheld), nl=False)
