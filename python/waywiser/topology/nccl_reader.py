"""Reads the XML of NCCL_TOPO_FILE and NCCL_TOPO_DUMP_FILE, and RCCL's.

NCCL has one `cpu` element per NUMA node and no root complexes. Attributes `waywiser_*`, which NCCL ignores, hold facts
that its format lacks: packages, and root complexes if a NUMA node has several. Files from clouds omit facts that the
driver knows: their GPUs are `pci` elements without a `gpu` in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology.builder import TopologyBuilder, cpulist, cpus_of_mask, name_of_file, pcie_generation, spell
from waywiser.topology.gpu_models import AMD, NVIDIA, compute_capability, gpu_name, has_no_nvlink, is_gpu, pci_id
from waywiser.topology.nccl_links import GpuLinks
from waywiser.topology.safe_xml import decimal, parse_xml, whole
from waywiser.topology.same_machine import SameMachine

# The known attributes of NCCL's elements; all others are left out with a note.
_KNOWN = {
    "cpu": {"pci", "nic"},
    "pci": {"pci", "gpu", "nic"},
    "gpu": {"nvlink", "xgmi", "c2c"},
    "nic": {"net"},
    "system": {"cpu"},
}


def read_nccl(text: str, what: str, discover: Callable[[], _core.Topology] = _core.discover) -> _core.Topology:
    """The machine of an NCCL topology file; `discover` returns this machine, which the file may describe.

    Raises InputError or `_core.Error` with one line.
    """
    root = parse_xml(text, what)
    if root.tag == "graphs":
        raise InputError(
            f"{what}: a graph file of NCCL (<graphs>), which has no topology; NCCL_TOPO_DUMP_FILE writes one"
        )
    if root.tag != "system":
        raise InputError(f"{what}: the outermost element is {root.tag[:40]!r}, not <system> as in NCCL's format")
    reader = _Reader(what, SameMachine(root, discover))
    reader.note_unknown(root)
    for cpu in root.iter("cpu"):
        reader.read_cpu(cpu)
    if not reader.hosts:
        raise InputError(f"{what}: no <cpu> element")
    reader.join_packages()
    reader.links.join(root.get("waywiser_trunks", ""))
    reader.finish_gpus()
    reader.note_virtual_bridges()
    name = root.get("waywiser_name", "") or name_of_file(what, "nccl")
    return reader.build.finish(name[:200], "recorded", "NCCL topology file")


def _virtual_bridge(element: Element) -> bool:
    """Whether a bridge above a GPU or NIC states the slowest link that there is: the hypervisor's default."""
    slowest = pcie_generation(element.get("link_speed", "")) == 1 and element.get("link_width") == "1"
    return slowest and any(below.find("gpu") is not None or _device(below) for below in element.iter("pci"))


def _device(element: Element) -> bool:
    return element.get("class", "").lower().removeprefix("0x").startswith(("02", "03"))


class _Reader:
    def __init__(self, what: str, here: SameMachine) -> None:
        self.build = TopologyBuilder(what)
        self.what = what
        self.hosts: dict[int, str] = {}  # NUMA node -> package
        self.links = GpuLinks(self.build, self.hosts)
        self._here = here
        self._packages: dict[str, str] = {}
        self._roots: dict[tuple[int, str], str] = {}
        self._networks: dict[str, str] = {}
        self._untold: list[str] = []  # GPUs without a `gpu` element
        self._virtual = 0

    def note_unknown(self, root: Element) -> None:
        for element in root.iter():
            for child in element:
                if child.tag not in _KNOWN.get(element.tag, {child.tag}):
                    self.build.leave_out(f"<{child.tag[:40]}> in <{element.tag[:40]}>")

    def note_virtual_bridges(self) -> None:
        if self._virtual:
            many = f"{self._virtual} bridge{'s' if self._virtual > 1 else ''} above a GPU or NIC"
            self.build.notes.append(f"{many} with PCIe 1 x1, as virtual machines show it: taken as of unknown rate")

    def read_cpu(self, element: Element) -> None:
        node = whole(element.get("numaid"), len(self.hosts), 4095)
        if node in self.hosts:
            raise InputError(f"{self.what}: NUMA node {node} occurs twice")
        cores = cpulist(cpus_of_mask(element.get("affinity", ""), self.what))
        package_name = element.get("waywiser_package", str(node))
        name = element.get("waywiser_cpu", "") or element.get("vendor", "CPU")
        if package_name not in self._packages:
            self._packages[package_name] = self.build.add("cpu", name[:200])
        cpu = self.hosts[node] = self._packages[package_name]
        host = self.build.add("host", f"NUMA node {node}", node, numa=node, cores=cores)
        self.build.link(host, cpu, "memory", "NCCL's format does not give the rate of memory")
        for child in element.findall("pci"):
            self._read_pci(child, (node, child.get("waywiser_root", "")), node)
        for nic in element.findall("nic"):
            names = ", ".join(net.get("name", "?")[:40] for net in nic.findall("net")[:8])
            self.build.leave_out(f"NIC {names or '?'}: the file names no PCI device for it")

    def _root(self, node: int, name: str) -> str:
        if (node, name) not in self._roots:
            root = self._roots[node, name] = self.build.add("root", "root complex", numa=node)
            self.build.link(self.hosts[node], root, "internal", "inside the package; no limit is known")
        return self._roots[node, name]

    def _kind(self, element: Element, bus_id: str) -> str:
        class_ = element.get("class", "").lower().removeprefix("0x")
        if element.find("gpu") is not None or is_gpu(class_, pci_id(element.get("vendor"))):
            return "gpu"
        if element.find("nic") is not None or class_.startswith("02"):
            return "nic"
        if element.find("pci") is not None or class_.startswith("0604"):
            return "bridge" if element.get("waywiser_kind") == "bridge" else "switch"
        return "nvme" if class_.startswith("0108") else "" if class_ else self._here.kind(bus_id)

    def _read_pci(self, element: Element, parent: str | tuple[int, str], node: int) -> None:
        """`parent` is a device, or a root complex by node and name, which is created on first use."""
        bus_id = element.get("busid", "").lower()[:40]
        kind = self._kind(element, bus_id)
        if not kind:
            class_ = element.get("class", "")[:10]
            vendor = f" of vendor {element.get('vendor', '')[:10]}" if element.get("vendor") else ""
            why = f"class {class_}{vendor}" if class_ else "a bus id only, and not of this machine"
            self.build.leave_out(f"PCI device: {why}")
            return
        if isinstance(parent, tuple):
            parent = self._root(*parent)
        facts: dict[str, Any] = {"bus_id": bus_id, "numa": node}
        vendor, device = pci_id(element.get("vendor")), pci_id(element.get("device"))
        if kind == "gpu":
            id_ = self._add_gpu(element, bus_id, f"{vendor}:{device}" if vendor and device else "", facts)
        elif kind == "nic":
            id_ = self._add_nic(element.findall("nic"), facts)
        else:
            id_ = self.build.add(kind, "NVMe" if kind == "nvme" else "PCIe switch", **facts)
        if element.get("waywiser_link") != "none":
            self.build.link(parent, id_, "pcie", "", **self._pcie(element))
        for child in element.findall("pci"):
            self._read_pci(child, id_, node)

    def _pcie(self, element: Element) -> dict[str, int]:
        if element.find("pci") is not None and _virtual_bridge(element):
            self._virtual += 1
            return {}
        facts = {
            "generation": pcie_generation(element.get("link_speed", "")),
            "width": whole(element.get("link_width"), 0, 32),
        }
        most = {
            "max_generation": pcie_generation(element.get("waywiser_max_speed", "")),
            "max_width": whole(element.get("waywiser_max_width"), 0, 32),
        }
        return facts | {key: value for key, value in most.items() if value}

    def _add_gpu(self, pci: Element, bus_id: str, ids: str, facts: dict[str, Any]) -> str:
        gpu = pci.find("gpu")
        number = self._here.number(pci)
        if any(device["id"] == f"gpu{number}" for device in self.build.devices):
            raise InputError(f"{self.what}: two GPUs have dev={number}")
        name, attributes = self._name_gpu(pci, bus_id, ids)
        id_ = self.build.add("gpu", name[:200], number, attributes=attributes, **facts)
        sm = whole(attributes.get("sm"), 0, 999)
        self.links.add_gpu(id_, bus_id, name, sm)
        if gpu is None:
            self._untold.append(id_)
            return id_
        if gpu.get("waywiser_links") == "unknown":
            attributes["gpu_links"] = "unknown"
        for child in gpu:
            if child.tag in ("nvlink", "xgmi"):
                self.links.add_link(id_, child)
        for link in gpu.findall("c2c"):
            rate = decimal(link.get("bw")) * max(whole(link.get("count"), 1, 1024), 1) * 1e6
            nominal = {"nominal": rate, "achievable": rate} if rate else {}
            self.build.link(id_, self.hosts[facts["numa"]], "c2c", "NCCL topology file", **nominal)
        return id_

    def _name_gpu(self, pci: Element, bus_id: str, ids: str) -> tuple[str, dict[str, str]]:
        """The GPU's name and attributes: from the file, from the driver if the GPU is here, or from its PCI ids."""
        gpu, here = pci.find("gpu"), self._here.device(bus_id)
        vendor, _, device = ids.partition(":")
        gcn = gpu.get("gcn", "")[:20] if gpu is not None else ""
        ids = ids or (f"{AMD}:" if gcn else "")
        sm = whole(gpu.get("sm"), 0, 999) if gpu is not None and not gcn and vendor != AMD else 0
        name = pci.get("waywiser_name", "") or (here.name if here else "")
        if not name and device and vendor in (NVIDIA, AMD):
            name = gpu_name(vendor, device)
        if not name:
            name = f"AMD GPU gcn {gcn}" if gcn else f"GPU sm_{sm}" if sm else "GPU"
        sm = sm or (compute_capability(name) if vendor != AMD else 0)
        facts = {"pci": ids, "sm": str(sm) if sm else "", "gcn": gcn}
        attributes = dict(here.attributes) if here else {}
        return name, attributes | {key: value for key, value in facts.items() if value}

    def _add_nic(self, nics: list[Element], facts: dict[str, Any]) -> str:
        nets = [net for nic in nics for net in nic.findall("net")]
        here = self._here.device(facts["bus_id"])
        name = nets[0].get("name", "NIC")[:200] if nets else here.name if here else "NIC"
        id_ = self.build.add("nic", name, **facts)
        for net in nets:
            if rate := whole(net.get("speed"), 0, 10_000_000) * 1e6 / 8:
                layer = net.get("waywiser_network", "network")[:200]
                if layer not in self._networks:
                    self._networks[layer] = self.build.add("network", layer)
                facts_ = {"nominal": rate, "achievable": rate * 0.97}
                self.build.link(id_, self._networks[layer], "network", "speed in the NCCL topology file", **facts_)
        return id_

    def join_packages(self) -> None:
        packages = list(self._packages.values())
        for i, a in enumerate(packages):
            for b in packages[i + 1 :]:
                self.build.link(a, b, "socket", "NCCL's format does not give the rate between packages")

    def finish_gpus(self) -> None:
        """Adds the facts that NCCL would ask the driver for: from this machine if the file describes it; else notes
        that they are missing.
        """
        if self._untold and self._here.is_it:
            self.links.take_over(self._here)
            self.build.notes.append(
                "models, memories and links of GPUs that the file leaves open are those of this machine"
            )
            return
        devices = [self.build.device(id_) for id_ in self._untold]
        unnamed = [device["id"] for device in devices if device["name"] == "GPU"]
        if unnamed:
            self.build.notes.append(f"{spell(unnamed)}: GPUs by their PCI class; the file does not name the model")
        open_ = [device["id"] for device in devices if not has_no_nvlink(device["name"], _ids(device))]
        self.build.links_unknown(open_, "the file leaves NVLinks to NCCL, which asks the driver")


def _ids(device: dict[str, Any]) -> str:
    return str(device["attributes"].get("pci", ""))
