"""`waywiser remote`: shows a server of GPUs and its clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import AsJson


def remote(
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where `waywiser serve` listens.")],
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The shared key. Default: ~/.config/waywiser/serve.key.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the GPUs that a server offers, their memory in use, and its clients."""
    from waywiser.offload.client import state_of
    from waywiser.units import format_bytes, format_seconds

    state = state_of(address, key=key)
    if as_json:
        print(json.dumps(state, indent=2))
        return
    for gpu in state["gpus"]:
        print(f"{gpu['name']}: {gpu['clients']} clients, {format_bytes(gpu['memory'])} in use")
    print(f"at most {format_bytes(state['limit'])} for a client")
    if state.get("builtins_only"):  # an older server says nothing of it
        print("only the built-in functions: it was started with --builtins-only")
    for one in state["clients"]:
        about = f"{one['requests']} requests, {format_bytes(one['memory'])}, for {format_seconds(one['seconds'])}"
        print(f"client {one['client']}: GPU {one['gpu']}, {about}")
