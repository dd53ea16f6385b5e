"""Reads and writes the XML of NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE.

NCCL has one `cpu` element per NUMA node and no root complexes. Attributes `waywiser_*`, which NCCL passes over, keep
what its format lacks: packages, and root complexes where a NUMA node has several.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from xml.etree.ElementTree import Element

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.builder import (
    TopologyBuilder,
    cpulist,
    cpus_of_list,
    cpus_of_mask,
    mask_of_cpus,
    nvlink_generation,
    pcie_generation,
    pcie_speed,
)
from waywiser.topology.safe_xml import decimal, open_tag, parse_xml, whole

_GPU_CLASS, _SWITCH_CLASS, _NVSWITCH_CLASS, _CPU_CLASS = "0x030200", "0x060400", "0x068000", "0x068001"
_NIC_CLASS, _NVME_CLASS = "0x020700", "0x010802"
_BY_SM = {6: 1, 7: 2, 8: 3, 9: 4, 10: 5, 12: 5}
# NCCL wants a family; these are those of recent servers.
_FAMILIES = {"GenuineIntel": {"familyid": 6, "modelid": 85}, "AuthenticAMD": {"familyid": 143, "modelid": 49}}
_SM = {1: 60, 2: 70, 3: 80, 4: 90, 5: 100}


def read_nccl(text: str, what: str) -> _core.Topology:
    """The machine of an NCCL topology file. Raises InputError or `_core.Error` with one line."""
    root = parse_xml(text, what)
    if root.tag != "system":
        raise InputError(f"{what}: the outermost element is <{root.tag[:40]}>, not <system> as in NCCL's format")
    reader = _Reader(what)
    for cpu in root.iter("cpu"):
        reader.read_cpu(cpu)
    if not reader.hosts:
        raise InputError(f"{what}: no <cpu> element")
    reader.join_packages()
    reader.join_nvlinks()
    name = root.get("waywiser_name", "") or "nccl"
    return reader.build.finish(name[:200], "recorded", "NCCL topology file")


class _Reader:
    def __init__(self, what: str) -> None:
        self.build = TopologyBuilder(what)
        self.what = what
        self.hosts: dict[int, str] = {}  # NUMA node -> package
        self._packages: dict[str, str] = {}
        self._roots: dict[tuple[int, str], str] = {}
        self._gpus: dict[str, str] = {}  # bus id -> device
        self._generation: dict[str, int] = {}
        self._nvlinks: list[tuple[str, Element]] = []
        self._nvswitches: dict[str, str] = {}
        self._networks: dict[str, str] = {}

    def read_cpu(self, element: Element) -> None:
        node = whole(element.get("numaid"), len(self.hosts), 4095)
        if node in self.hosts:
            raise InputError(f"{self.what}: NUMA node {node} comes twice")
        cores = cpulist(cpus_of_mask(element.get("affinity", ""), self.what))
        package_name = element.get("waywiser_package", str(node))
        name = element.get("waywiser_cpu", "") or element.get("vendor", "CPU")
        if package_name not in self._packages:
            self._packages[package_name] = self.build.add("cpu", name[:200])
        cpu = self.hosts[node] = self._packages[package_name]
        host = self.build.add("host", f"NUMA node {node}", number=node, numa=node, cores=cores)
        self.build.link(host, cpu, "memory", "NCCL's format does not tell the rate of memory")
        for child in element:
            if child.tag == "pci":
                root = child.get("waywiser_root", "")
                self._read_pci(child, self._root(node, cpu, root), node)

    def _root(self, node: int, cpu: str, name: str) -> str:
        if (node, name) not in self._roots:
            root = self._roots[node, name] = self.build.add("root", "root complex", numa=node)
            self.build.link(cpu, root, "internal", "inside the package; no limit is known")
        return self._roots[node, name]

    def _read_pci(self, element: Element, parent: str, node: int) -> None:
        bus_id = element.get("busid", "").lower()[:40]
        gpu, nics = element.find("gpu"), element.findall("nic")
        children = element.findall("pci")
        class_ = element.get("class", "")
        facts = {"bus_id": bus_id, "numa": node}
        if gpu is not None:
            id_ = self._add_gpu(gpu, bus_id, facts, element)
        elif nics or class_.startswith("0x02"):
            id_ = self._add_nic(nics, facts)
        elif children or class_.startswith("0x0604"):
            id_ = self.build.add("bridge" if element.get("waywiser_kind") == "bridge" else "switch", "PCIe switch", **facts)
        elif class_.startswith("0x0108"):
            id_ = self.build.add("nvme", "NVMe", **facts)
        else:
            return
        self.build.link(parent, id_, "pcie", **self._pcie(element))
        for child in children:
            self._read_pci(child, id_, node)

    def _pcie(self, element: Element) -> dict[str, int]:
        facts = {
            "generation": pcie_generation(element.get("link_speed", "")),
            "width": whole(element.get("link_width"), 0, 32),
        }
        most = {
            "max_generation": pcie_generation(element.get("waywiser_max_speed", "")),
            "max_width": whole(element.get("waywiser_max_width"), 0, 32),
        }
        return facts | {key: value for key, value in most.items() if value}

    def _add_gpu(self, gpu: Element, bus_id: str, facts: dict[str, object], pci: Element) -> str:
        number = whole(gpu.get("dev"), len(self._gpus), 4095)
        if any(device["id"] == f"gpu{number}" for device in self.build.devices):
            raise InputError(f"{self.what}: two GPUs have dev={number}")
        sm = whole(gpu.get("sm"), 0, 999)
        name = pci.get("waywiser_name", "") or (f"GPU sm_{sm}" if sm else "GPU")
        id_ = self.build.add("gpu", name[:200], number=number, attributes={"sm": str(sm)}, **facts)
        self._gpus[bus_id] = id_
        self._generation[id_] = nvlink_generation(name) or _BY_SM.get(sm // 10, 0)
        self._nvlinks += [(id_, link) for link in gpu.findall("nvlink")]
        for link in gpu.findall("c2c"):
            rate = decimal(link.get("bw")) * max(whole(link.get("count"), 1, 1024), 1) * 1e6
            nominal = {"nominal": rate, "achievable": rate} if rate else {}
            numa = facts["numa"]
            assert isinstance(numa, int)
            self.build.link(id_, self.hosts[numa], "c2c", "NCCL topology file", **nominal)
        return id_

    def _add_nic(self, nics: list[Element], facts: dict[str, object]) -> str:
        nets = [net for nic in nics for net in nic.findall("net")]
        name = nets[0].get("name", "NIC")[:200] if nets else "NIC"
        id_ = self.build.add("nic", name, **facts)
        for net in nets:
            layer = net.get("waywiser_network", "network")[:200]
            if layer not in self._networks:
                self._networks[layer] = self.build.add("network", layer)
            if rate := whole(net.get("speed"), 0, 10_000_000) * 1e6 / 8:
                facts_ = {"nominal": rate, "achievable": rate * 0.97}
                self.build.link(id_, self._networks[layer], "network", "speed in the NCCL topology file", **facts_)
        return id_

    def join_packages(self) -> None:
        packages = list(self._packages.values())
        for i, a in enumerate(packages):
            for b in packages[i + 1 :]:
                self.build.link(a, b, "socket", "NCCL's format does not tell the rate between packages")

    def join_nvlinks(self) -> None:
        counts: Counter[tuple[str, str]] = Counter()
        for gpu, link in self._nvlinks:
            target = self._nvlink_target(gpu, link)
            if target is None:
                self.build.notes.append(f"{gpu}: an NVLink leads to an unknown device and is left out")
            elif target != gpu:
                counts[gpu, target] += max(whole(link.get("count"), 1, 1024), 1)
        for (a, b), count in counts.items():
            if b in self._generation and (b, a) in counts and b < a:
                continue  # the same links, seen from the other GPU
            generation = self._generation[a]
            self.build.link(a, b, "nvlink", generation=generation, max_generation=generation, count=count)

    def _nvlink_target(self, gpu: str, link: Element) -> str | None:
        class_, target = link.get("tclass", ""), link.get("target", "").lower()
        if class_.startswith("0x03"):
            return self._gpus.get(target)
        if class_ == _CPU_CLASS:
            return self.hosts[self.build.device(gpu)["numa"]]
        if class_ != _NVSWITCH_CLASS:
            return None
        fabric = link.get("waywiser_nvswitch", "")  # NCCL takes all NVSwitches as one
        if fabric not in self._nvswitches:
            self._nvswitches[fabric] = self.build.add("nvswitch", "NVSwitch")
        return self._nvswitches[fabric]


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
        self._bus_ids = {id_: device.bus_id or f"ffff:{i >> 8:02x}:{i & 255:02x}.0"
                         for i, (id_, device) in enumerate(self._devices.items())}  # fmt: skip

    def text(self) -> str:
        self._line(0, open_tag("system", {"version": 1, "waywiser_name": self._topology.name}))
        for host in self._topology.ids("host"):
            self._write_cpu(self._devices[host])
        self._line(0, "</system>")
        return "\n".join(self._lines) + "\n"

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
        classes = {"gpu": _GPU_CLASS, "nic": _NIC_CLASS, "nvme": _NVME_CLASS}
        attributes: dict[str, object] = {
            "busid": self._bus_ids[id_], "class": classes.get(device.kind, _SWITCH_CLASS),
            "link_speed": pcie_speed(link.generation) if link else "", "link_width": link.width or "" if link else "",
            "waywiser_root": root, "waywiser_name": device.name if device.kind == "gpu" else "",
            "waywiser_kind": "bridge" if device.kind == "bridge" else "",
        }  # fmt: skip
        if link and link.trained_down:
            attributes |= {"waywiser_max_speed": pcie_speed(link.max_generation), "waywiser_max_width": link.max_width}
        self._line(depth, open_tag("pci", attributes))
        if device.kind == "gpu":
            self._write_gpu(device, depth + 1)
        elif device.kind == "nic":
            self._write_nic(device, depth + 1)
        else:
            parent = link.a if link and link.b == id_ else link.b if link else ""
            for child, below in self._others(id_, "pcie"):
                if child != parent:
                    self._write_pci(child, below, depth + 1, "")
        self._line(depth, "</pci>")

    def _write_gpu(self, gpu: _core.Device, depth: int) -> None:
        nvlinks = self._others(gpu.id, "nvlink")
        generation = max((link.generation for _, link in nvlinks), default=0) or nvlink_generation(gpu.name)
        sm = gpu.attributes.get("sm") or _SM.get(generation, 75)
        self._line(depth, open_tag("gpu", {"dev": gpu.id[3:], "sm": sm, "rank": gpu.id[3:], "gdr": 1}))
        for other, link in nvlinks:
            kind = self._devices[other].kind
            class_ = {"nvswitch": _NVSWITCH_CLASS, "cpu": _CPU_CLASS}.get(kind, _GPU_CLASS)
            switch = other if kind == "nvswitch" and len(self._topology.ids("nvswitch")) > 1 else ""
            self._line(depth + 1, open_tag("nvlink", {"target": self._bus_ids[other], "count": link.count,
                                                      "tclass": class_, "waywiser_nvswitch": switch}, close=True))  # fmt: skip
        for _, link in self._others(gpu.id, "c2c"):
            rate = round((link.nominal or 0) / 1e6)
            self._line(depth + 1, open_tag("c2c", {"bw": rate or None, "count": 1}, close=True))
        self._line(depth, "</gpu>")

    def _write_nic(self, nic: _core.Device, depth: int) -> None:
        ports = self._others(nic.id, "network")
        self._line(depth, "<nic>")
        for port, (network, link) in enumerate(ports, start=1):
            megabits = round((link.nominal or 0) * 8 / 1e6)
            self._line(depth + 1, open_tag("net", {
                "name": nic.name, "dev": nic.id[3:], "speed": megabits, "port": port, "gdr": 1, "maxconn": 131072,
                "waywiser_network": self._devices[network].name,
            }, close=True))  # fmt: skip
        if not ports:
            self._line(depth + 1, open_tag("net", {"name": nic.name, "dev": nic.id[3:], "gdr": 1}, close=True))
        self._line(depth, "</nic>")
