"""`waywiser bench`: times the group's operations, beside other libraries in the same run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from waywiser.cli.options import AsJson, ResultsFolder
from waywiser.errors import InputError
from waywiser.lists import among, sizes_in, words_in
from waywiser.results import DEFAULT

if TYPE_CHECKING:
    pass

_MEMORY = ("host", "gpu", "host>gpu", "gpu>host", "gpu>exposed", "exposed")
_PEERS = ("openmpi", "nccl", "ucx", "torch", "torch-symmetric", "nvshmem")


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
    source: Annotated[
        str, typer.Option("--from", metavar="host|kernel", help="Who makes the calls: kernels have put, get, signal.")
    ] = "host",
    sizes: Annotated[str, typer.Option(metavar="LIST", help="8,1K,64M; 8..64M: powers of two between.")] = "",
    against: Annotated[str, typer.Option(metavar="LIST", help=f"Some of {','.join(_PEERS)}.")] = "",
    budget: Annotated[float | None, typer.Option(min=0.1, max=86400.0, metavar="SECONDS", help="Total time.")] = None,
    backend: Annotated[str, typer.Option(metavar="auto|cuda|host|virtual_gpu", help="The GPUs to use.")] = "auto",
    machine: Annotated[str | None, typer.Option(metavar="NAME|FILE", help="Simulate this machine instead.")] = None,
    full: Annotated[bool, typer.Option("--full", "-f", help="Minimum, mean and maximum over the ranks.")] = False,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: a line for each library.")] = False,
    bind: Annotated[str, typer.Option(metavar="default|none", help="Binding of the started ranks.")] = "default",
    blocks: Annotated[str, typer.Option(metavar="LIST", help="For coalescing: how many blocks, such as 4,16,80.")] = "",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="For coalescing, merge, offload: draw into a .png or .svg.")
    ] = None,
    remote: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="For offload: this server. Default: one on this machine.")
    ] = "",
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="For offload: the server's key.")] = None,
    times: Annotated[str, typer.Option(metavar="LIST", help="For offload: how often to add, such as 1,10,100.")] = "",
    road: Annotated[
        str, typer.Option(metavar="LIST", help="For offload: some of direct,pageable,pinned,pipelined.")
    ] = "",
    network: Annotated[
        str, typer.Option(metavar="LIST", help="For offload: over each of these networks: all, lo, eth0, mlx5_0:1.")
    ] = "",
    data_plain: Annotated[
        bool, typer.Option("--data-plain", help="For offload: also without encryption of arrays.")
    ] = False,
    with_compute: Annotated[
        bool, typer.Option("--with-compute", help="Collectives and a computation, each alone and both at once.")
    ] = False,
    output: ResultsFolder = DEFAULT,
) -> None:
    """Time the group's operations and check the data of every sample. Starts its own ranks, or runs as a rank of a job.

    Compared libraries take turns within the same run. Columns are those of the OSU Micro-Benchmarks.
    """
    from waywiser.bench.backends import BACKENDS
    from waywiser.bench.conduct import FROM_KERNEL as KERNEL
    from waywiser.bench.conduct import MODES
    from waywiser.bench.operations import DEFAULT as USUAL
    from waywiser.bench.operations import FROM_KERNEL, operations_named
    from waywiser.bench.outcome import CSV, JSON, TABLE
    from waywiser.bench.run import Wanted
    from waywiser.bench.session import as_rank, in_job, simulated, with_own_ranks
    from waywiser.cli.bench_alone import Form, coalescing, merge, offload, only_alone, sharing, simulated_offload
    from waywiser.cli.bench_with_compute import with_compute as beside_computing

    if with_compute:
        name = "--with-compute"
        only_alone(name, against=against, full=full, mode=mode != "blocking", machine=machine, blocks=blocks)
        only_alone(name, remote=remote, key=key, times=times, road=road, data_plain=data_plain)
        only_alone(name, **{"from": source != "host", "bind": bind != "default"})
        return beside_computing(what or [], ranks, memory, sizes, budget, backend, Form(as_json, as_csv, plot))
    for name in ("coalescing", "merge", "offload", "sharing"):
        if what and name in what:
            if len(what) > 1:
                raise InputError(f"{name}: time it alone")
            only_alone(name, against=against, full=full, mode=mode != "blocking")
            form_alone = Form(as_json, as_csv, plot)
            if name == "merge":
                only_alone(name, memory=memory, backend=backend not in ("auto", "host"), blocks=blocks, remote=remote)
                only_alone(name, key=key, times=times, road=road, network=network, data_plain=data_plain)
                return merge(ranks, sizes, budget, machine, form_alone)
            if name == "offload" and machine is not None:
                only_alone(f"{name} --machine", ranks=ranks, memory=memory, blocks=blocks, budget=budget)
                only_alone(f"{name} --machine", remote=remote, key=key, road=road, data_plain=data_plain)
                only_alone(f"{name} --machine", network=network)
                return simulated_offload(sizes, times, machine, form_alone)
            only_alone(name, machine=machine)
            if name == "sharing":
                only_alone(
                    name, memory=memory, sizes=sizes, blocks=blocks, remote=remote, key=key, times=times, road=road
                )
                only_alone(name, network=network, data_plain=data_plain)
                return sharing(ranks, budget, backend, form_alone)
            only_alone(name, ranks=ranks)
            if name == "coalescing":
                only_alone(name, remote=remote, key=key, times=times, road=road, network=network, data_plain=data_plain)
                return coalescing(memory, sizes, blocks, budget, backend, form_alone)
            only_alone(name, memory=memory, blocks=blocks)
            return offload(sizes, times, budget, backend, (remote, key, data_plain), (road, network), form_alone)
    if blocks or plot is not None:
        raise InputError("--blocks and --plot are for `waywiser bench coalescing`, --plot also for `merge`, `offload`")
    if remote or key is not None or times or road or network or data_plain:
        raise InputError(
            "--remote, --key, --times, --road, --network and --data-plain are for `waywiser bench offload`"
        )
    by_kernel = _by_kernel(source, mode, machine)
    operations = operations_named(what or list(FROM_KERNEL if by_kernel else USUAL))
    for one in operations:
        if by_kernel and one.name not in FROM_KERNEL:
            raise InputError(f"--from kernel: {one.name} is not one of {', '.join(FROM_KERNEL)}")
        if one.from_kernel and not by_kernel:
            raise InputError(f"{one.name}: only kernels make it: write --from kernel")
    places = _places(memory or ("host" if machine is None and not by_kernel else "gpu"))
    modes = [KERNEL] if by_kernel else among(words_in(mode), MODES, "--mode")
    if not by_kernel and modes != ["blocking"] and (machine is not None or all("host" in place for place in places)):
        raise InputError(
            f"--mode {mode}: only calls on GPU memory can be enqueued: write --memory gpu, without --machine"
        )
    if as_json and as_csv:
        raise InputError("--json and --csv: write one of them")
    form = JSON if as_json else CSV if as_csv else TABLE
    if backend not in BACKENDS or bind not in ("default", "none"):
        raise InputError(f"write --backend {'|'.join(BACKENDS)}, --bind default or none")
    peers = among(words_in(against), ("nvshmem",) if by_kernel else _PEERS, "--against") if against else []
    told = sizes_in(sizes) if sizes else []
    usual = 2.0 * len(operations) * len(places) * len(modes) + 8.0
    wanted = Wanted(operations, places, told, ranks or 2, budget or usual, modes)
    if machine is not None:
        simulated(wanted, machine, peers, full, form)
    elif ranks is None and in_job():
        as_rank(wanted, backend, peers, full, form)
    else:
        with_own_ranks(wanted, backend, bind == "default", output, peers, full, form)


def _by_kernel(source: str, mode: str, machine: str | None) -> bool:
    if source not in ("host", "kernel"):
        raise InputError(f"--from {source!r}: write host or kernel")
    if source == "kernel" and (mode != "blocking" or machine is not None):
        raise InputError("--from kernel: a kernel makes the calls: leave out --mode and --machine")
    return source == "kernel"


def _places(text: str) -> list[str]:
    """Accepts "host-to-gpu" and the form of the tables, "host>gpu", which a shell takes for a redirection."""
    known = tuple(place.replace(">", "-to-") for place in _MEMORY)
    words = [word.replace(">", "-to-") for word in words_in(text)]
    return [place.replace("-to-", ">") for place in among(words, known, "--memory")]
