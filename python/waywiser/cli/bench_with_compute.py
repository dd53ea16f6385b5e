"""`waywiser bench --with-compute`: its options, and how it is printed."""

from __future__ import annotations

from waywiser.cli.bench_alone import Form, print_found
from waywiser.errors import InputError
from waywiser.lists import sizes_in


def with_compute(
    what: list[str], ranks: int | None, memory: str, sizes: str, budget: float | None, backend: str, form: Form
) -> None:
    """Collectives and a computation, apart and at once. Raises InputError, TransferError."""
    from waywiser import _core
    from waywiser.bench import with_compute as bench
    from waywiser.look.job import started
    from waywiser.profile import warning
    from waywiser.progress import bar

    form.check()
    if form.plot is not None:
        raise InputError("--with-compute: --plot is for coalescing, merge and offload")
    if memory not in ("", "host", "gpu"):
        raise InputError("--with-compute: write --memory host or gpu")
    if backend not in ("auto", "cuda", "host", "virtual_gpu"):
        raise InputError("--with-compute: write --backend auto|cuda|host|virtual_gpu")
    if started().size > 1:
        raise InputError("--with-compute starts its ranks itself: leave the launcher out")
    why = _core.why_no_cuda()
    if backend == "auto":
        backend = "host" if memory == "host" or (not memory and why) else "cuda"
    if backend == "cuda" and why:
        raise InputError(f"--with-compute: {why}; --backend virtual_gpu takes virtual GPUs, whose times mean nothing")
    if (backend == "host") != (memory == "host") and memory:
        raise InputError(f"--with-compute: --memory {memory} is not of --backend {backend}")
    operations, lengths = bench.operations_among(what), sizes_in(sizes) if sizes else list(bench.SIZES[backend])
    usual = 2.0 * len(operations) * len(lengths) * (1 if backend == "host" else len(bench.BLOCKS))
    with bar("with compute") as show:
        show(0, 1, budget or usual, f"{ranks or 2} ranks")
        found = bench.rows(bench.Wanted(backend, operations, lengths, ranks or 2, budget or usual))
        show(1, 1, 0.0, "")
    told = warning(backend if backend == "virtual_gpu" else "", False)
    print_found(bench, form, found, backend, told, {})
