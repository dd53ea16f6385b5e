"""This process as one rank of a job that another launcher has started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from waywiser.look.job import local_rank, nodes, started
from waywiser.signals import ENDING, handle, restore


def running_in_job(count: int) -> bool:
    """Whether a launcher has started this process as a rank, and no ranks are requested."""
    return count == 1 and started().launcher not in ("none", "waywiser run")


def started_command(command: list[str], plain: bool, output: Path, bound: bool, accept_simulated: bool) -> list[str]:
    """The command to start for a rank of another launcher's job."""
    if plain:
        return command
    from waywiser.run.start_rank import command_for

    return command_for(output, command, bound, accept_simulated)


def be_a_rank(command: list[str], output: Path, watched_for: list[str] | None) -> int:
    """Becomes the program; on the first rank of a node with --watch, starts it and watches these paths."""
    if watched_for is None or local_rank()[0] != 0:
        os.execvp(command[0], command)
    from waywiser.run.watch import watching

    return watching(output, watched_for, lambda: _call(command), nodes())


def _call(command: list[str]) -> int:
    """SIGTERM and SIGHUP go to the program, which the launcher of the job may not know."""
    with subprocess.Popen(command) as process:
        before = handle(ENDING, lambda number, _: process.send_signal(number))
        try:
            code = process.wait()
        finally:
            restore(before)
    return code if code >= 0 else 128 - code
