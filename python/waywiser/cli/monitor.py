"""`waywiser monitor`: shows the traffic on each link, and serves it to Prometheus."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.about import about_here
from waywiser.cli.options import AsJson, ResultsFolder
from waywiser.errors import InputError
from waywiser.results import DEFAULT, Results

if TYPE_CHECKING:
    from waywiser.monitor.watcher import Watcher
    from waywiser.profile import Profile


def monitor(
    output: ResultsFolder = DEFAULT,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=3600.0, help="Time between two polls.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Poll twice, print once.")] = False,
    text: Annotated[bool, typer.Option("--text", help="With --once: print in Prometheus's format.")] = False,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="Serve metrics on this port; 0: do not serve.")
    ] = 0,
    address: Annotated[str, typer.Option(metavar="ADDRESS", help="Serve at this address.")] = "127.0.0.1",
    job: Annotated[str, typer.Option(metavar="NAME", help="Name of the job. Default: Slurm's number.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show throughput, errors and retransmissions of NICs, NVLinks and PCIe; warns if a link under load is slow."""
    from waywiser.monitor.watcher import Watcher

    if as_json and not once:
        raise InputError("--json is for --once: at --port the metrics have Prometheus's format")
    watcher = Watcher(_profile(output), job or os.environ.get("SLURM_JOB_ID", ""))
    if once:
        time.sleep(seconds)
        _once(watcher, text, as_json)
    elif port:
        _serve(watcher, address, port)
    else:
        _live(watcher, seconds)


def _profile(output: Path) -> Profile | None:
    from waywiser import _core

    profile = Results(output).profile
    return profile if profile and profile.fingerprint == _core.discover().fingerprint else None


def _once(watcher: Watcher, text: bool, as_json: bool) -> None:
    view = watcher.view()
    if as_json:
        typer.echo(json.dumps(view.as_json(), indent=1))
    elif text:
        from waywiser.monitor.exporter import text_of

        typer.echo(text_of(view, about_here()), nl=False)
    else:
        from waywiser.monitor.screen import screen
        from waywiser.terminal import print_result

        print_result(screen(view))


def _serve(watcher: Watcher, address: str, port: int) -> None:
    from waywiser.monitor.exporter import serve
    from waywiser.progress import say

    try:
        server = serve(watcher.view, about_here(), address, port)
    except OSError as error:
        raise InputError(f"--port {port}: cannot serve at {address}: {error.strerror or error}") from error
    say(f"metrics at http://{address}:{server.server_port}/metrics; Ctrl-C ends")
    try:
        threading.Event().wait()
    finally:
        server.shutdown()


def _live(watcher: Watcher, seconds: float) -> None:
    from rich.live import Live

    from waywiser.monitor.screen import screen
    from waywiser.terminal import console

    with Live(console=console(), auto_refresh=False) as live:
        while True:
            live.update(screen(watcher.view()), refresh=True)
            time.sleep(seconds)
