"""Counters of this machine at one moment, from sysfs, /proc and the NVIDIA driver. Missing counters are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from waywiser.look import nvidia, probes, rdma
from waywiser.look.commands import Live
from waywiser.look.finding import Unknown
from waywiser.look.root import Root

NETWORK, RDMA, NVLINK, PCIE, STORAGE = "network", "rdma", "nvlink", "pcie", "storage"
_LINK_NAMES = {RDMA: "RDMA", NVLINK: "NVLink", NETWORK: "the kernel's network", PCIE: "the GPUs' PCIe"}
LINKS = tuple(_LINK_NAMES)  # between memories: files are no evidence for or against a path
KIND_NAMES = {**_LINK_NAMES, STORAGE: "storage devices"}
_ERRORS = ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped")
_RDMA_COUNTERS = (("received", "port_rcv_data", "rcvd_pkts"), ("sent", "port_xmit_data", "sent_pkts"))
_RDMA_ERRORS = ("symbol_error", "port_rcv_errors", "port_xmit_discards", "link_downed")
_RDMA_AGAIN = ("packet_seq_err", "local_ack_timeout_err", "out_of_sequence", "rnr_nak_retry_err")
_KIB = re.compile(r"(\d{1,18}) KiB")
_LANE_WORD = 4  # RDMA ports count words of 4 bytes
_SECTOR = 512  # /sys/block counts in sectors of this size, whatever the device's are
_READ, _WRITTEN = 2, 6  # their places in `stat`
_IN_MEMORY = ("loop", "ram", "zram")


@dataclass
class Sample:
    """Counters by (kind of link, device, direction or event); all only grow, except `rates` in bytes per second.

    `packets` has RDMA ports that do not count bytes, such as those of software cards.
    """

    bytes: dict[tuple[str, str, str], int] = field(default_factory=dict)
    packets: dict[tuple[str, str, str], int] = field(default_factory=dict)
    errors: dict[tuple[str, str, str], int] = field(default_factory=dict)
    rates: dict[tuple[str, str, str], float] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def moved(self, kind: str) -> int:
        """Bytes of all devices of a kind, both directions."""
        return sum(count for (one, _, _), count in self.bytes.items() if one == kind)


def read_counters(root: Root) -> Sample:
    """All counters now. Commands run again each time."""
    sample = Sample()
    for read in (_interfaces, _retransmissions, _rdma_ports, _nvlinks, _pcie, _gpus, _storage):
        try:
            read(root, sample)
        except Unknown as error:
            sample.missing.append(str(error))
    return sample


def fresh() -> Root:
    """This machine, without cached answers."""
    return Root(commands=Live(seconds=5.0))


def _interfaces(root: Root, sample: Sample) -> None:
    for name in root.names("/sys/class/net"):
        folder = f"/sys/class/net/{name}/statistics"
        for word, file in (("received", "rx_bytes"), ("sent", "tx_bytes")):
            count = root.number(f"{folder}/{file}")
            if count is not None and name != "lo":
                sample.bytes[NETWORK, name, word] = count
        _add_errors(root, sample, NETWORK, name, folder, _ERRORS)


def _add_errors(root: Root, sample: Sample, kind: str, name: str, folder: str, files: tuple[str, ...]) -> None:
    for file in files:
        count = root.number(f"{folder}/{file}")
        if count is not None:
            sample.errors[kind, name, file] = count


def _retransmissions(root: Root, sample: Sample) -> None:
    lines = [line.split() for line in (root.text("/proc/net/snmp") or "").splitlines() if line.startswith("Tcp:")]
    if len(lines) == 2 and "RetransSegs" in lines[0]:
        sample.errors[NETWORK, "tcp", "retransmitted"] = int(lines[1][lines[0].index("RetransSegs")])


def _rdma_ports(root: Root, sample: Sample) -> None:
    for port in rdma.ports(root):
        for word, data, packets in _RDMA_COUNTERS:
            if (count := root.number(f"{port.folder}/counters/{data}")) is not None:
                sample.bytes[RDMA, port.name, word] = count * _LANE_WORD
            elif (count := root.number(f"{port.folder}/hw_counters/{packets}")) is not None:
                sample.packets[RDMA, port.name, word] = count
        _add_errors(root, sample, RDMA, port.name, f"{port.folder}/counters", _RDMA_ERRORS)
        _add_errors(root, sample, RDMA, port.name, f"{port.folder}/hw_counters", _RDMA_AGAIN)


def _nvlinks(root: Root, sample: Sample) -> None:
    if not root.names("/proc/driver/nvidia/gpus"):
        sample.missing.append("no NVIDIA GPU: no NVLink and PCIe counters")
        return
    gpu = -1
    for line in root.run("nvidia-smi", "nvlink", "-gt", "d").splitlines()[:20_000]:
        if named := re.match(r"GPU (\d{1,4}):", line):
            gpu = int(named[1])
        found = re.match(r"\s+Link \d{1,2}: Data (Tx|Rx): (.{0,30})", line)
        amount = _KIB.match(found[2]) if found else None
        if found and amount and gpu >= 0:
            key = NVLINK, f"gpu{gpu}", "sent" if found[1] == "Tx" else "received"
            sample.bytes[key] = sample.bytes.get(key, 0) + int(amount[1]) * 1024


def _pcie(root: Root, sample: Sample) -> None:
    if not root.names("/proc/driver/nvidia/gpus"):
        return
    counts = probes.pcie_bytes(root)
    for index, count in enumerate(counts):
        if count is not None:
            sample.bytes[PCIE, f"gpu{index}", "sent"], sample.bytes[PCIE, f"gpu{index}", "received"] = count
    if None in counts:
        sample.missing.append("the driver does not count the bytes of PCIe links: only momentary rates")


def _gpus(root: Root, sample: Sample) -> None:
    """Errors of the PCIe links; and, if the driver does not count bytes, rates over some milliseconds."""
    if not root.names("/proc/driver/nvidia/gpus"):
        return
    _, gpus = nvidia.query(root)
    for index, gpu in enumerate(gpus.values()):
        for word, name in (("sent", "Tx Throughput"), ("received", "Rx Throughput")):
            found = re.fullmatch(r"(\d{1,12}) KB/s", nvidia.value(gpu, "PCI", name))
            if found and (PCIE, f"gpu{index}", word) not in sample.bytes:
                sample.rates[PCIE, f"gpu{index}", word] = int(found[1]) * 1e3
        replays = nvidia.value(gpu, "PCI", "Replays Since Reset")
        if replays.isdecimal():
            sample.errors[PCIE, f"gpu{index}", "replays"] = int(replays)


def _storage(root: Root, sample: Sample) -> None:
    """Received is what was read from a device. Of one that stands on others, such as RAID, those count."""
    for name in root.names("/sys/block"):
        if name.startswith(_IN_MEMORY) or root.names(f"/sys/block/{name}/slaves"):
            continue
        counts = (root.text(f"/sys/block/{name}/stat") or "").split()
        for word, place in (("received", _READ), ("sent", _WRITTEN)):
            if len(counts) > place and counts[place].isdecimal():
                sample.bytes[STORAGE, name, word] = int(counts[place]) * _SECTOR


def rates_between(before: Sample, after: Sample, seconds: float) -> dict[tuple[str, str, str], float]:
    """Bytes per second for all counters in both samples; a counter that decreased was reset and is left out."""
    grown = _grown(before.bytes, after.bytes)
    return {**{key: count / seconds for key, count in grown}, **after.rates}


def _grown(
    before: dict[tuple[str, str, str], int], after: dict[tuple[str, str, str], int]
) -> Iterator[tuple[tuple[str, str, str], int]]:
    for key, count in after.items():
        if key in before and count >= before[key]:
            yield key, count - before[key]


def moved_between(before: Sample, after: Sample) -> dict[str, int]:
    """Bytes by kind of link."""
    return _by_kind(before.bytes, after.bytes)


def packets_between(before: Sample, after: Sample) -> dict[str, int]:
    """Packets by kind of link, of the devices that do not count bytes."""
    return _by_kind(before.packets, after.packets)


def _by_kind(before: dict[tuple[str, str, str], int], after: dict[tuple[str, str, str], int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (kind, _, _), count in _grown(before, after):
        found[kind] = found.get(kind, 0) + count
    return found
