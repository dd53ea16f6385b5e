"""Reads the XML of NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE.

NCCL has one `cpu` element per NUMA node and no root complexes. Attributes `waywiser_*`, which NCCL passes over, keep
what its format lacks: packages, and root complexes where a NUMA node has several.
"""

from __future__ import annotations

from collections import Counter
from typing import Any
from xml.etree.ElementTree import Element

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.builder import (
    TopologyBuilder,
    cpulist,
    cpus_of_mask,
    nvlink_generation,
    pcie_generation,
)
from waywiser.topology.safe_xml import decimal, parse_xml, whole

_NVSWITCH_CLASS, _CPU_CLASS = "0x068000", "0x068001"
_BY_SM = {6: 1, 7: 2, 8: 3, 9: 4, 10: 5, 12: 5}


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
    reader.join_nvswitches(root.get("waywiser_trunks", ""))
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
        host = self.build.add("host", f"NUMA node {node}", node, numa=node, cores=cores)
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
            id_ = self.build.add(
                "bridge" if element.get("waywiser_kind") == "bridge" else "switch", "PCIe switch", **facts
            )
        elif class_.startswith("0x0108"):
            id_ = self.build.add("nvme", "NVMe", **facts)
        else:
            return
        if element.get("waywiser_link") != "none":
            self.build.link(parent, id_, "pcie", "", **self._pcie(element))
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

    def _add_gpu(self, gpu: Element, bus_id: str, facts: dict[str, Any], pci: Element) -> str:
        number = whole(gpu.get("dev"), len(self._gpus), 4095)
        if any(device["id"] == f"gpu{number}" for device in self.build.devices):
            raise InputError(f"{self.what}: two GPUs have dev={number}")
        sm = whole(gpu.get("sm"), 0, 999)
        name = pci.get("waywiser_name", "") or (f"GPU sm_{sm}" if sm else "GPU")
        id_ = self.build.add("gpu", name[:200], number, attributes={"sm": str(sm)}, **facts)
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

    def _add_nic(self, nics: list[Element], facts: dict[str, Any]) -> str:
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

    def join_nvswitches(self, text: str) -> None:
        """`text` lists links between NVSwitches: "nvswitch0:nvswitch1:links:generation"."""
        for part in text.split()[:64]:
            a, b, count, generation = (*part.split(":"), "", "", "", "")[:4]
            ends = self._nvswitches.get(a), self._nvswitches.get(b)
            if ends[0] and ends[1]:
                number = whole(generation, 0, 9)
                facts = {"generation": number, "max_generation": number, "count": max(1, whole(count, 1, 1024))}
                self.build.link(ends[0], ends[1], "nvlink", "", **facts)
