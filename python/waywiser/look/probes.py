"""Answers of the probes in the form that the checks need."""

from __future__ import annotations

from typing import Any

from waywiser.look.answers import answer_in
from waywiser.look.commands import PROBE
from waywiser.look.finding import Unknown
from waywiser.look.nvidia import bus_address
from waywiser.look.root import Root

_LIBRARY = {"cuda": "the CUDA driver", "verbs": "libibverbs", "nvml": "NVML"}


def probe(root: Root, name: str) -> dict[str, Any]:
    """The answer of one probe. If there is none, raises Unknown with the probe's reason."""
    try:
        answer = answer_in(root.run(PROBE, name))
    except ValueError as error:
        raise Unknown(f"the {name} probe gave no answer") from error
    if not isinstance(answer, dict):
        raise Unknown(f"the {name} probe gave no answer")
    if isinstance(answer.get("error"), str) and answer["error"]:
        raise Unknown(f"needs {_LIBRARY.get(name, name)}: {answer['error']}")
    return answer


def gpu_attributes(root: Root, name: str) -> list[int]:
    """One attribute of every GPU, from the CUDA driver. Raises Unknown."""
    gpus = probe(root, "cuda").get("gpus")
    values = [gpu.get(name) for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
    numbers = [value for value in values if isinstance(value, int)]
    if not numbers or len(numbers) != len(values):
        raise Unknown(f"the CUDA driver does not know the attribute {name}")
    return numbers


def gpu_addresses(root: Root) -> list[str]:
    """The bus address of every GPU that this process sees, by CUDA's number. Raises Unknown."""
    gpus = probe(root, "cuda").get("gpus")
    told = [gpu.get("bus_id") for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
    found = [bus_address(one) for one in told if isinstance(one, str) and one]
    if not found or len(found) != len(told):
        raise Unknown("the CUDA driver names no bus addresses")
    return found


def peer_matrix(root: Root) -> list[list[bool]]:
    """Which GPU can reach which, as the CUDA driver says. Raises Unknown."""
    peers = probe(root, "cuda").get("peers")
    square = isinstance(peers, list) and all(isinstance(row, list) and len(row) == len(peers) for row in peers)
    if not isinstance(peers, list) or not square or not peers:
        raise Unknown("the CUDA driver names no GPU")
    return [[bool(cell) for cell in row] for row in peers]


def pcie_bytes(root: Root) -> list[tuple[int, int] | None]:
    """Bytes that the PCIe link of each GPU has sent and received; None if the driver does not count. Raises Unknown."""
    told = probe(root, "nvml").get("pcie")
    found: list[tuple[int, int] | None] = []
    for one in told if isinstance(told, list) else []:
        told_of = [one.get(word) for word in ("sent", "received")] if isinstance(one, dict) else []
        counts = [count for count in told_of if isinstance(count, int) and 0 <= count < 1 << 64]
        found.append((counts[0], counts[1]) if len(counts) == 2 else None)
    return found


def cma_error(root: Root) -> str:
    """Empty if a process may read a sibling's memory, else the name of the error. Raises Unknown."""
    try:
        answer = answer_in(root.run(PROBE, "cma"))
        return "" if answer["allowed"] is True else str(answer["error"])
    except (ValueError, KeyError, TypeError) as error:
        raise Unknown("needs a trial of process_vm_readv, which gave no answer") from error
