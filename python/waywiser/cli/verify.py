"""`waywiser verify`: compares the settings with the defaults by the library's own benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import Mpirun, ResultsFolder
from waywiser.errors import InputError
from waywiser.progress import say
from waywiser.prove.prove import LEAST_ROUNDS
from waywiser.results import DEFAULT

if TYPE_CHECKING:
    from waywiser.apply.setting import Settings
    from waywiser.prove.prove import Proof
    from waywiser.prove.transport_counters import CountedBenchmark

_ROUNDS, _QUICK_ROUNDS = 7, 5
_LIBRARIES = ("openmpi", "nccl", "ucx")


def verify(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- PROGRAM ARGUMENTS", help="Your own program, which decides in place of a benchmark."),
    ] = None,
    library: Annotated[
        str, typer.Option("--with", metavar="openmpi|nccl|ucx", help="The library whose benchmark decides.")
    ] = "",
    output: ResultsFolder = DEFAULT,
    ranks: Annotated[
        int, typer.Option("--ranks", "-n", metavar="N", min=2, max=4096, help="Number of ranks; with nccl, of GPUs.")
    ] = 2,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=LEAST_ROUNDS,
            max=101,
            help=f"Interleaved rounds of all variants: {_ROUNDS}, {_QUICK_ROUNDS} if quick.",
        ),
    ] = None,
    baseline: Annotated[
        str,
        typer.Option(metavar="default|environment", help="Compare with the defaults, or with the current environment."),
    ] = "default",
    try_: Annotated[
        list[str] | None,
        typer.Option(
            "--try", metavar="'NAME=VALUE ...'", help="Also try these settings; those of one option together."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Half the sizes, fewer rounds.")] = False,
    metric: Annotated[
        str, typer.Option(metavar="REGEX", help="For PROGRAM: the number in its output, a group; else its time.")
    ] = "",
    more_is_better: Annotated[bool, typer.Option("--more-is-better", help="For --metric: a rate, not a time.")] = False,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="For PROGRAM: its JobName in tables of jobs; default: its file.")
    ] = "",
    record: Annotated[
        bool, typer.Option(help="For PROGRAM: run it once more with each variant, to see what it sends.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print the medians and verdicts as JSON.")] = False,
    mpirun: Mpirun = None,
    hosts: Annotated[
        Path | None,
        typer.Option("--hosts", metavar="FILE", help="With openmpi: ranks on these nodes in turn, a line NAME each."),
    ] = None,
) -> None:
    """Time defaults and settings, interleaved, at sizes not used for tuning. Settings that do not win are dropped.

    The counters of this node's devices prove which transport carried the bytes; only the times say what is faster.
    """
    if command:
        if library or mpirun or hosts or baseline != "default":
            raise InputError("with PROGRAM, leave out --with, --mpirun, --hosts and --baseline")
        count = rounds or (_QUICK_ROUNDS if quick else _ROUNDS)
        return _program(output, command, metric, more_is_better, count, name, record, try_ or [], as_json)
    if metric or more_is_better or name or not record:
        raise InputError("--metric, --more-is-better, --name and --no-record are for PROGRAM")
    from waywiser.apply.job_libraries import find_job_libraries
    from waywiser.monitor.counters import fresh, read_counters
    from waywiser.prove.transport_counters import CountedBenchmark
    from waywiser.prove.trial import (
        against_environment,
        benchmark_of,
        keep_proofs,
        nodes_in,
        prove_settings,
        refuse_another_library,
        settings_to_prove,
        timed_with,
        why_not_tried,
    )
    from waywiser.prove.try_option import tried

    if library not in _LIBRARIES or baseline not in ("default", "environment"):
        raise InputError(
            f"write --with {', '.join(_LIBRARIES[:-1])} or {_LIBRARIES[-1]}, --baseline default or environment"
        )
    nodes = nodes_in(hosts, library, ranks)
    jobs = find_job_libraries(mpirun)
    kept = settings_to_prove(output, bool(try_))
    tuner = any(one.group == "tuner" for one in kept.settings)
    timed, what, files = benchmark_of(library, output, ranks, quick, jobs, nodes, tuner)
    benchmark = CountedBenchmark(timed, lambda: read_counters(fresh()))
    refuse_another_library(kept, library, files.get(library, ""))
    settings = tried(timed_with(kept, jobs, files, library), library, try_ or [], jobs)
    count = rounds or (_QUICK_ROUNDS if quick else _ROUNDS)
    say("timed: " + ", ".join(f"{target} {settings.versions[target]}" for target in files))
    title = f"{settings.machine}, {2 if library == 'ucx' else ranks} ranks, {what}"
    if baseline == "environment":
        proof = against_environment(output, benchmark, count)
        _show(settings, what, [proof], benchmark, title, as_json)
        return
    other = {target: why for target, file in files.items() if (why := why_not_tried(kept, target, file))}
    result, proofs = prove_settings(settings, library, benchmark, count, other, bool(nodes))
    keep_proofs(output, result, library, proofs, benchmark, [one.name for one in nodes])
    _show(result, what, proofs, benchmark, title, as_json)
    if not as_json and not proofs:
        typer.echo(f"nothing to prove: --with {library} can time none of the proposed settings; --try adds your own")
    elif not as_json and not any(one.proof for one in result.settings):
        typer.echo("the defaults are best here")


def _program(
    output: Path,
    command: list[str],
    metric: str,
    more_is_better: bool,
    rounds: int,
    name: str,
    record: bool,
    options: list[str],
    as_json: bool,
) -> None:
    from waywiser.progress import say
    from waywiser.prove.program_proof import (
        Metric,
        ProgramProof,
        keep_program,
        keep_tried,
        name_of,
        of_program,
        prove_program,
        record_program,
        settings_for,
    )

    judged, called = Metric.of(metric, more_is_better), name_of(command, name)
    settings = settings_for(output, options)
    variables = settings.environment()
    proof = prove_program(of_program(command, judged), variables, rounds, say)
    sent = record_program(command, variables, say) if record else {}
    found = ProgramProof(called, command, judged, settings, proof, sent)
    file = keep_program(output, found)
    for line in [found.as_json()] if as_json else found.lines():
        typer.echo(line)
    say(f"kept in {file} for waywiser report --savings")
    if names := keep_tried(output, found):
        say(f"kept as proved, for waywiser run and env: {', '.join(names)}")


def _show(
    result: Settings, what: str, proofs: list[Proof], benchmark: CountedBenchmark, title: str, as_json: bool
) -> None:
    from waywiser.prove.evidence import summary_json
    from waywiser.prove.proof_table import print_proof

    if as_json:
        typer.echo(summary_json(result, what, proofs, benchmark))
    else:
        for proof in proofs:
            print_proof(f"{title}, against {proof.base}", proof, benchmark.carried(proof))
