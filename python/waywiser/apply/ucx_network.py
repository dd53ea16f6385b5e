"""Settings of UCX for the path between two machines, from the measurements of two ranks of `tune`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from waywiser.apply.facts import Machine
from waywiser.apply.node_switches import SIZES, TITLES, NodePaths, between_nodes, limit_for, wins
from waywiser.apply.setting import LeftOut, Setting
from waywiser.look.ucx import rate as rate_in
from waywiser.look.ucx import rate_text
from waywiser.other_nodes import device_of, is_elsewhere
from waywiser.profile import Point, Series
from waywiser.units import format_bytes, format_rate, format_seconds, parse_bytes

_LARGE = 1 << 20
_TOLERANCE = 1.25
_FRAGMENT = "512K"  # of host memory, by default
Curve = Mapping[int, tuple[Series, Point]]


def proposed(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """All settings that may be useful; none if no other machine was measured."""
    paths = between_nodes(machine.profile).deciding
    if paths.single(machine.purpose):
        yield from _by_size(machine, known, paths)
        yield from _gdrcopy(machine, known, paths)
    else:
        yield from _gpu_direct(machine)
        yield from _distance(machine, known)
    yield from _fragments(machine, known)


def _by_size(machine: Machine, known: Mapping[str, str], paths: NodePaths) -> Iterator[Setting | LeftOut]:
    """GPUDirect RDMA: by size if UCX decides by size, else one switch for all sizes."""
    name = "UCX_IB_GPU_DIRECT_RDMA"
    single = paths.single(machine.purpose)
    direct, staged = wins(paths, 0, "on"), wins(paths, 0, "off")
    if single is None:
        return
    if direct and staged:
        found = _with_distance(machine, known, paths) or _with_limit(machine, known, paths)
        if found:
            yield found
            return
    if staged and single.switches[0] == "off":
        yield Setting("ucx", name, "n", "try", single.text, name, _measured(machine))
    else:
        why = f"the default if nvidia_peermem or dma-buf is available; {single.text}"
        yield LeftOut("ucx", name, known.get(name, "try"), why)


def _by_size_text(paths: NodePaths) -> str:
    """The size from which on staging is faster, by operation."""
    told = []
    for operation in paths.operations:
        sizes = [first for path in paths.paths for first, _, one in path.by_size(operation) if one[0] == "off"]
        told += [f"{format_bytes(min(sizes))} ({TITLES[operation]})"] if sizes else []
    return f"GPUDirect RDMA is faster for small messages, staging from {', '.join(told)} on"


def _with_distance(machine: Machine, known: Mapping[str, str], paths: NodePaths) -> Setting | None:
    """UCX estimates the rate from the distance of GPU and NIC; with the real rate it switches at the right size."""
    name, default = "UCX_DISTANCE_BW", known.get("UCX_DISTANCE_BW", "")
    words = dict(word.split(":", 1) for word in default.split(",") if ":" in word)
    if not known.get("UCX_PROTO_ENABLE", "").startswith("y") or not words:
        return None
    rates: dict[str, float] = {}
    for path in paths.paths:
        relation = _relation_of(machine, path.source, path.rail).lower()
        large = [(path.seconds(case, ("on", "on")), case.bytes) for case in path.cases(("latency",))]
        rate = max((size / seconds for seconds, size in large if seconds and size >= _LARGE), default=0.0)
        if relation in words and rate:
            rates[relation] = max(rate, rates.get(relation, 0.0))
    if not rates:
        return None
    values = {**words, **{key: rate_text(rate) for key, rate in rates.items()}}
    value = ",".join(f"{key}:{text}" for key, text in values.items())
    told = ", ".join(f"{format_rate(rate)} ({key})" for key, rate in rates.items())
    why = f"{_by_size_text(paths)}; with the rate from GPU to NIC, {told}, UCX switches by itself"
    return Setting("ucx", name, value, default, why, name, _measured(machine))


def _with_limit(machine: Machine, known: Mapping[str, str], paths: NodePaths) -> Setting | None:
    """The older protocols have a size limit for messages that the NIC reads from GPU memory."""
    name = "UCX_RNDV_MEMTYPE_DIRECT_SIZE"
    if name not in known or known.get("UCX_PROTO_ENABLE", "n").startswith("y"):
        return None
    limit = limit_for(paths, machine.purpose)
    loss = f"at worst {limit.worst_loss:.2f} times the time of the fastest ({limit.worst.text})"
    why = f"{_by_size_text(paths)}; for {machine.purpose}: {loss}"
    return Setting("ucx", name, str(limit.bytes), known[name], why, name, _measured(machine))


def _gdrcopy(machine: Machine, known: Mapping[str, str], paths: NodePaths) -> Iterator[Setting | LeftOut]:
    """GDRCopy, a transport of UCX that is on if the module gdrdrv is loaded."""
    single, name = paths.single(machine.purpose), "UCX_TLS"
    if single and single.switches[1] == "off" and wins(paths, 1, "off"):
        yield Setting("ucx", name, "^gdr_copy", known.get(name, "all"), single.text, name, _measured(machine))
        return
    helped = max((case.bytes for case in wins(paths, 1, "on")), default=0)
    told = f"it helps up to {_ends(helped)}" if helped else "it makes no difference here"
    yield LeftOut("ucx", name, known.get(name, "all"), f"GDRCopy is on by default if gdrdrv is loaded; {told}")


def _ends(size: int) -> str:
    """The last measured size with a gain; the gain ends somewhere below the next one."""
    larger = [one for one in SIZES if one > size]
    return format_bytes(size) + (f", no longer at {format_bytes(larger[0])}" if larger else "")


def _series(machine: Machine, mechanism: str, **parameters: str) -> list[Series]:
    """The latency curves from GPU memory to GPU memory of the other machine."""
    series = machine.profile.series if machine.profile else ()
    return [
        one
        for one in series
        if one.operation == "latency"
        and one.path.mechanism == mechanism
        and one.path.source.startswith("gpu")
        and is_elsewhere(one.path.destination)
        and device_of(one.path.destination).startswith("gpu")
        and parameters.items() <= dict(one.path.parameters).items()
    ]


def _best(series: Sequence[Series]) -> Curve:
    """The fastest of the series at each large size."""
    found: dict[int, tuple[Series, Point]] = {}
    for one in series:
        for point in one.points:
            if point.bytes >= _LARGE and (point.bytes not in found or point.seconds < found[point.bytes][1].seconds):
                found[point.bytes] = one, point
    return found


def _always_faster(fast: Curve, slow: Curve) -> int:
    """The largest common size if `fast` wins beyond the intervals at all of three or more common sizes; else 0."""
    common = fast.keys() & slow.keys()
    wins = len(common) >= 3 and all(fast[size][1].high < slow[size][1].low for size in common)
    return max(common) if wins else 0


def _compared(size: int, fast: Curve, slow: Curve) -> str:
    told = (f"{one.path.label} {format_seconds(point.seconds)}" for one, point in (fast[size], slow[size]))
    return f"{format_bytes(size)} to the other machine: {', '.join(told)}"


def _measured(machine: Machine) -> bool:
    return not machine.label


def _gpu_direct(machine: Machine) -> Iterator[Setting]:
    """Switches GPUDirect RDMA off if staging in host memory beats it at every large size."""
    direct, staged = _best(_series(machine, "ucx", gdr="on")), _best(_series(machine, "ucx", gdr="off"))
    if size := _always_faster(staged, direct):
        name = "UCX_IB_GPU_DIRECT_RDMA"
        yield Setting("ucx", name, "n", "try", _compared(size, staged, direct), name, _measured(machine))


def _distance(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting]:
    """The rates between a GPU and a NIC far from it, by which UCX decides between GPUDirect RDMA and staging."""
    name = "UCX_DISTANCE_BW"
    default = known.get(name, "")
    words = dict(word.split(":", 1) for word in default.split(",") if ":" in word)
    found: dict[str, tuple[float, str]] = {}
    for one in _series(machine, "ucx", gdr="on"):
        relation = _relation(machine, one).lower()
        rate = max((point.rate for point in one.points if point.bytes >= _LARGE), default=0.0)
        assumed = rate_in(words.get(relation, "auto"))
        off = rate and assumed and not 1 / _TOLERANCE <= assumed / rate <= _TOLERANCE
        if assumed and off and rate > found.get(relation, (0.0, ""))[0]:
            found[relation] = rate, f"{one.path.label}: {format_rate(rate)}, UCX assumes {format_rate(assumed)}"
    if found:
        values = {**words, **{key: rate_text(rate) for key, (rate, _) in found.items()}}
        value = ",".join(f"{key}:{text}" for key, text in values.items())
        why = "; ".join(text for _, text in found.values())
        yield Setting("ucx", name, value, default, why, name, _measured(machine))


def _relation(machine: Machine, one: Series) -> str:
    """The relation of GPU and NIC on a path: PHB, SYS, ...; "" if unknown, or if there are several."""
    return _relation_of(machine, one.path.source, dict(one.path.parameters).get("device", ""))


def _relation_of(machine: Machine, gpu: str, rail: str) -> str:
    device = re.split(r"[/:]", rail)[0]
    topology = machine.topology
    nic = next((nic for nic in topology.ids("nic") if topology.device(nic).name == device), "")
    return topology.relation(gpu, nic) if nic and gpu in topology.ids("gpu") else ""


def _fragments(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting]:
    """The fragment size of messages staged through host memory, if another one is faster."""
    name = "UCX_RNDV_FRAG_SIZE"
    default = known.get(name, "")
    by_chunk: dict[str, list[Series]] = {}
    for one in _series(machine, "ucx_staged", variant="pipelined"):
        by_chunk.setdefault(dict(one.path.parameters).get("chunk", ""), []).append(one)
    usual = _best(by_chunk.pop(_FRAGMENT, []))
    better = {chunk: size for chunk, some in by_chunk.items() if chunk and (size := _always_faster(_best(some), usual))}
    if not better or f"host:{_FRAGMENT}" not in default:
        return
    chunk = min(better, key=lambda one: _best(by_chunk[one])[better[one]][1].seconds)
    value = default.replace(f"host:{_FRAGMENT}", f"host:{parse_bytes(chunk)}")
    why = _compared(better[chunk], _best(by_chunk[chunk]), usual)
    yield Setting("ucx", name, value, default, why, name, _measured(machine))
