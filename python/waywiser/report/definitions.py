"""Definitions of the words in the report."""

from __future__ import annotations

OPERATIONS: dict[str, str] = {
    "latency": "One transfer at a time; the host sees its end. Two processes: half of a ping-pong round trip.",
    "streaming": "A window of transfers in flight; seconds per transfer.",
    "bidirectional": "Both directions at once; seconds per transfer of one direction.",
    "loaded": "All pairs of the class at once, until the last has ended; seconds per transfer of a pair.",
}

TITLES: dict[str, str] = {
    "latency": "Latency",
    "streaming": "Streaming",
    "bidirectional": "Both ways",
    "loaded": "All pairs at once",
}

WORDS: dict[str, str] = {
    "Time": "The median of the samples; the band is the 95 % confidence interval of the median.",
    "Limit": "The rate of the slowest hop of the path. A figure above it is a measurement error and is rejected.",
    "Chosen": "The lower envelope of the measured times, with hysteresis; on equal cost the simpler mechanism.",
    "Within 5 %": "The chosen path took at most 1.05 times as long as the fastest, at sizes not used for choosing.",
    "Verified": "The bytes of every path were compared at every timed size.",
    "GB/s": "1e9 bytes per second. Sizes are binary: 1 KiB is 1024 bytes.",
}

RELATIONS: dict[str, str] = {
    "NV#": "That many NVLinks, direct or through NVSwitches.",
    "XGMI#": "That many xGMI links.",
    "PIX": "Through one PCIe switch or bridge.",
    "PXB": "Through several PCIe switches.",
    "PHB": "Through a root complex of PCIe (the PCIe host bridge of a CPU).",
    "NODE": "Between root complexes of one NUMA node.",
    "SYS": "Between NUMA nodes: over the link between CPUs.",
}
