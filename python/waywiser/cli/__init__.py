"""The command `waywiser`. A verb is a file of this folder, imported only when it is used, as Typer is."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from waywiser.cli.help import VERBS, fits_terminal, help_text

__all__ = ["VERBS", "main", "run"]


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code. Results go to stdout, one line per failure to stderr."""
    if list(arguments) == ["--help"] and fits_terminal():
        return _print_help()
    from waywiser.cli.program import run_command

    return run_command(arguments)


def _print_help() -> int:
    try:
        print(help_text(), end="", flush=True)
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    return 0


def main() -> None:
    """Entry point of the command."""
    sys.exit(run(sys.argv[1:]))
