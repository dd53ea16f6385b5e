"""Writes the XML of NCCL_TOPO_FILE.

Attributes `waywiser_*`, which NCCL ignores, hold facts that its format lacks.
"""

from __future__ import annotations

import re
from collections import defaultdict

from waywiser import _core
from waywiser.topology.builder import cpus_of_list, mask_of_cpus, pcie_speed
from waywiser.topology.gpu_models import is_amd, nvlink_generation
from waywiser.topology.safe_xml import open_tag

_GPU_CLASS, _SWITCH_CLASS, _NVSWITCH_CLASS, _CPU_CLASS = "0x030200", "0x060400", "0x068000", "0x068001"
_NIC_CLASS, _NVME_CLASS, _AMD_GPU_CLASS = "0x020700", "0x010802", "0x120000"
# NCCL requires a CPU family; these are families of recent servers.
_FAMILIES = {"GenuineIntel": {"familyid": 6, "modelid": 85}, "AuthenticAMD": {"familyid": 143, "modelid": 49}}
_SM = {1: 60, 2: 70, 3: 80, 4: 90, 5: 100}


def write_nccl(topology: _core.Topology) -> str:
    """The machine in NCCL's format, for NCCL_TOPO_FILE."""
    return _Writer(topology).text()


class _Writer:
    def __init__(self, topology: _core.Topology) -> None:
        self._topology = topology
        self._devices = {device.id: device for device in topology.devices}
        self._links: dict[str, list[_core.Link]] = defaultdict(list)
        for link in topology.links:
            self._links[link.a].append(link)
            self._links[link.b].append(link)
        self._lines: list[str] = []
        self._bus_ids = {
            id_: device.bus_id or f"ffff:{i >> 8:02x}:{i & 255:02x}.0"
            for i, (id_, device) in enumerate(self._devices.items())
        }

    def text(self) -> str:
        self._line(
            0,
            open_tag("system", {"version": 1, "waywiser_name": self._topology.name, "waywiser_trunks": self._trunks()}),
        )
        for host in self._topology.ids("host"):
            self._write_cpu(self._devices[host])
        self._line(0, "</system>")
        return "\n".join(self._lines) + "\n"

    def _trunks(self) -> str:
        """Links between NVSwitches, which NCCL's format lacks."""
        switches = set(self._topology.ids("nvswitch"))
        trunks = [link for link in self._topology.links if {link.a, link.b} <= switches]
        return " ".join(f"{link.a}:{link.b}:{link.count}:{link.generation}" for link in trunks)

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("  " * depth + text)

    def _others(self, id_: str, kind: str) -> list[tuple[str, _core.Link]]:
        return [(link.b if link.a == id_ else link.a, link) for link in self._links[id_] if link.kind == kind]

    def _write_cpu(self, host: _core.Device) -> None:
        package = next((other for other, _ in self._others(host.id, "memory")), "")
        name = self._devices[package].name if package else ""
        is_arm = re.search(r"neoverse|grace|ampere|arm", name, re.IGNORECASE)
        arch = "ppc64" if "POWER" in name else "arm64" if is_arm else "x86_64"
        vendor = "AuthenticAMD" if "EPYC" in name or "AMD" in name else "GenuineIntel" if arch == "x86_64" else ""
        attributes = {"numaid": host.numa, "affinity": mask_of_cpus(cpus_of_list(host.cores)), "arch": arch}
        attributes |= {"vendor": vendor, **_FAMILIES.get(vendor, {})}
        self._line(1, open_tag("cpu", attributes | {"waywiser_package": package, "waywiser_cpu": name}))
        roots = [other for other, _ in self._others(package, "internal") if self._belongs(other, host)]
        for root in roots:
            for child, link in self._others(root, "pcie"):
                self._write_pci(child, link, 2, root if len(roots) > 1 else "")
        for gpu in self._gpus_without_pcie(host):
            self._write_pci(gpu, None, 2, "")
        self._line(1, "</cpu>")

    def _belongs(self, root: str, host: _core.Device) -> bool:
        numa = self._devices[root].numa
        nodes = [self._devices[id_].numa for id_ in self._topology.ids("host")]
        return numa == host.numa or (numa not in nodes and host.numa == nodes[0])

    def _gpus_without_pcie(self, host: _core.Device) -> list[str]:
        gpus = (self._devices[id_] for id_ in self._topology.ids("gpu"))
        return [gpu.id for gpu in gpus if gpu.numa == host.numa and not self._others(gpu.id, "pcie")]

    def _write_pci(self, id_: str, link: _core.Link | None, depth: int, root: str) -> None:
        device = self._devices[id_]
        classes = {"nic": _NIC_CLASS, "nvme": _NVME_CLASS}
        open_ = self._is_open(device)
        vendor, _, model = device.attributes.get("pci", "").partition(":")
        attributes: dict[str, object] = {
            "busid": self._bus_ids[id_],
            "class": self._gpu_class(id_) if device.kind == "gpu" else classes.get(device.kind, _SWITCH_CLASS),
            "vendor": f"0x{vendor}" if vendor and model else "",
            "device": f"0x{model}" if vendor and model else "",
            "link_speed": pcie_speed(link.generation) if link else "",
            "link_width": link.width or "" if link else "",
            "waywiser_root": root,
            "waywiser_name": device.name if device.kind == "gpu" else "",
            "waywiser_kind": "bridge" if device.kind == "bridge" else "",
            "waywiser_link": "" if link else "none",
            "waywiser_dev": device.id[3:] if open_ else "",
        }
        if link and link.trained_down:
            attributes |= {"waywiser_max_speed": pcie_speed(link.max_generation), "waywiser_max_width": link.max_width}
        self._line(depth, open_tag("pci", attributes))
        if device.kind == "gpu":
            if not open_:
                self._write_gpu(device, depth + 1)
        elif device.kind == "nic":
            self._write_nic(device, depth + 1)
        else:
            parent = link.a if link and link.b == id_ else link.b if link else ""
            for child, below in self._others(id_, "pcie"):
                if child != parent:
                    self._write_pci(child, below, depth + 1, "")
        self._line(depth, "</pci>")

    def _is_open(self, device: _core.Device) -> bool:
        """Whether a GPU's links are unknown; then the `gpu` element is omitted, so that NCCL asks the driver."""
        joined = self._others(device.id, "nvlink") or self._others(device.id, "xgmi")
        return device.attributes.get("gpu_links") == "unknown" and not joined

    def _gpu_class(self, id_: str) -> str:
        return _AMD_GPU_CLASS if is_amd(self._devices[id_].attributes) else _GPU_CLASS

    def _write_gpu(self, gpu: _core.Device, depth: int) -> None:
        joined = [(other, link) for kind in ("nvlink", "xgmi") for other, link in self._others(gpu.id, kind)]
        generation = max((link.generation for _, link in joined), default=0) or nvlink_generation(gpu.name)
        number, gcn = gpu.id[3:], gpu.attributes.get("gcn", "")
        sm = "" if is_amd(gpu.attributes) else gpu.attributes.get("sm") or _SM.get(generation, 75)
        facts = {"dev": number, "sm": sm, "gcn": gcn, "rank": number, "gdr": 1}
        self._line(depth, open_tag("gpu", facts | {"waywiser_links": gpu.attributes.get("gpu_links")}))
        several = len(self._topology.ids("nvswitch")) > 1
        for other, link in joined:
            kind = self._devices[other].kind
            facts = {
                "target": self._bus_ids[other],
                "count": link.count,
                "tclass": {"nvswitch": _NVSWITCH_CLASS, "cpu": _CPU_CLASS}.get(kind) or self._gpu_class(other),
                "waywiser_nvswitch": other if kind == "nvswitch" and several else "",
            }
            self._line(depth + 1, open_tag(link.kind, facts, close=True))
        for _, link in self._others(gpu.id, "c2c"):
            rate = round((link.nominal or 0) / 1e6)
            self._line(depth + 1, open_tag("c2c", {"bw": rate or None, "count": 1}, close=True))
        self._line(depth, "</gpu>")

    def _write_nic(self, nic: _core.Device, depth: int) -> None:
        ports = self._others(nic.id, "network")
        self._line(depth, "<nic>")
        for port, (network, link) in enumerate(ports, start=1):
            megabits = round((link.nominal or 0) * 8 / 1e6)
            self._line(
                depth + 1,
                open_tag(
                    "net",
                    {
                        "name": nic.name,
                        "dev": nic.id[3:],
                        "speed": megabits,
                        "port": port,
                        "gdr": 1,
                        "maxconn": 131072,
                        "waywiser_network": self._devices[network].name,
                    },
                    close=True,
                ),
            )
        if not ports:
            self._line(depth + 1, open_tag("net", {"name": nic.name, "dev": nic.id[3:], "gdr": 1}, close=True))
        self._line(depth, "</nic>")
