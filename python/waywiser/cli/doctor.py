"""`waywiser doctor`: checks what is switched on here and what is not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import ResultsFolder
from waywiser.errors import InputError
from waywiser.results import DEFAULT

if TYPE_CHECKING:
    from waywiser.doctor.report import Report
    from waywiser.look.root import Root
    from waywiser.run.rank_status import RankStatus

_WATCHED = 2.0  # seconds


def doctor(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="With --compare: reports of nodes.")
    ] = None,
    only: Annotated[str, typer.Option(metavar="LIST", help="Ids and groups: D09,D10,NIC.")] = "",
    ignore: Annotated[
        str, typer.Option(metavar="LIST", help="Ids and groups whose findings are known: shown, not counted.")
    ] = "",
    accepted: Annotated[
        Path | None, typer.Option(metavar="FILE", help='Known findings, a line "D33: words of the finding" each.')
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    text: Annotated[
        bool, typer.Option("--text", help="Print in Prometheus's format, for node_exporter's textfile collector.")
    ] = False,
    all_: Annotated[
        bool, typer.Option("--all", help="Also show checks that do not apply, and what was checked.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 3 if a check could not run.")] = False,
    compare: Annotated[bool, typer.Option("--compare", help="Name the odd node among reports made by --json.")] = False,
    alone: Annotated[bool, typer.Option("--alone", help="In a job: each rank checks only its own node.")] = False,
    gather: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="If ranks cannot meet over the network: a folder that all nodes see. Default: this one."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1.0, max=3600.0, help="Seconds to wait for other nodes.")
    ] = 120.0,
    process: Annotated[
        int | None,
        typer.Option("--job", metavar="PID", min=1, help="Which way this running job took."),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.0, max=600.0, help="With --job: time between two looks; 2."),
    ] = None,
    results: ResultsFolder = DEFAULT,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="A copy of /sys, /proc and /dev instead of this machine."),
    ] = None,
) -> int:
    """Check for causes of slow or broken GPU communication, or say which way a running job took. Only reads.

    Exit code: 0 ok, 1 warning, 2 problem, 3 unknown or bad usage.
    """
    from waywiser.doctor.accepted import ignored, read_accepted
    from waywiser.doctor.report import examine, selected
    from waywiser.look.job import job

    if process is not None:
        if compare or files or only or ignore or accepted or text or all_ or alone or gather:
            raise InputError("--job goes with --seconds, --json, --strict and --root alone")
        return _job(process, _WATCHED if seconds is None else seconds, as_json, strict, root)
    if seconds is not None:
        raise InputError("--seconds is for --job")
    if compare:
        return _compare([_read(file) for file in files or []], as_json, strict)
    if files:
        raise InputError(f"{files[0]}: files are for --compare")
    if text and (as_json or root or (not alone and job() is not None)):
        raise InputError("--text is for this machine alone: write --alone in a job, and leave out --json and --root")
    checks = selected(only)
    known = ignored(selected(ignore, "--ignore")) if ignore else []
    known += read_accepted(accepted, selected("")) if accepted else []
    here = None if alone or root else job()
    report = examine(_root(root, results), checks, here.rank if here else None, known)
    if here is not None and here.size > 1:
        from waywiser.doctor.gather import gather_reports

        reports = gather_reports(report, here, gather, timeout)
        return 0 if reports is None else _compare(reports, as_json, strict)
    if as_json:
        typer.echo(report.to_json())
    elif text:
        from waywiser.cli.about import about_here
        from waywiser.doctor.metrics import report_text

        typer.echo(report_text(report, about_here(), time.time()), nl=False)
    else:
        from waywiser.doctor.table import print_report

        print_report(report, all_)
    return report.code(strict)


def _root(folder: Path | None, results: Path) -> Root:
    from waywiser.look.recorded import recorded_root
    from waywiser.look.root import Root

    kept = results if results.is_dir() else None
    return Root(results=kept) if folder is None else recorded_root(folder, kept)


def _job(process: int, seconds: float, as_json: bool, strict: bool, folder: Path | None) -> int:
    from waywiser import _core
    from waywiser.doctor.report import exit_code_of
    from waywiser.look.recorded import recorded_root
    from waywiser.monitor.counters import fresh
    from waywiser.run.rank_status import job_of
    from waywiser.running.evidence import watch
    from waywiser.running.fallbacks import name_fall_backs
    from waywiser.running.shown import as_json as job_as_json
    from waywiser.running.shown import print_job

    recorded = recorded_root(folder) if folder else None

    def ask(rank: int) -> list[RankStatus]:
        return [] if recorded else job_of(rank, Path(_core.runtime_folder()))

    seen = watch(lambda: recorded or fresh(), process, 0.0 if recorded else seconds, time.sleep, ask)
    found = name_fall_backs(seen)
    if as_json:
        typer.echo(job_as_json(seen, found))
    else:
        print_job(seen, found)
    return exit_code_of([one.finding.status for one in found], strict)


def _read(file: Path) -> Report:
    from waywiser.doctor.report import SCHEMA, VERSION, read_report
    from waywiser.files import read_json

    return read_report(read_json(file, SCHEMA, VERSION), str(file))


def _compare(reports: list[Report], as_json: bool, strict: bool) -> int:
    from waywiser.doctor.compare import code, node_names
    from waywiser.doctor.compare import compare as differences_of

    if len(reports) < 2:
        raise InputError("--compare needs two reports or more: waywiser doctor --json > NODE.json on each node")
    differences = differences_of(reports)
    if as_json:
        rows = [{"what": d.what, "usual": d.usual, "odd": dict(d.odd)} for d in differences]
        nodes = [json.loads(report.to_json()) for report in reports]
        typer.echo(json.dumps({"nodes": node_names(reports), "differences": rows, "reports": nodes}, indent=1))
    else:
        from waywiser.doctor.table import print_comparison

        print_comparison(reports, differences)
    return code(reports, differences, strict)
