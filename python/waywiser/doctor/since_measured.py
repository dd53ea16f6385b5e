"""Compares this machine with the one that the results folder describes: a driver update can take peer access away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from waywiser.errors import InputError
from waywiser.look import machine, pci, probes
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, warning
from waywiser.look.root import Root
from waywiser.results import Results

_PEER = re.compile(r"peer:(gpu\d{1,4})")
_DRIVER = re.compile(r"\b(\d{3,4}\.\d{1,3}(?:\.\d{1,3})?)\b")


def _kept(root: Root) -> dict[str, Any]:
    """The topology of the results folder. Raises Unknown."""
    needs = "needs the topology of a measurement: run 'waywiser measure', or name its folder with --results"
    if root.results is None:
        raise Unknown(needs)
    try:
        found = Results(root.results).topology
    except InputError as error:
        raise Unknown(f"{needs} ({error})") from error
    if found is None:
        raise Unknown(needs)
    if found["kind"] != "discovered":
        raise Unknown(f"the results are of {found['name']}, which is not this machine; {needs}")
    return found


def _had_peers(topology: Mapping[str, Any]) -> set[tuple[int, int]]:
    """The ordered pairs of GPUs, by index, that had peer access."""
    found = set()
    for device in topology["devices"]:
        for name, text in device.get("attributes", {}).items():
            other = _PEER.fullmatch(name)
            if other and text == "ok":
                found.add((int(device["id"].removeprefix("gpu")), int(other[1].removeprefix("gpu"))))
    return found


def _driver_now(root: Root) -> str:
    found = _DRIVER.search(root.needed("/proc/driver/nvidia/version"))
    if not found:
        raise Unknown("needs a version in /proc/driver/nvidia/version")
    return found[1]


def peer_access(root: Root) -> Finding:
    """D47."""
    if len(pci.gpus(root)) < 2:
        return absent("fewer than two GPUs")
    kept, now = _kept(root), _driver_now(root)
    then = str(kept.get("software", {}).get("driver", "unknown"))
    had, matrix = _had_peers(kept), probes.peer_matrix(root)
    if not had:
        return absent(f"there was no peer access when the results were made (driver {then})")
    if max(max(pair) for pair in had) >= len(matrix):
        raise Unknown(f"the results are of a machine with more GPUs than the {len(matrix)} here")
    lost = [f"gpu{a}>gpu{b}" for a, b in sorted(had) if not matrix[a][b]]
    results = f"results with fingerprint {kept['fingerprint']}"
    if lost and then == now:
        return problem(f"lost with the same driver {now} ({results}): {machine.named(lost)}; see D09, D10 and D17")
    if lost:
        return problem(f"lost since the driver changed from {then} to {now} ({results}): {machine.named(lost)}")
    if then != now:
        return warning(f"all pairs kept it, but the driver changed from {then} to {now}: the {results} are out of date")
    return ok(f"all {len(had)} pairs have it as when they were measured, driver {now}")
