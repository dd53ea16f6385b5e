"""NCCL's log (NCCL_DEBUG=INFO, NCCL_DEBUG_FILE): by which transport its connections go, and how it runs collectives."""

from __future__ import annotations

import re
from collections import Counter

from waywiser.look.root import Root

HOW_TO_LOG = "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET NCCL_DEBUG_FILE=/tmp/nccl.log"
_VIA = re.compile(r"NCCL INFO .{0,120}? via ((?:P2P|SHM|NET|COLLNET|NVLS)(?:/\w{1,32})?)")


# NCCL says itself why it makes no reductions in the switch.
_WHY_NO_COLLNET = re.compile(r"NCCL (?:INFO|WARN) ([^\n]{0,200}), disabling CollNet")


# One line for each all-reduce, of rank 0, with NCCL_DEBUG_SUBSYS=TUNING; before NCCL 2.24 with the algorithm's number.
_ALL_REDUCE = re.compile(r"NCCL INFO AllReduce: \d+ Bytes -> Algo (\w{1,32})")
_BY_COLLNET = ("COLLNET_DIRECT", "COLLNET_CHAIN", "2", "3")
# Since NCCL 2.24, of rank 0, with NCCL_DEBUG_SUBSYS=TUNING.
_TAKEN = re.compile(r"NCCL INFO (\w{1,32}): \d+ Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}")
_OPERATIONS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}
_OPERATIONS |= {"Broadcast": "broadcast", "Reduce": "reduce"}
_ALGORITHMS = {"TREE": "Tree", "RING": "Ring", "COLLNET_DIRECT": "CollNetDirect", "COLLNET_CHAIN": "CollNetChain"}
_ALGORITHMS |= {"NVLS": "NVLS", "NVLS_TREE": "NVLSTree", "PAT": "PAT"}
_PROTOCOLS = {"LL": "LL", "LL128": "LL128", "SIMPLE": "Simple"}


def ways_taken(text: str) -> dict[str, str]:
    """For each collective how NCCL ran the last one, as a plan writes it: "Ring(channels=8,protocol=LL)"."""
    found = {}
    for name, algorithm, protocol, first, last in _TAKEN.findall(text):
        if name in _OPERATIONS and algorithm in _ALGORITHMS and protocol in _PROTOCOLS:
            channels = int(last) - int(first) + 1
            way = f"{_ALGORITHMS[algorithm]}(channels={channels},protocol={_PROTOCOLS[protocol]})"
            found[_OPERATIONS[name]] = way
    return found


def file_of(pattern: str, host: str, process: int) -> str:
    """The file that a process writes: "%h" stands for the host, "%p" for the process; empty if it is not told."""
    file = pattern.replace("%h", host).replace("%p", str(process))
    return file if file.startswith("/") and "%" not in file else ""


def why_no_collnet(root: Root, file: str) -> str:
    """Why NCCL has switched CollNet off, in its own words; nothing if its log does not say so. Raises Unknown."""
    found = _WHY_NO_COLLNET.search(root.text(file) or "")
    return found[1].strip() if found else ""


def counted_by_collnet(root: Root, file: str) -> tuple[int, int]:
    """How many all-reduces ran by CollNet, and how many at all; (0, 0) if NCCL does not log them. Raises Unknown."""
    found = _ALL_REDUCE.findall(root.text(file) or "")
    return sum(one in _BY_COLLNET for one in found), len(found)


def transports(root: Root, file: str) -> Counter[str] | None:
    """Connections by transport ("P2P/IPC", "SHM/direct", "NET/Socket", "COLLNET/SHARP"); None if it is no such log.
    Raises Unknown."""
    text = root.text(file) or ""
    return Counter(_VIA.findall(text)) if "NCCL INFO" in text else None
