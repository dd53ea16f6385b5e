"""`waywiser kit DIR`: writes files for systemd, Prometheus, Grafana and Slurm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import AsJson, ResultsFolder
from waywiser.kit import CHECKS
from waywiser.results import DEFAULT


def kit(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the files.")],
    output: ResultsFolder = DEFAULT,
    command: Annotated[
        str, typer.Option("--command", metavar="PATH", help="The command on the nodes; default: this one.")
    ] = "",
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65535, help="Where metrics are served.")] = 9110,
    textfiles: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of node_exporter's textfile collector.")
    ] = Path("/var/lib/prometheus/node-exporter"),
    checks: Annotated[
        str, typer.Option(metavar="LIST", help="The checks of prolog and health check, as in doctor --only.")
    ] = CHECKS,
    as_json: AsJson = False,
) -> None:
    """Write units of systemd, alert rules, a Grafana dashboard, and Slurm's prolog, health check and task prolog.

    The files name the command, the folder of results and the port; read them before you install them.
    """
    from waywiser.doctor.report import selected
    from waywiser.kit import command_here, write_kit

    selected(checks)
    places = {
        "COMMAND": command or command_here(),
        "RESULTS": str(output.resolve()),
        "PORT": str(port),
        "TEXTFILES": str(textfiles.resolve()),
        "CHECKS": checks,
        "KIT": str(folder.resolve()),
    }
    written = [str(file) for file in write_kit(folder, places)]
    typer.echo(json.dumps({"files": written, **places}, indent=1) if as_json else "\n".join(written))
