"""One run of `waywiser verify`: the settings, a benchmark that can time them, their proof, what is kept of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from waywiser import _core
from waywiser.apply.job_libraries import JobLibraries
from waywiser.apply.provable import split
from waywiser.apply.setting import Settings
from waywiser.apply.store import keep, kept
from waywiser.errors import InputError
from waywiser.progress import say
from waywiser.prove import benchmarks, nccl_benchmarks, ucx_benchmark
from waywiser.prove.benchmarks import Benchmark, groups_of
from waywiser.prove.evidence import keep_evidence
from waywiser.prove.prove import Proof, Variant, against, prove, proved
from waywiser.prove.transport_counters import CountedBenchmark
from waywiser.results import Results
from waywiser.run.clean_environment import KEPT, STEERING, clean_environment
from waywiser.run.hosts import Host, place_ranks, read_hosts
from waywiser.run.start_rank import setup_here


def nodes_in(file: Path | None, library: str, ranks: int) -> list[Host]:
    """The nodes of the ranks; none if all ranks run here."""
    if file is None:
        return []
    if library != "openmpi":
        raise InputError(f"--hosts is for --with openmpi: the benchmark of {library} stays within this node")
    hosts = read_hosts(file)
    if len({one.name for one in hosts}) < 2:
        raise InputError(f"{file}: names one node; without --hosts all ranks are on this one")
    place_ranks(ranks, hosts)
    return hosts


def settings_to_prove(output: Path, none_will_do: bool) -> Settings:
    topology = _core.discover()
    settings = kept(output, topology.fingerprint)
    if settings is None and not none_will_do:
        raise InputError(f"{output}: no settings for this machine: run 'waywiser tune' and 'waywiser apply' first")
    return settings or Settings(topology.fingerprint, topology.name)


def _untuned_sizes(results: Results, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that the profile does not have."""
    profile = results.profile
    used = {point.bytes for one in (profile.series if profile else ()) for point in one.points}
    return tuple(size for size in wanted if size not in used)


def benchmark_of(
    library: str, output: Path, ranks: int, quick: bool, jobs: JobLibraries, nodes: list[Host], tuner: bool = False
) -> tuple[Benchmark, str, dict[str, str]]:
    """The benchmark, at sizes that the profile lacks; its name, and the files of the libraries that it times. `tuner`:
    with NCCL, also all collectives that a tuner decides."""
    all_sizes = nccl_benchmarks.SIZES if library == "nccl" else benchmarks.SIZES
    sizes = _untuned_sizes(Results(output), all_sizes)[:: 2 if quick else 1]
    environment = clean_environment(os.environ)
    for name in KEPT:
        if name in environment:
            say(f"{name}={environment[name]} stays set for all")
    if library == "nccl":
        tests = nccl_benchmarks.TESTS | (nccl_benchmarks.COLLECTIVES if tuner else {})
        benchmark, what, file = nccl_benchmarks.nccl(ranks, sizes, environment, tuple(tests))
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


def why_not_tried(settings: Settings, target: str, file: str) -> str:
    """A verdict applies to the library that the names were checked with: the message if `file` is another library."""
    checked = settings.libraries.get(target, "")
    if not file or not checked or checked == file or all(one.target != target for one in settings.settings):
        return ""
    return f"the settings of {target} were checked with {checked}, and this would time {file}"


def refuse_another_library(settings: Settings, target: str, file: str) -> None:
    if why := why_not_tried(settings, target, file):
        raise InputError(f"{why}: run 'waywiser apply' with the same --mpirun first")


def timed_with(settings: Settings, jobs: JobLibraries, files: dict[str, str], library: str) -> Settings:
    """The settings; prints the libraries with which they are timed."""
    versions = {**files, **settings.versions}
    if library == "openmpi" and jobs.mpi:
        versions["openmpi"] = jobs.mpi.text
    return replace(settings, versions=versions, libraries={**files, **settings.libraries})


def prove_settings(
    settings: Settings, library: str, benchmark: Benchmark, rounds: int, other: dict[str, str], between_nodes: bool
) -> tuple[Settings, list[Proof]]:
    """Proves the settings: with openmpi first its own, then those of UCX with pml ucx on.

    `other`: libraries whose settings are not tried, with the reason.
    """
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


def against_environment(output: Path, benchmark: Benchmark, rounds: int) -> Proof:
    """Compares the current environment with the one that `waywiser run` makes; drops and keeps nothing."""
    now = {name: value for name, value in os.environ.items() if name.startswith(STEERING)}
    say("set now: " + (" ".join(f"{name}={value}" for name, value in now.items()) or "nothing"))
    repaired = setup_here(output, 0, 1, os.environ).environment(os.environ)
    better = Variant("waywiser run", {n: value for n, value in repaired.items() if n.startswith(STEERING)})
    return against(Variant("as set now", now), better, benchmark, rounds, say)


def keep_proofs(
    output: Path, result: Settings, library: str, proofs: list[Proof], benchmark: CountedBenchmark, nodes: list[str]
) -> None:
    keep(output, result)
    state = {"load": " ".join(f"{one:.2f}" for one in os.getloadavg()), "cpus": str(os.cpu_count())}
    if proofs:
        say(f"evidence kept in {keep_evidence(output, result, library, proofs, benchmark, state, nodes)}")
