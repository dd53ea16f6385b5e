"""`waywiser topology`: shows the devices and links of this machine or a recorded one."""

from __future__ import annotations

import json
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from waywiser import _core
from waywiser.errors import InputError
from waywiser.files import write_bytes_atomically
from waywiser.plot_packages import need_plots
from waywiser.topology.choose import FromOption, MachineOption, chosen_topology


class Format(str, Enum):
    """The form of the output."""

    text = "text"
    tree = "tree"
    matrix = "matrix"
    json = "json"
    nccl = "nccl"
    hwloc = "hwloc"
    svg = "svg"
    png = "png"


class Source(str, Enum):
    """The source of this machine's description."""

    sysfs = "sysfs"
    hwloc = "hwloc"


def topology(
    from_: FromOption = None,
    machine: MachineOption = None,
    format: Annotated[
        Format | None,
        typer.Option(
            "--format", metavar="|".join(Format), help="Default: from the ending of --output, else tree and matrix."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of to stdout.")
    ] = None,
    source: Annotated[
        Source, typer.Option("--source", metavar="|".join(Source), help="For this machine: /sys and NVML, or hwloc.")
    ] = Source.sysfs,
) -> None:
    """Show devices, links and relations of this machine or a recorded one, or convert a description."""
    if source is Source.hwloc and (from_ or machine):
        raise InputError("--source is for this machine only; leave it out with --from or --machine")
    chosen = _live_hwloc() if source is Source.hwloc else chosen_topology(from_, machine)
    if as_json and format not in (None, Format.json):
        raise InputError(f"--json and --format {format.value}: write one of them")
    form = Format.json if as_json else format or _by_ending(output)
    for_people = form in (Format.text, Format.tree) or (form is Format.matrix and sys.stdout.isatty())
    if for_people and output is None:
        from waywiser.report.topology_text import print_topology

        print_topology(chosen, form is not Format.matrix, form is not Format.tree, form is Format.text)
        return
    if form in (Format.svg, Format.png):
        need_plots(f"--format {form.value}")
    data = _bytes(chosen, form)
    if output is not None:
        write_bytes_atomically(output, data)
        print(f"wrote {output}", file=sys.stderr)
    elif form is Format.png and sys.stdout.isatty():
        raise InputError("a PNG is not text: name a file with --output")
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def _live_hwloc() -> _core.Topology:
    from waywiser.topology.hwloc_library import read_live

    return read_live()


def _by_ending(output: Path | None) -> Format:
    endings = {".json": Format.json, ".svg": Format.svg, ".png": Format.png, ".txt": Format.text, "": Format.text}
    ending = output.suffix.lower() if output else ""
    if ending in endings:
        return endings[ending]
    raise InputError(f"{output}: the ending does not determine the format; add --format (xml: nccl or hwloc)")


def _bytes(chosen: _core.Topology, form: Format) -> bytes:
    if form is Format.json:
        return f"{chosen.to_json()}\n".encode()
    if form in (Format.svg, Format.png):
        from waywiser.report.drawing import drawing_bytes

        return drawing_bytes(json.loads(chosen.to_json()), format=form.value)
    if form is Format.nccl:
        from waywiser.topology.nccl_writer import write_nccl

        return write_nccl(chosen).encode("utf-8")
    if form is Format.hwloc:
        from waywiser.topology.hwloc_writer import write_hwloc

        return write_hwloc(chosen).encode()
    return _plain_text(chosen, form).encode()


def _plain_text(chosen: _core.Topology, form: Format) -> str:
    from rich.console import Console

    from waywiser.report.topology_text import notes_text, tree_text
    from waywiser.topology.matrix import write_matrix

    console = Console(highlight=False, color_system=None, width=160, record=True, quiet=True)
    parts = []
    if form is not Format.matrix:
        console.print(tree_text(chosen))
        parts.append(console.export_text())
    if form is not Format.tree:
        parts.append(write_matrix(chosen))
    if form is Format.text:
        parts.append(notes_text(chosen).plain + "\n")
    return "\n".join(parts)
