"""The benchmarks of `waywiser bench` that run alone and have options of their own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import typer

from waywiser.errors import InputError, TransferError
from waywiser.lists import among, numbers_in, sizes_in, words_in
from waywiser.signals import ENDING, end_at_once, handle


class Form(NamedTuple):
    """How results are shown."""

    json: bool
    csv: bool
    plot: Path | None

    def check(self) -> None:
        """Raises InputError, and UnavailableError without the packages that draw."""
        from waywiser.bench.heat_map import check_name
        from waywiser.plot_packages import need_plots

        if self.json and self.csv:
            raise InputError("--json and --csv: write one of them")
        if self.plot is not None:
            need_plots(str(self.plot))
            check_name(self.plot)


def only_alone(name: str, **others: object) -> None:
    """Raises InputError for options that another benchmark has."""
    for option, value in others.items():
        if value:
            raise InputError(f"--{option.replace('_', '-')} is not for {name}, which {_WHY[name]}")


_WHY = {
    "coalescing": "copies within one process",
    "merge": "joins tables in host memory",
    "offload": "times one client of a server",
    "offload --machine": "has all roads between two simulated nodes",
    "sharing": "starts 1 to 8 ranks on one GPU itself",
    "--with-compute": "starts its ranks itself, each with a computation",
}


def _label(told: str) -> str:
    return f", {told.upper()}" if told else ""


def print_found(bench: Any, form: Form, found: list[Any], kind: str, told: str, left_out: dict[str, str]) -> None:
    """What a module of waywiser.bench has found, as the user wants it; `told` labels times of virtual GPUs."""
    if form.json:
        typer.echo(bench.as_json(found, kind, told, left_out))
    elif form.csv:
        typer.echo(bench.as_csv(found, told), nl=False)
    else:
        for line in bench.tables(found, _label(told)):
            typer.echo(line)


def coalescing(memory: str, sizes: str, blocks: str, budget: float | None, backend: str, form: Form) -> None:
    """Blocks apart or gathered."""
    from waywiser.bench import coalescing as bench
    from waywiser.bench.backends import BACKENDS, coalescing_backend
    from waywiser.profile import warning
    from waywiser.progress import bar, say

    form.check()
    if backend not in BACKENDS:
        raise InputError(f"write --backend {'|'.join(BACKENDS)}")
    known = tuple(pair.replace(">", "-to-") for pair in bench.MEMORY)
    words = [word.replace(">", "-to-") for word in words_in(memory)]
    pairs = [pair.replace("-to-", ">") for pair in among(words, known, "--memory")] if memory else []
    kind = coalescing_backend(backend, pairs)
    counts = numbers_in(blocks, "--blocks", 4096, "4,16,80") if blocks else list(bench.COUNTS)
    wanted = bench.Wanted(kind, pairs, sizes_in(sizes) if sizes else list(bench.SIZES), counts, budget or 60.0)
    left_out: dict[str, str] = {}

    def missing(pair: str, why: str) -> None:
        say(f"{pair}: {why}")
        left_out[pair] = why

    with bar("coalescing") as show:
        found = list(bench.points(wanted, missing, show))
    told = warning("virtual_gpu" if kind == "virtual_gpu" else "", False)
    print_found(bench, form, found, kind, told, left_out)
    if form.plot is not None and found:
        from waywiser.bench.heat_map import plot_coalescing

        plot_coalescing(found, _label(told), form.plot)


def offload(
    sizes: str,
    times: str,
    budget: float | None,
    backend: str,
    server: tuple[str, Path | None, bool],
    ways: tuple[str, str],
    form: Form,
) -> None:
    """Two arrays, added on a server's GPU, by each road, and on a local one. `server`: its address, "" for one of this
    machine; the key; whether arrays also go unencrypted. `ways`: the roads and the networks.
    """
    from waywiser.bench import offload as bench
    from waywiser.bench.backends import offload_backend
    from waywiser.bench.offload_networks import networks_here, networks_in
    from waywiser.bench.offload_rows import Rows
    from waywiser.bench.offload_sides import Asked, sides_of
    from waywiser.bench.outcome import CSV, JSON, TABLE
    from waywiser.look.root import Root
    from waywiser.offload.client import DATA_ROADS
    from waywiser.profile import warning
    from waywiser.progress import bar, result_writer, say

    form.check()
    road, network = ways
    kind = offload_backend(backend)
    virtual = kind == "virtual_gpu"
    named = among(words_in(road), DATA_ROADS, "--road") if road else DATA_ROADS
    roads = [each for each in DATA_ROADS if each in named]
    networks = networks_in(network, networks_here(Root())) if network else {}
    counts = numbers_in(times, "--times", bench.MOST_TIMES, "1,10,100") if times else list(bench.TIMES)
    usual = bench.SMALL_SIZES if virtual else bench.SIZES
    wanted = sizes_in(sizes) if sizes else list(usual)
    bench.check_sizes(wanted)
    asked = Asked(*server, networks, roads, virtual, 4 * max(wanted) + (64 << 20))
    asked.check()
    found: list[bench.Case] = []
    with sides_of(asked) as of:
        for name, why in of.left_out.items():
            say(f"{name}: {why}")
        told = warning("virtual_gpu" if of.virtual else "", False)
        handle(ENDING, end_at_once)  # as Ctrl-C, which leaves the rows so far
        shown = JSON if form.json else CSV if form.csv else TABLE
        rows = Rows(shown, kind, told, list(of.sides), result_writer(), networks, of.left_out)
        try:
            with bar("offload") as show:
                for case in bench.cases(of.sides, wanted, counts, budget or 60.0, show):
                    rows.add(case)
                    found.append(case)
        finally:
            rows.end()
    if form.plot is not None:
        from waywiser.bench.offload_plot import plot_offload

        plot_offload(found, _label(told), form.plot)


def simulated_offload(sizes: str, times: str, machine: str, form: Form) -> None:
    """The same between two simulated nodes, by each network and part of the published experiment."""
    from waywiser.bench import offload as bench
    from waywiser.bench.offload_rows import Rows
    from waywiser.bench.offload_simulated import simulated_cases
    from waywiser.bench.outcome import CSV, JSON, TABLE
    from waywiser.profile import warning
    from waywiser.progress import result_writer, say
    from waywiser.report.simulated import print_assumed
    from waywiser.topology import load_topology

    form.check()
    counts = numbers_in(times, "--times", bench.MOST_TIMES, "1,10,100") if times else list(bench.TIMES)
    wanted = sizes_in(sizes) if sizes else list(bench.SIZES)
    bench.check_sizes(wanted)
    cases, left_out, assumed = simulated_cases(load_topology(machine), wanted, counts)
    told = warning("", True)
    roads = [case.road for case in cases]
    rows = Rows(JSON if form.json else CSV if form.csv else TABLE, "simulated", told, roads, result_writer())
    for case in cases:
        rows.add(case)
    rows.end()
    for road, why in left_out.items():
        say(f"{road}: {why}")
    if not form.json and not form.csv:
        print_assumed(assumed)
    if form.plot is not None:
        from waywiser.bench.offload_plot import plot_offload

        plot_offload(cases, _label(told), form.plot)


def merge(ranks: int | None, sizes: str, budget: float | None, machine: str | None, form: Form) -> None:
    """Two tables on all ranks, joined, by each way; or the exchange on a simulated machine."""
    from waywiser.bench import merge as bench
    from waywiser.look.job import started
    from waywiser.progress import bar, say
    from waywiser.report.simulated import print_assumed

    form.check()
    if machine is not None and (ranks is not None or budget is not None):
        raise InputError("merge: a simulated machine has a rank on each GPU and no rounds: leave out -n and --budget")
    if started().size > 1:
        raise InputError("merge starts its ranks itself: leave the launcher out")
    usual = bench.SIZES if machine is None else bench.SIMULATED_SIZES
    wanted = bench.Wanted(ranks or 2, sizes_in(sizes) if sizes else usual, budget or 10.0 * len(bench.WAYS))
    wanted.check()
    left_out: dict[str, str] = {}
    found: list[bench.Case] = []

    def missing(what: str, why: str) -> None:
        say(f"{what}: {why}")
        left_out[what] = why

    handle(ENDING, end_at_once)  # as Ctrl-C, which leaves the rows so far
    try:
        with bar("merge") as show:
            made = (
                bench.cases(wanted, missing, show)
                if machine is None
                else (one for size in wanted.sizes for one in bench.simulated(machine, size, missing, show))
            )
            for case in made:
                found.append(case)
    finally:
        told = "" if machine is None else f"simulated {machine}"
        print_found(bench, form, found, "host" if machine is None else "simulated", told, left_out)
        if not (form.json or form.csv):
            print_assumed([one for case in found[:1] for one in case.assumed])
    if not found:
        raise TransferError("merge: nothing could be timed")
    if form.plot is not None:
        from waywiser.bench.merge_plot import plot_merge

        plot_merge(found, _label(told), form.plot)


def sharing(most: int | None, budget: float | None, backend: str, form: Form) -> None:
    """Halo exchanges of 1 to `most` processes on one GPU."""
    from waywiser import _core
    from waywiser.bench import sharing as bench
    from waywiser.look.job import started
    from waywiser.profile import warning
    from waywiser.progress import bar, say

    form.check()
    if form.plot is not None:
        raise InputError("sharing: --plot is for coalescing, merge and offload")
    if backend not in ("auto", "cuda", "virtual_gpu"):
        raise InputError("sharing: write --backend auto|cuda|virtual_gpu")
    if started().size > 1:
        raise InputError("sharing starts its ranks itself: leave the launcher out")
    if most is not None and most > bench.MOST:
        raise InputError(f"sharing: --ranks {most}: at most {bench.MOST} processes share a GPU")
    if backend == "auto" and (why := _core.why_no_cuda()):
        raise InputError(f"sharing: {why}; --backend virtual_gpu takes a virtual GPU, whose times mean nothing")
    virtual = backend == "virtual_gpu"
    wanted = bench.Wanted(virtual, most or bench.MOST, budget or 60.0)
    left_out: dict[str, str] = {}
    found: list[bench.Point] = []

    def missing(what: str, why: str) -> None:
        say(f"{what}: {why}")
        left_out[what] = why

    handle(ENDING, end_at_once)  # as Ctrl-C, which leaves the rows so far
    try:
        # A daemon of MPS ends a little after it has been told to.
        place = tempfile.TemporaryDirectory(prefix="waywiser-bench-", ignore_cleanup_errors=True)
        with place as folder, bar("sharing") as show:
            for point in bench.points(wanted, Path(folder), missing, show):
                found.append(point)
    finally:
        told = warning("virtual_gpu" if virtual else "", False)
        print_found(bench, form, found, "virtual_gpu" if virtual else "cuda", told, left_out)
    if not found:
        raise TransferError("sharing: nothing could be timed")
