"""`waywiser machine`: a machine from its data sheet, and the table of parts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from waywiser.cli.options import AsJson
from waywiser.errors import InputError
from waywiser.units import format_bytes, format_rate


def machine(
    what: Annotated[str, typer.Argument(metavar="new|parts", help="Describe a machine, or print the table of parts.")],
    gpus: Annotated[str, typer.Option(metavar="COUNTxPART", help="Such as 8xH100.")] = "",
    cpus: Annotated[str, typer.Option(metavar="COUNTxPART", help="Such as 2x8480C.")] = "",
    nics: Annotated[
        str, typer.Option(metavar="LIST", help="COUNTxPART, such as 8xCX7, 2xCX7@200 (Gb/s) or 1xCX5,1x10GbE.")
    ] = "",
    pcie: Annotated[str, typer.Option(metavar="gen3|gen4|gen5|gen6", help="Of the slots; default: the CPU's.")] = "",
    nvswitch: Annotated[bool, typer.Option("--nvswitch", help="The same as --nvlinks nvswitch.")] = False,
    nvlinks: Annotated[
        str,
        typer.Option(
            metavar="nvswitch|all|cube-mesh|none", help="How NVLinks join the GPUs; default: each with all others."
        ),
    ] = "",
    switches: Annotated[
        int | None,
        typer.Option(metavar="N", help="PCIe switches; default: with NVSwitches one for two GPUs, else none."),
    ] = None,
    roots: Annotated[
        int | None, typer.Option(metavar="N", help="Root complexes; default: one for each switch and CPU.")
    ] = None,
    nics_at: Annotated[str, typer.Option(metavar="switch|root", help="What NICs hang on.")] = "switch",
    no_gdr: Annotated[bool, typer.Option("--no-gdr", help="NICs cannot reach the memory of the GPUs.")] = False,
    name: Annotated[str, typer.Option(metavar="NAME", help="Its name in tables and pictures.")] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", metavar="FILE", help="Write here instead of to stdout.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a machine that is not here by its parts: a file that every verb reads as --machine FILE."""
    given = [gpus, cpus, nics, pcie, nvlinks, name]
    if what == "parts":
        if any(given) or nvswitch or no_gdr or output or switches is not None or roots is not None:
            raise InputError("machine parts takes no other options than --json")
        return _print_parts(as_json)
    if what != "new":
        raise InputError(f"{what[:40]!r} is none of new, parts")
    if not cpus:
        raise InputError("machine new needs --cpus, such as --cpus 2x8480C")
    if nvswitch and nvlinks not in ("", "nvswitch"):
        raise InputError(f"--nvswitch and --nvlinks {nvlinks}: write one of them")
    from waywiser.topology.new_machine import NewMachine

    chosen = "nvswitch" if nvswitch else nvlinks
    made = NewMachine(cpus, gpus, nics, pcie, chosen, switches, roots, nics_at, name, not no_gdr).topology()
    if output is None:
        print(made.to_json())
        return None
    if output.suffix != ".json":
        raise InputError(f"{output}: the name of a machine's file ends in .json")
    from waywiser.files import write_text_atomically

    write_text_atomically(output, made.to_json() + "\n")
    print(f"wrote {output}: waywiser topology --machine {output} shows it", file=sys.stderr)
    return None


def _print_parts(as_json: bool) -> None:
    from waywiser.topology.data_sheets import KINDS, parts

    if as_json:
        rows = [
            {"kind": one.kind, "names": one.names, "source": one.source, "figures": one.figures, "sources": one.sources}
            for one in parts()
        ]
        print(json.dumps(rows, indent=1))
        return
    from waywiser.terminal import add, print_result, table

    shown = table("", "Part", "Figures", "Source")
    for one in parts():
        figures = ", ".join(f"{name} {_shown(name, value)}" for name, value in one.figures.items())
        others = "".join(f"; {name}: {source}" for name, source in one.sources.items())
        add(shown, KINDS[one.kind], ", ".join(one.names), figures, one.source + others)
    print_result(shown)


def _shown(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    assert isinstance(value, (int, float))
    if name.endswith("_bytes"):
        return format_bytes(int(value))
    return format_rate(float(value)) if name.endswith(("_rate", "_bandwidth")) else f"{value:g}"
