"""`waywiser bench`: times the group's operations, beside other libraries in the same run."""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import AsJson, ResultsFolder
from waywiser.cli.simulate import sizes_in
from waywiser.errors import InputError
from waywiser.results import DEFAULT

if TYPE_CHECKING:
    from waywiser.bench.run import Wanted

_MEMORY = ("host", "gpu", "host>gpu", "gpu>host", "gpu>exposed", "exposed")
_PEERS = ("openmpi", "nccl", "ucx", "torch", "torch-symmetric", "nvshmem")
_BACKENDS = ("auto", "cuda", "host", "virtual_gpu")


def bench(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WHAT]...", help="latency, bandwidth, all_reduce, ...; messages, collectives, all."),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option("--ranks", "-n", metavar="N", min=2, max=4096, help="Number of ranks to start here.")
    ] = None,
    memory: Annotated[
        str, typer.Option(metavar="LIST", help="One or more of host,gpu,host-to-gpu,gpu-to-host,gpu-to-exposed.")
    ] = "",
    mode: Annotated[
        str, typer.Option(metavar="LIST", help="Calls on GPU memory: one or more of blocking,stream,graph.")
    ] = "blocking",
    sizes: Annotated[str, typer.Option(metavar="LIST", help="8,1K,64M; 8..64M: powers of two between.")] = "",
    against: Annotated[str, typer.Option(metavar="LIST", help=f"Some of {','.join(_PEERS)}.")] = "",
    budget: Annotated[float | None, typer.Option(min=0.1, max=86400.0, metavar="SECONDS", help="Total time.")] = None,
    backend: Annotated[str, typer.Option(metavar="auto|cuda|host|virtual_gpu", help="The GPUs to use.")] = "auto",
    machine: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="Simulate this machine instead.")] = None,
    full: Annotated[bool, typer.Option("--full", "-f", help="Minimum, mean and maximum over the ranks.")] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: a line for each library.")] = False,
    bind: Annotated[str, typer.Option(metavar="default|none", help="Binding of the started ranks.")] = "default",
    blocks: Annotated[str, typer.Option(metavar="LIST", help="Of coalescing: how many blocks, such as 4,16,80.")] = "",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Of coalescing: draw heat maps into a .png or .svg.")
    ] = None,
    output: ResultsFolder = DEFAULT,
) -> None:
    """Time the group's operations and check the data of every sample. Starts its own ranks, or runs as a rank of a job.

    Compared libraries take turns within the same run. Columns are those of the OSU Micro-Benchmarks.
    """
    from waywiser.bench.conduct import MODES
    from waywiser.bench.operations import DEFAULT as USUAL
    from waywiser.bench.operations import operations_named
    from waywiser.bench.outcome import CSV, JSON, TABLE
    from waywiser.bench.run import Wanted

    if what and "coalescing" in what:
        if len(what) > 1:
            raise InputError("coalescing: time it alone")
        _only_for_coalescing(ranks=ranks, machine=machine, against=against, full=full, mode=mode != "blocking")
        return _coalescing(memory, sizes, blocks, budget, backend, plot, as_json, as_csv)
    if blocks or plot is not None:
        raise InputError("--blocks and --plot are for `waywiser bench coalescing`")
    operations = operations_named(what or list(USUAL))
    places = _places(memory or ("host" if machine is None else "gpu"))
    modes = _among(_words(mode), MODES, "--mode")
    if modes != ["blocking"] and (machine is not None or all("host" in place for place in places)):
        raise InputError(
            f"--mode {mode}: only calls on GPU memory can be enqueued: write --memory gpu, without --machine"
        )
    if as_json and as_csv:
        raise InputError("--json and --csv: write one of them")
    form = JSON if as_json else CSV if as_csv else TABLE
    if backend not in _BACKENDS or bind not in ("default", "none"):
        raise InputError(f"write --backend {'|'.join(_BACKENDS)}, --bind default or none")
    peers = _among(_words(against), _PEERS, "--against") if against else []
    told = sizes_in(sizes) if sizes else []
    usual = 2.0 * len(operations) * len(places) * len(modes) + 8.0
    wanted = Wanted(operations, places, told, ranks or 2, budget or usual, modes)
    if machine is not None:
        _simulated(wanted, machine, peers, full, form)
    elif ranks is None and _in_job():
        _as_rank(wanted, backend, peers, full, form)
    else:
        _with_own_ranks(wanted, backend, bind == "default", output, peers, full, form)


def _only_for_coalescing(**others: object) -> None:
    for name, value in others.items():
        if value:
            raise InputError(f"--{name} is not for coalescing, which copies within one process")


def _coalescing(
    memory: str,
    sizes: str,
    blocks: str,
    budget: float | None,
    backend: str,
    plot: Path | None,
    in_json: bool,
    in_csv: bool,
) -> None:
    from waywiser.bench import coalescing
    from waywiser.plot_packages import need_plots
    from waywiser.profile import warning
    from waywiser.progress import bar, say

    if in_json and in_csv:
        raise InputError("--json and --csv: write one of them")
    if backend not in _BACKENDS:
        raise InputError(f"write --backend {'|'.join(_BACKENDS)}")
    if plot is not None:
        need_plots(str(plot))
        from waywiser.bench.heat_map import check_name

        check_name(plot)
    known = tuple(pair.replace(">", "-to-") for pair in coalescing.MEMORY)
    words = [word.replace(">", "-to-") for word in _words(memory)]
    pairs = [pair.replace("-to-", ">") for pair in _among(words, known, "--memory")] if memory else []
    kind = _coalescing_backend(backend, pairs)
    counts = sorted({_count(word) for word in _words(blocks)}) if blocks else list(coalescing.COUNTS)
    wanted = coalescing.Wanted(
        kind, pairs, sizes_in(sizes) if sizes else list(coalescing.SIZES), counts, budget or 60.0
    )
    left_out: dict[str, str] = {}

    def missing(pair: str, why: str) -> None:
        say(f"{pair}: {why}")
        left_out[pair] = why

    with bar("coalescing") as show:
        found = list(coalescing.points(wanted, missing, show))
    told = warning("virtual_gpu" if kind == "virtual_gpu" else "", False)
    label = f", {told.upper()}" if told else ""
    if in_json:
        typer.echo(coalescing.as_json(found, kind, told, left_out))
    elif in_csv:
        typer.echo(coalescing.as_csv(found, told), nl=False)
    else:
        for line in coalescing.tables(found, label):
            typer.echo(line)
    if plot is not None and found:
        from waywiser.bench.heat_map import plot_coalescing

        plot_coalescing(found, label, plot)


def _count(word: str) -> int:
    if not word.isdecimal() or not 1 <= int(word) <= 4096:
        raise InputError(f"--blocks {word!r}: write numbers from 1 to 4096, such as 4,16,80")
    return int(word)


def _coalescing_backend(asked: str, pairs: Sequence[str]) -> str:
    """Without --memory and without a GPU: the host."""
    from waywiser import _core

    if not pairs and asked in ("auto", "host"):
        return "host" if asked == "host" or _core.why_no_cuda() else "cuda"
    return _backend(asked, ["host" if pair == "host>host" else pair for pair in pairs] or ["gpu"])


def _places(text: str) -> list[str]:
    """Accepts "host-to-gpu" and the form of the tables, "host>gpu", which a shell takes for a redirection."""
    known = tuple(place.replace(">", "-to-") for place in _MEMORY)
    words = [word.replace(">", "-to-") for word in _words(text)]
    return [place.replace("-to-", ">") for place in _among(words, known, "--memory")]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if word]


def _among(words: list[str], known: tuple[str, ...], option: str) -> list[str]:
    for word in words:
        if word not in known:
            raise InputError(f"{option} {word!r}: write some of {','.join(known)}")
    if not words:
        raise InputError(f"{option}: write some of {','.join(known)}")
    return list(dict.fromkeys(words))


def _in_job() -> bool:
    """Whether a launcher has started this process as one of several ranks."""
    from waywiser import _core

    return int(_core.launched_ranks()) > 1


def _backend(asked: str, memory: Sequence[str]) -> str:
    """The back end that serves this memory. Raises InputError."""
    from waywiser import _core

    if all(place == "host" for place in memory):
        return "host"
    if asked == "auto":
        why = _core.why_no_cuda()
        if why:
            raise InputError(f"--memory {','.join(memory)}: {why}; --backend virtual_gpu takes virtual GPUs")
        return "cuda"
    if asked == "host":
        raise InputError("--backend host has no GPU memory")
    return asked


def _with_own_ranks(
    wanted: Wanted, backend: str, bind: bool, output: Path, peers: list[str], full: bool, form: str
) -> None:
    from waywiser.bench.outcome import Outcome
    from waywiser.bench.run import timed
    from waywiser.bench.startup import time_startup
    from waywiser.bench.teams import Setup, our_team, peer_teams
    from waywiser.progress import bar

    kind = _backend(backend, wanted.memory)
    outcome = Outcome(kind)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # prints the results so far
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waywiser-bench-")))
        setup = Setup(wanted.ranks, kind, wanted.ranks if kind == "virtual_gpu" else 0, output, folder, bind)
        try:
            if wanted.cases():
                ours = our_team(setup)
                stack.callback(ours.close)
                teams = peer_teams(setup, peers, outcome.missing)
                for team in teams.values():
                    stack.callback(team.close)
                outcome.versions = {name: team.version for name, team in teams.items()}
                with bar("bench") as show:
                    outcome.rows.extend(timed(wanted, ours, teams, show, outcome.missing))
            if any(one.shape == "startup" for one in wanted.operations):
                share = wanted.budget / len(wanted.operations)
                outcome.rows.append(time_startup(setup, peers, share, outcome.missing))
        finally:
            outcome.show(full, form)  # before the teams are ended, which takes seconds


def _as_rank(wanted: Wanted, backend: str, peers: list[str], full: bool, form: str) -> None:
    """This process is one rank of a job."""
    from waywiser import _core
    from waywiser.bench.job import JobTeam, follow
    from waywiser.bench.outcome import Outcome
    from waywiser.bench.run import timed
    from waywiser.progress import bar

    if peers:
        raise InputError("--against starts the ranks of all libraries itself: write -n N, without a launcher")
    if any(one.shape == "startup" for one in wanted.operations):
        raise InputError("startup times ranks that bench starts itself: write -n N, without a launcher")
    kind = _backend(backend, wanted.memory)
    core = _core.join_bench(kind, _core.launched_ranks() if kind == "virtual_gpu" else 0)
    if core.rank != 0:
        return follow(core)
    outcome, team = Outcome(kind), JobTeam(core)
    here = replace(wanted, ranks=core.size)
    with ExitStack() as stack:
        stack.callback(outcome.show, full, form)
        with bar("bench") as show:
            outcome.rows.extend(timed(here, team, {}, show, outcome.missing))
        team.close()


def _simulated(wanted: Wanted, machine: str, peers: list[str], full: bool, form: str) -> None:
    from waywiser.bench.outcome import Outcome
    from waywiser.bench.simulated import simulated_rows
    from waywiser.progress import bar

    if peers:
        raise InputError("--against times libraries on this machine: leave out --machine")
    outcome = Outcome("simulated")
    with bar("bench, simulated") as show:
        outcome.rows.extend(simulated_rows(wanted, machine, outcome.missing, show))
    outcome.show(full, form)
