"""Manual pages of `waywiser` and of each verb, from the same texts as their help."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from waywiser import __version__, cli
from waywiser.cli.program import build_command

_ENVIRONMENT = """\
.SH ENVIRONMENT
.TP
.B WAYWISER_RESULTS
The folder of results, if \\-\\-results does not name one.
.TP
.B WAYWISER_CONFIG
The configuration file; otherwise /etc/waywiser.toml and ~/.config/waywiser.toml.
.SH EXIT STATUS
0: done. 1: a failure that the input did not cause. 2: bad input. 130, 143: interrupted. Of doctor: 0 ok, 1 warning, 2
problem, 3 unknown.
"""


def _roff(text: str) -> str:
    """Text whose backslashes, dashes and leading dots are not commands."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def _items(title: str, records: list[tuple[str, str]]) -> str:
    if not records:
        return ""
    items = "".join(f".TP\n.B {_roff(name)}\n{_roff(' '.join(text.split()))}\n" for name, text in records)
    return f".SH {title}\n{items}"


def _records(command: Any, context: Any, kind: str) -> list[tuple[str, str]]:
    found = [one.get_help_record(context) for one in command.get_params(context) if one.param_type_name == kind]
    return [record for record in found if record]


def _page(command: Any, name: str, line: str, more: str) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    paragraphs = "\n.PP\n".join(_roff(" ".join(part.split())) for part in (command.help or line).split("\n\n"))
    return "".join(
        (
            f'.TH "{name.upper().replace(" ", "-")}" 1 "" "waywiser {__version__}"\n',
            f".SH NAME\n{_roff(name.replace(' ', '-'))} \\- {_roff(line.rstrip('.'))}\n",
            f".SH SYNOPSIS\n.B {_roff(name)}\n{_roff(' '.join(command.collect_usage_pieces(context)))}\n",
            f".SH DESCRIPTION\n{paragraphs}\n",
            _items("ARGUMENTS", _records(command, context, "argument")),
            _items("OPTIONS", _records(command, context, "option")),
            more,
            _ENVIRONMENT,
        )
    )


def man_pages() -> dict[str, str]:
    """File name -> page: waywiser.1 with the list of verbs, waywiser-VERB.1 for each."""
    run = cli.run
    program = build_command(list(cli.VERBS))
    cli.run = run  # the module of the verb `run` has taken its place
    verbs = _items("VERBS", list(cli.VERBS.items()))
    pages = {"waywiser.1": _page(program, "waywiser", "measures paths between memories, chooses the fastest", verbs)}
    for verb, line in cli.VERBS.items():
        pages[f"waywiser-{verb}.1"] = _page(program.commands[verb], f"waywiser {verb}", line, "")
    return pages


def write_man_pages(folder: Path) -> None:
    """Writes them below `folder`, as `man -M` expects them."""
    target = folder / "man1"
    target.mkdir(parents=True, exist_ok=True)
    for name, text in man_pages().items():
        (target / name).write_text(text)
