"""The page of the command line: the help of `waywiser` and of each verb, as a terminal shows it."""

from __future__ import annotations

from typing import Any

from waywiser import cli
from waywiser.cli.program import build_command

from .markdown import fenced, page

_WIDTH = 92


def _help(command: Any, name: str) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    context.terminal_width = context.max_content_width = _WIDTH
    return str(command.get_help(context))


def command_line_page() -> str:
    run = cli.run
    program = build_command(list(cli.VERBS))
    cli.run = run  # the module of the verb `run` has taken its place
    parts = ["# Command line reference", fenced(_help(program, "waywiser"))]
    for verb in cli.VERBS:
        parts += [f"## waywiser {verb}", fenced(_help(program.commands[verb], f"waywiser {verb}"))]
    return page(*parts)
