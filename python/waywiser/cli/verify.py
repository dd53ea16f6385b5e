"""`waywiser verify`: the settings against the defaults, by the library's own benchmark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import Output
from waywiser.errors import InputError
from waywiser.results import DEFAULT, Results

if TYPE_CHECKING:
    from waywiser.apply.benchmarks import Benchmark
    from waywiser.apply.prove import Proof
    from waywiser.apply.setting import Settings

_ROUNDS, _QUICK_ROUNDS = 7, 5


def verify(
    library: Annotated[str, typer.Option("--with", metavar="openmpi|nccl", help="Whose benchmark decides.")],
    output: Output = DEFAULT,
    ranks: Annotated[int, typer.Option("--ranks", "-n", min=2, max=4096, help="Ranks, or GPUs with nccl.")] = 2,
    rounds: Annotated[int, typer.Option(min=4, max=101, help="Interleaved rounds of all variants.")] = _ROUNDS,
    baseline: Annotated[
        str, typer.Option(metavar="default|environment", help="Compare with the defaults, or with what is set now.")
    ] = "default",
    quick: Annotated[bool, typer.Option("--quick", help="Half the sizes, fewer rounds.")] = False,
) -> None:
    """Before and after, interleaved, at sizes that were not used for tuning. What does not win is dropped."""
    from waywiser.apply import benchmarks

    if library not in ("openmpi", "nccl") or baseline not in ("default", "environment"):
        raise InputError("write --with openmpi or nccl, --baseline default or environment")
    settings = _settings(output)
    sizes = _sizes(Results(output), benchmarks.SIZES)[:: 2 if quick else 1]
    make = benchmarks.openmpi if library == "openmpi" else benchmarks.nccl
    benchmark = make(ranks, sizes, benchmarks.clean_environment(os.environ))
    count = _QUICK_ROUNDS if quick else rounds
    title = f"{settings.machine}, {ranks} ranks, {library}"
    if baseline == "environment":
        _against_environment(output, benchmark, count, title)
        return
    result, proofs = _proved(settings, library, benchmark, count)
    _keep(output, result, library, proofs)
    _show(result, proofs, title)


def _settings(output: Path) -> Settings:
    from waywiser import _core
    from waywiser.apply.store import kept

    settings = kept(output, _core.discover().fingerprint)
    if settings is None:
        raise InputError(f"{output}: no settings for this machine: run 'waywiser tune' and 'waywiser apply' first")
    return settings


def _sizes(results: Results, wanted: tuple[int, ...]) -> tuple[int, ...]:
    """The sizes that the profile does not have."""
    profile = results.profile
    used = {point.bytes for one in (profile.series if profile else ()) for point in one.points}
    return tuple(size for size in wanted if size not in used)


def _proved(settings: Settings, library: str, benchmark: Benchmark, rounds: int) -> tuple[Settings, list[Proof]]:
    """First the library's own settings, then those of UCX below it, with pml ucx on."""
    from waywiser.apply.benchmarks import groups_of
    from waywiser.apply.prove import Variant, prove, proved
    from waywiser.progress import say

    result, proofs = settings, []
    base = Variant("default", {})
    for target in ("openmpi", "ucx") if library == "openmpi" else ("nccl",):
        groups = groups_of(settings.settings, target)
        if target == "ucx":
            ucx = {one.name: one.value for one in settings.settings if one.group == "pml ucx"}
            base = Variant("pml ucx" if ucx else "default", ucx)
        if groups:
            proofs.append(prove(groups, benchmark, rounds, base, say))
            result = proved(result, groups, proofs[-1])
    return result, proofs


def _keep(output: Path, result: Settings, library: str, proofs: list[Proof]) -> None:
    from waywiser.apply.evidence import keep_evidence
    from waywiser.apply.store import keep
    from waywiser.progress import say

    keep(output, result)
    state = {"load": " ".join(f"{one:.2f}" for one in os.getloadavg()), "cpus": str(os.cpu_count())}
    if proofs:
        say(f"evidence kept in {keep_evidence(output, result, library, proofs, state)}")


def _show(result: Settings, proofs: list[Proof], title: str) -> None:
    from waywiser.apply.proof_table import print_proof

    for proof in proofs:
        print_proof(f"{title}, against {proof.base}", proof)
    if not proofs:
        typer.echo("nothing to prove: no setting was proposed")
    if not any(one.proof for one in result.settings):
        typer.echo("the defaults are best here")


def _against_environment(output: Path, benchmark: Benchmark, rounds: int, title: str) -> None:
    """What is set now against what `waywiser run` makes of it; nothing is dropped or kept."""
    from waywiser.apply.benchmarks import STEERING
    from waywiser.apply.proof_table import print_proof
    from waywiser.apply.prove import Variant, against
    from waywiser.apply.start_rank import setup_here
    from waywiser.progress import say

    now = {name: value for name, value in os.environ.items() if name.startswith(STEERING)}
    told = " ".join(f"{name}={value}" for name, value in now.items()) or "nothing set"
    repaired = setup_here(output, 0, 1, os.environ).environment(os.environ)
    better = Variant("waywiser run", {n: value for n, value in repaired.items() if n.startswith(STEERING)})
    proof = against(Variant("as set now", now), better, benchmark, rounds, say)
    print_proof(f"{title}, against {told}", proof)
