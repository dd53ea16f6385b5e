"""`waywiser remote`: shows a server of GPUs and its clients, or runs a program on its GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import AsJson
from waywiser.errors import InputError

if TYPE_CHECKING:
    pass


def remote(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where `waywiser serve` listens.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- PROGRAM [ARGUMENT ...]]", help="A program of the CUDA driver API, for the server's GPUs."
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The shared key. Default: ~/.config/waywiser/serve.key.")
    ] = None,
    data_plain: Annotated[
        bool, typer.Option("--data-plain", help="The program's data may go to another machine unencrypted.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the GPUs that a server offers, their memory in use, its clients, and the roads of arrays; or run a program.

    If `tune --remote` has measured the server, also show the times of the roads and the cost of encryption. A program
    of the CUDA driver API finds the server's GPUs in place of those of this machine.
    """
    from waywiser.offload.connect import state_of
    from waywiser.offload.roads import kept, usual_file
    from waywiser.offload.server_lines import lines_about, lines_about_roads

    state = state_of(address, key=key)
    if command:
        from waywiser.offload.program import run_with_remote_gpus

        run_with_remote_gpus(command, address, key, data_plain)
    if data_plain:
        raise InputError("--data-plain is for a program: waywiser remote HOST:PORT -- PROGRAM")
    if as_json:
        print(json.dumps(state, indent=2))
        return
    for line in lines_about(state):
        print(line)
    for number, gpu in enumerate(state["gpus"]):
        for line in lines_about_roads(gpu["name"], kept(usual_file(), address, number)):
            print(line)
