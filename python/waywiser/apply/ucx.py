"""Settings of UCX: constants of its cost model that are far from the measurements; transports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from waywiser.apply import ucx_network, ucx_rails
from waywiser.apply.facts import Evidence, Machine
from waywiser.apply.setting import LeftOut, Setting
from waywiser.look.ucx import rate_text, rates, word_for
from waywiser.units import format_bytes, format_rate, format_seconds

_TOLERANCE = 1.25
# The defaults of UCX 1.22, for other machines.
USUAL = {
    "UCX_CUDA_COPY_BW": "h2d:8300MBps,d2h:11660MBps,d2d:320GBps,default:10000MBps",
    "UCX_CUDA_IPC_BW": "auto",
    "UCX_GDR_COPY_BW": "get_dedicated:250MBps,get_shared:0MBps,put_dedicated:0MBps,put_shared:6911MBps",
    "UCX_POSIX_BW": "15360MBps",
    "UCX_SYSV_BW": "15360MBps",
    "UCX_CMA_BW": "11145MBps",
    "UCX_TCP_MAX_BW": "2200MBps",
    "UCX_MAX_RNDV_RAILS": "2",
    "UCX_TLS": "all",
    "UCX_RNDV_FRAG_SIZE": "host:512K,cuda:4M",
    "UCX_DISTANCE_BW": "phb:auto,node:auto,sys:auto",
    "UCX_PROTO_ENABLE": "y",
    "UCX_IB_GPU_DIRECT_RDMA": "try",
}
# The meaning of UCX_CUDA_IPC_BW=auto by GPU model (UCX checks the compute capability, not the links).
_IPC_BY_MODEL = {
    "P100": 80e9,
    "V100": 250e9,
    "T4": 250e9,
    "A100": 300e9,
    "A10": 300e9,
    "A40": 300e9,
    "L40": 300e9,
    "H100": 400e9,
    "H200": 400e9,
    "B200": 800e9,
}


def proposed(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    """All settings that may be useful on this machine."""
    yield from _constants(machine, known)
    yield from _loopback(machine)
    yield from _without_gpus(machine)
    yield from ucx_rails.proposed(machine)
    yield from _one_list([*_copies_instead_of_cma(machine), *ucx_network.proposed(machine, known)])


def _one_list(proposals: list[Setting | LeftOut]) -> list[Setting | LeftOut]:
    """Merges the exclusions of transports from UCX_TLS into one setting."""
    lists = [one for one in proposals if isinstance(one, Setting) and one.name == "UCX_TLS"]
    if len(lists) < 2:
        return proposals
    value = "^" + ",".join(one.value.removeprefix("^") for one in lists)
    why = "; ".join(one.why for one in lists)
    whole = replace(lists[0], value=value, why=why, measured=all(one.measured for one in lists))
    return [one for one in proposals if one not in lists] + [whole]


def _measured_constants(machine: Machine) -> dict[str, dict[str, Evidence | None]]:
    """Variable -> evidence by word; the word "" for a variable with one rate."""
    found: dict[str, dict[str, Evidence | None]] = {
        "UCX_CUDA_COPY_BW": {
            "h2d": machine.rate("copy_engine", "host", "gpu"),
            "d2h": machine.rate("copy_engine", "gpu", "host"),
        },
        "UCX_CUDA_IPC_BW": {"": machine.peer_rate()},
        "UCX_GDR_COPY_BW": {
            "get": machine.rate("bar_copy", "gpu", "host"),
            "put": machine.rate("bar_copy", "host", "gpu"),
        },
    }
    for name, transports in (("POSIX", "posix"), ("SYSV", "sysv"), ("CMA", "cma")):
        found[f"UCX_{name}_BW"] = {"": machine.rate("ucx", "host", "host", transports=transports)}
    if network := machine.rate("ucx", "host", "other:host", transports="network-tcp"):
        found["UCX_TCP_MAX_BW"] = {"": network}
    return found


def _constants(machine: Machine, known: Mapping[str, str]) -> Iterator[Setting | LeftOut]:
    for name, words in _measured_constants(machine).items():
        default = known.get(name, "")
        texts = _texts(default)
        evidence = {word_for(word, texts): one for word, one in words.items() if one}
        if not evidence:
            continue
        assumed = rates(default) or _by_model(machine, name)
        if set(assumed) == {""} and "" not in evidence:  # an older UCX: one rate for all directions
            evidence = {"": min(evidence.values(), key=lambda one: one.rate)}
        off = {word: one for word, one in evidence.items() if _differs(assumed.get(word), one.rate)}
        if off:
            told = default if rates(default) else ", ".join(f"{format_rate(one)} by model" for one in assumed.values())
            yield _constant(name, told, texts, off)


def _loopback(machine: Machine) -> Iterator[LeftOut]:
    """TCP within one machine uses the loopback device, which says nothing about a network."""
    network = machine.rate("ucx", "host", "other:host", transports="network-tcp")
    loopback = machine.rate("ucx", "host", "host", transports="tcp")
    if loopback and not network:
        why = f"{loopback.text} is of the loopback device, not of a network: run 'waywiser tune' on two machines"
        yield LeftOut("ucx", "UCX_TCP_MAX_BW", "", why)


def _without_gpus(machine: Machine) -> Iterator[LeftOut]:
    if not machine.topology.ids("gpu"):
        for name, what in (("UCX_IB_GPU_DIRECT_RDMA", "GPUDirect RDMA"), ("UCX_GDR_COPY_BW", "GDRCopy")):
            yield LeftOut("ucx", name, "", f"{what} is unavailable: this machine has no GPU")


def _by_model(machine: Machine, name: str) -> dict[str, float]:
    """The meaning of "auto" for CUDA IPC here."""
    gpus = machine.topology.ids("gpu")
    if name != "UCX_CUDA_IPC_BW" or not gpus:
        return {}
    model = machine.topology.device(gpus[0]).name
    found = max((word for word in _IPC_BY_MODEL if word in model), key=len, default="")
    return {"": _IPC_BY_MODEL[found]} if found else {}


def _differs(assumed: float | None, rate: float) -> bool:
    return assumed is None or not 1 / _TOLERANCE <= assumed / rate <= _TOLERANCE


def _texts(default: str) -> dict[str, str]:
    """ "h2d:8300MBps,d2h:11660MBps" -> text by word; a single rate has the word ""."""
    parts = (part.rpartition(":") for part in default.split(",") if part)
    return {word: text for word, _, text in parts}


def _constant(name: str, default: str, texts: Mapping[str, str], off: Mapping[str, Evidence]) -> Setting:
    """UCX refuses a list that lacks one of its words, so the words that are right keep their default."""
    values = {**texts, **{word: rate_text(one.rate) for word, one in off.items()}}
    value = ",".join(f"{word}:{text}" if word else text for word, text in values.items())
    why = "; ".join(one.text for one in off.values())
    measured = all(one.measured for one in off.values())
    return Setting("ucx", name, value, default, f"{why}; UCX assumes {default or 'nothing fixed'}", name, measured)


def _copies_instead_of_cma(machine: Machine) -> Iterator[Setting]:
    """Excludes CMA if two copies through shared memory beat the kernel's single copy at every large size."""
    shared, cma = machine.curve("posix"), machine.curve("cma")
    large = [size for size in shared.keys() & cma.keys() if size >= 64 << 10]
    if len(large) < 3 or not all(shared[size].high < cma[size].low for size in large):
        return
    size = max(large)
    why = f"{format_bytes(size)}: posix {format_seconds(shared[size].seconds)}, cma {format_seconds(cma[size].seconds)}"
    yield Setting("ucx", "UCX_TLS", "^cma", "all", f"{why}; the same at {len(large)} sizes from 64 KiB", "UCX_TLS")
