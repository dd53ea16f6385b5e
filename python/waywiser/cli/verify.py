"""`waywiser verify`: compares the settings with the defaults by the library's own benchmark."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser import _core
from waywiser.cli.options import Mpirun, ResultsFolder
from waywiser.errors import InputError
from waywiser.progress import say
from waywiser.prove.prove import LEAST_ROUNDS
from waywiser.results import DEFAULT, Results

if TYPE_CHECKING:
    from waywiser.apply.job_libraries import JobLibraries
    from waywiser.apply.setting import Settings
    from waywiser.prove.benchmarks import Benchmark
    from waywiser.prove.carried import CountedBenchmark
    from waywiser.prove.prove import Proof
    from waywiser.run.hosts import Host

_ROUNDS, _QUICK_ROUNDS = 7, 5
_LIBRARIES = ("openmpi", "nccl", "ucx")


def verify(
    library: Annotated[
        str, typer.Option("--with", metavar="openmpi|nccl|ucx", help="The library whose benchmark decides.")
    ],
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
    from waywiser.apply.job_libraries import find_job_libraries
    from waywiser.monitor.counters import fresh, read_counters
    from waywiser.prove.carried import CountedBenchmark
    from waywiser.prove.tried import tried

    if library not in _LIBRARIES or baseline not in ("default", "environment"):
        raise InputError(
            f"write --with {', '.join(_LIBRARIES[:-1])} or {_LIBRARIES[-1]}, --baseline default or environment"
        )
    nodes = _nodes(hosts, library, ranks)
    jobs = find_job_libraries(mpirun)
    kept = _settings(output, bool(try_))
    timed, what, files = _benchmark(library, output, ranks, quick, jobs, nodes)
    benchmark = CountedBenchmark(timed, lambda: read_counters(fresh()))
    _check_same(kept, library, files.get(library, ""))
    settings = tried(_timed_with(kept, jobs, files, library), library, try_ or [], jobs)
    count = rounds or (_QUICK_ROUNDS if quick else _ROUNDS)
    say("timed: " + ", ".join(f"{target} {settings.versions[target]}" for target in files))
    title = f"{settings.machine}, {2 if library == 'ucx' else ranks} ranks, {what}"
    if baseline == "environment":
        proof = _against_environment(output, benchmark, count)
        _show(settings, what, [proof], benchmark, title, as_json)
        return
    other = {target: why for target, file in files.items() if (why := _other_library(kept, target, file))}
    result, proofs = _proved(settings, library, benchmark, count, other, bool(nodes))
    _keep(output, result, library, proofs, benchmark, [one.name for one in nodes])
    _show(result, what, proofs, benchmark, title, as_json)
    if not as_json and not proofs:
        typer.echo(f"nothing to prove: --with {library} can time none of the proposed settings; --try adds your own")
    elif not as_json and not any(one.proof for one in result.settings):
        typer.echo("the defaults are best here")


def _nodes(file: Path | None, library: str, ranks: int) -> list[Host]:
    """The nodes of the ranks; none if all ranks run here."""
    from waywiser.run.hosts import place_ranks, read_hosts

    if file is None:
        return []
    if library != "openmpi":
        raise InputError(f"--hosts is for --with openmpi: the benchmark of {library} stays within this node")
    hosts = read_hosts(file)
    if len({one.name for one in hosts}) < 2:
        raise InputError(f"{file}: names one node; without --hosts all ranks are on this one")
    place_ranks(ranks, hosts)
    return hosts


def _benchmark(
    library: str, output: Path, ranks: int, quick: bool, jobs: JobLibraries, nodes: list[Host]
) -> tuple[Benchmark, str, dict[str, str]]:
    """The benchmark, at sizes that the profile lacks; its name, and the files of the libraries that it times."""
    from waywiser.prove import benchmarks, nccl_benchmarks, ucx_benchmark
    from waywiser.run.clean_environment import KEPT, clean_environment

    all_sizes = nccl_benchmarks.SIZES if library == "nccl" else benchmarks.SIZES
    sizes = _sizes(Results(output), all_sizes)[:: 2 if quick else 1]
    environment = clean_environment(os.environ)
    for name in KEPT:
        if name in environment:
            say(f"{name}={environment[name]} stays set for all")
    if library == "nccl":
        benchmark, what, file = nccl_benchmarks.nccl(ranks, sizes, environment)
        return benchmark, what, {"nccl": file} if file else {}
    if library == "ucx":
        benchmark, what = ucx_benchmark.ucx(jobs, len(_core.discover().ids("gpu")), sizes, environment)
        return benchmark, what, {"ucx": jobs.libucp}
    if jobs.mpi is None:
        raise InputError(f"verify --with openmpi {jobs.no_mpi}")
    files = {"openmpi": jobs.mpi.libmpi or jobs.mpi.mpirun} | ({"ucx": jobs.mpi.libucp} if jobs.mpi.libucp else {})
    where = f" on {len(nodes)} nodes" if nodes else ""
    benchmark = benchmarks.openmpi(jobs.mpi, ranks, sizes, environment, hosts=nodes)
    return benchmark, f"openmpi {jobs.mpi.version}{where}", files


def _other_library(settings: Settings, target: str, file: str) -> str:
    """A verdict applies to the library that the names were checked with: the message if `file` is another library."""
    checked = settings.libraries.get(target, "")
    if not file or not checked or checked == file or all(one.target != target for one in settings.settings):
        return ""
    return f"the settings of {target} were checked with {checked}, and this would time {file}"


def _check_same(settings: Settings, target: str, file: str) -> None:
    if why := _other_library(settings, target, file):
        raise InputError(f"{why}: run 'waywiser apply' with the same --mpirun first")


def _timed_with(settings: Settings, jobs: JobLibraries, files: dict[str, str], library: str) -> Settings:
    """The settings; prints the libraries with which they are timed."""
    versions = {**files, **settings.versions}
    if library == "openmpi" and jobs.mpi:
        versions["openmpi"] = jobs.mpi.text
    return replace(settings, versions=versions, libraries={**files, **settings.libraries})


def _settings(output: Path, none_will_do: bool) -> Settings:
    from waywiser.apply.setting import Settings
    from waywiser.apply.store import kept

    topology = _core.discover()
    settings = kept(output, topology.fingerprint)
    if settings is None and not none_will_do:
        raise InputError(f"{output}: no settings for this machine: run 'waywiser tune' and 'waywiser apply' first")
    return settings or Settings(topology.fingerprint, topology.name)


def _sizes(results: Results, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that the profile does not have."""
    profile = results.profile
    used = {point.bytes for one in (profile.series if profile else ()) for point in one.points}
    return tuple(size for size in wanted if size not in used)


def _proved(
    settings: Settings, library: str, benchmark: Benchmark, rounds: int, other: dict[str, str], between_nodes: bool
) -> tuple[Settings, list[Proof]]:
    """Proves the settings: with openmpi first its own, then those of UCX with pml ucx on.

    `other`: libraries whose settings are not tried, with the reason.
    """
    from waywiser.apply.provable import split
    from waywiser.prove.benchmarks import groups_of
    from waywiser.prove.prove import Variant, prove, proved

    result, proofs = settings, []
    base = Variant("default", {})
    gpus = len(_core.discover().ids("gpu"))
    for target in ("openmpi", "ucx") if library == "openmpi" else (library,):
        if target in other:
            say(f"{target} is not tried: {other[target]}")
            continue
        groups, not_tried = split(groups_of(settings.settings, target), library, gpus, between_nodes)
        for name, why in not_tried.items():
            say(f"{name} is not tried: {why}")
        if (library, target) == ("openmpi", "ucx"):
            ucx = {one.name: one.value for one in settings.settings if one.group == "pml ucx"}
            base = Variant("pml ucx" if ucx else "default", ucx)
        if groups:
            proofs.append(prove(groups, benchmark, rounds, base, say))
            result = proved(result, groups, proofs[-1])
    return result, proofs


def _keep(
    output: Path, result: Settings, library: str, proofs: list[Proof], benchmark: CountedBenchmark, nodes: list[str]
) -> None:
    from waywiser.apply.store import keep
    from waywiser.prove.evidence import keep_evidence

    keep(output, result)
    state = {"load": " ".join(f"{one:.2f}" for one in os.getloadavg()), "cpus": str(os.cpu_count())}
    if proofs:
        say(f"evidence kept in {keep_evidence(output, result, library, proofs, benchmark, state, nodes)}")


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


def _against_environment(output: Path, benchmark: Benchmark, rounds: int) -> Proof:
    """Compares the current environment with the one that `waywiser run` makes; drops and keeps nothing."""
    from waywiser.prove.prove import Variant, against
    from waywiser.run.clean_environment import STEERING
    from waywiser.run.start_rank import setup_here

    now = {name: value for name, value in os.environ.items() if name.startswith(STEERING)}
    say("set now: " + (" ".join(f"{name}={value}" for name, value in now.items()) or "nothing"))
    repaired = setup_here(output, 0, 1, os.environ).environment(os.environ)
    better = Variant("waywiser run", {n: value for n, value in repaired.items() if n.startswith(STEERING)})
    return against(Variant("as set now", now), better, benchmark, rounds, say)
