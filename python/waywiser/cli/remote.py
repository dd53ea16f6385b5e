"""`waywiser remote`: shows a server of GPUs and its clients, or runs a program on its GPUs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from waywiser.cli.options import AsJson
from waywiser.errors import InputError

if TYPE_CHECKING:
    from waywiser.offload.roads import Roads


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


def lines_about(state: dict[str, Any]) -> Iterator[str]:
    """A server's state in words."""
    from waywiser.units import format_bytes, format_seconds

    for gpu in state["gpus"]:
        yield f"{gpu['name']}: {gpu['clients']} clients, {format_bytes(gpu['memory'])} in use"
    yield f"at most {format_bytes(state['limit'])} for a client"
    if state.get("builtins_only"):  # an older server says nothing of it
        yield "only the built-in functions: it was started with --builtins-only"
    if state.get("data_plain"):
        yield "arrays of other machines: encrypted, or not if a client wants it (data_plain): started with --data-plain"
    else:
        yield "arrays of other machines: encrypted"
    for one in state["clients"]:
        about = f"{one['requests']} requests, {format_bytes(one['memory'])}, for {format_seconds(one['seconds'])}"
        yield f"client {one['client']}: GPU {one['gpu']}, {about}"


def lines_about_roads(name: str, roads: Roads | None) -> Iterator[str]:
    """The fastest roads by size, and what encryption costs, if they were measured."""
    from waywiser.offload.roads import DIRECTIONS, price_line
    from waywiser.units import format_bytes

    if roads is None:
        yield f"{name}: no road was measured: waywiser tune --remote HOST:PORT"
        return
    for plain in (False, True):
        for direction in DIRECTIONS:
            rows = [(row.way, size) for row in roads.rows(direction, plain) for size, _ in row.expected]
            if rows:
                best = ", ".join(f"{road} at {format_bytes(size)}" for road, size in rows)
                yield f"{name}, {direction}{' unencrypted' if plain else ''}: {best}"
    for price in roads.prices():
        yield f"{name}, {price_line(price)}"
