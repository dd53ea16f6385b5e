"""Settings of Open MPI: the messaging layer, messages within a node, and rules for collectives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from waywiser.apply.facts import Machine
from waywiser.apply.node_switches import between_nodes, limit_for
from waywiser.apply.setting import LeftOut, Setting
from waywiser.profile import Point
from waywiser.units import format_bytes, format_seconds

_PREFIX = "OMPI_MCA_"
_LARGEST_EAGER = 64 << 10


def proposed(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """All settings that may be useful on this machine."""
    yield from _between_nodes(machine, known)
    yield from _messaging(machine, known)
    yield from _single_copy(machine, known)


def _between_nodes(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """GPU memory goes through UCX with its own settings; older versions have a transport that switches by size."""
    paths = between_nodes(machine.profile).deciding
    if not paths.single(machine.purpose):
        return
    name = f"{_PREFIX}btl_openib_cuda_rdma_limit"
    if name not in known:
        yield LeftOut(
            "openmpi", f"{_PREFIX}pml", "ucx", "GPU memory between nodes goes through UCX: its settings count"
        )
        return
    limit = limit_for(paths, machine.purpose)
    why = f"for {machine.purpose}: at worst {limit.worst_loss:.2f} times the time of the fastest ({limit.worst.text})"
    wanted = {"btl_openib_want_cuda_gdr": "true", "btl_openib_cuda_rdma_limit": str(limit.bytes)}
    for word, value in wanted.items():
        yield Setting("openmpi", _PREFIX + word, value, known.get(_PREFIX + word, ""), why, "openib", not machine.label)


def _messaging(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """pml ucx, if Open MPI has it and does not choose it by itself."""
    if "component pml ucx" not in known:
        yield LeftOut("openmpi", f"{_PREFIX}pml", "ucx", "this Open MPI is built without UCX")
        return
    default = known.get(f"{_PREFIX}pml", "")
    points = machine.curve("posix")
    if not points:
        yield LeftOut("openmpi", f"{_PREFIX}pml", "ucx", "UCX was not measured between two processes here")
        return
    size = 4096 if 4096 in points else max(points)
    measured = f"UCX moves {format_bytes(size)} in {format_seconds(points[size].seconds)} between two processes"
    why = f"{measured}; Open MPI's own choice here is {default!r}" if default else measured
    wanted = {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any"}
    for name, value in wanted.items():
        old = known.get(_PREFIX + name, "")
        if old != value:
            yield Setting("openmpi", _PREFIX + name, value, old, why, "pml ucx")


def _single_copy(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting]:
    """Without pml ucx: copies through shared memory below the size from which the kernel's single copy is faster."""
    shared, cma = machine.curve("posix"), machine.curve("cma")
    sizes = sorted(size for size in shared.keys() & cma.keys() if size >= 4096)
    name = next((one for one in ("btl_vader", "btl_sm") if f"{_PREFIX}{one}_eager_limit" in known), None)
    if len(sizes) < 3 or name is None:
        return
    faster = [size for size in sizes if cma[size].high < shared[size].low]
    below = [size for size in sizes if not faster or size < faster[0]]
    variable = f"{_PREFIX}{name}_single_copy_mechanism"
    if not faster and variable in known:
        why = _compared(sizes[-1], shared, cma)
        yield Setting("openmpi", variable, "none", known[variable], why, "single copy")
    variable = f"{_PREFIX}{name}_eager_limit"
    limit = max((size for size in below if size <= _LARGEST_EAGER), default=0)
    default = known[variable]
    if default.isdecimal() and limit > int(default):
        yield Setting("openmpi", variable, str(limit), default, _compared(limit, shared, cma), "eager limit")


def _compared(size: int, shared: Mapping[int, Point], cma: Mapping[int, Point]) -> str:
    copies, kernel = format_seconds(shared[size].seconds), format_seconds(cma[size].seconds)
    return f"{format_bytes(size)}: two copies {copies}, one copy by the kernel {kernel}"


@dataclass(frozen=True)
class Rule:
    """For one collective and communicator size: use algorithm number `algorithm` from `from_bytes` on."""

    collective: int
    ranks: int
    from_bytes: int
    algorithm: int


# Numbers of Open MPI's coll_tuned: enum COLLTYPE.
COLLECTIVES = {"allgather": 0, "allreduce": 2, "alltoall": 3, "barrier": 6, "bcast": 7, "reduce": 11}


def rules_file(rules: Sequence[Rule]) -> str:
    """The file for coll_tuned_dynamic_rules_filename: per collective, per communicator size, sizes ascending."""
    lines = [f"{len({rule.collective for rule in rules})}  # collectives"]
    for collective in sorted({rule.collective for rule in rules}):
        mine = [rule for rule in rules if rule.collective == collective]
        ranks = sorted({rule.ranks for rule in mine})
        lines += [f"{collective}  # collective", f"{len(ranks)}  # communicator sizes"]
        for count in ranks:
            rows = sorted((rule for rule in mine if rule.ranks == count), key=lambda rule: rule.from_bytes)
            lines += [f"{count}  # ranks", f"{len(rows)}  # message sizes"]
            lines += [f"{row.from_bytes} {row.algorithm} 0 0  # from, algorithm, fan out, segment" for row in rows]
    return "\n".join(lines) + "\n"
