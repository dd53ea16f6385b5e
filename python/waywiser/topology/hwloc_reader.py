"""Reads hwloc XML (versions 2 and 3).

hwloc has no links of packages and no trained widths. In files of `hwloc_writer`, `info` elements named Waywiser* carry
them; hwloc keeps and ignores these elements.
"""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree.ElementTree import Element

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology import hwloc_infos
from waywiser.topology.builder import TopologyBuilder, cpulist, cpus_of_mask, name_of_file, pcie_of_rate
from waywiser.topology.gpu_models import AMD, NVIDIA, gpu_name, is_gpu
from waywiser.topology.hwloc_links import HwlocLinks
from waywiser.topology.safe_xml import decimal, parse_xml, whole


def read_hwloc(text: str, what: str, kind: str = "recorded") -> _core.Topology:
    """The machine of an hwloc XML file; `kind` is its source.

    Raises InputError or `_core.Error` with one line.
    """
    root = parse_xml(text, what)
    if root.tag != "topology":
        raise InputError(f"{what}: the outermost element is {root.tag[:40]!r}, not <topology> as in hwloc's format")
    machine = root.find("object")
    if machine is None or machine.get("type") != "Machine":
        raise InputError(f"{what}: no object of type Machine")
    reader = _Reader(what)
    reader.read(machine)
    if not reader.declares_links(machine):
        reader.links.read(root)
    return reader.finish(machine, kind)


def _infos(element: Element) -> dict[str, str]:
    return {info.get("name", ""): info.get("value", "") for info in element.findall("info")}


class _Reader:
    def __init__(self, what: str) -> None:
        self.build = TopologyBuilder(what)
        self._what = what
        self._cores: dict[str, list[int]] = {}  # of packages and hosts
        self._switch_ports: dict[str, str] = {}
        self.links = HwlocLinks(self.build)

    def read(self, machine: Element) -> None:
        for element in machine.iter("object"):
            if element.get("type") == "PCIDev" and not _kind(element):
                self.links.add_other(element)
        for package in machine.iter("object"):
            if package.get("type") == "Package":
                name = _infos(package).get("CPUModel", "CPU")
                self._add_with_cpus("cpu", name, package)
        if not self._cores:
            self._add_with_cpus("cpu", _infos(machine).get("CPUModel", "CPU"), machine)
        for node in machine.iter("object"):
            if node.get("type") == "NUMANode":
                self._add_host(node, machine)
        if not any(device["kind"] == "host" for device in self.build.devices):
            self._add_host(machine, machine)
        self._read_io(machine, machine)

    def _add_with_cpus(self, kind: str, name: str, element: Element) -> str:
        cpus = cpus_of_mask(element.get("cpuset", "0x0"), self._what)
        number = whole(_infos(element).get("WaywiserNumber"), -1, 4095)
        id_ = self.build.add(kind, name[:200], None if number < 0 else number, cores=cpulist(cpus))
        self._cores[id_] = cpus
        self.links.add(id_, element, below=False)
        return id_

    def _add_host(self, node: Element, machine: Element) -> None:
        number = whole(node.get("os_index"), 0, 4095) if node is not machine else 0
        cpus = cpus_of_mask(node.get("cpuset", "0x0"), self._what)
        if not cpus and len(list(machine.iter("object"))) > 1 and self._hosts():
            self.build.notes.append(f"NUMA node {number} has no CPUs and is left out")
            return
        memory = whole(node.get("local_memory"))
        id_ = self.build.add(
            "host", f"NUMA node {number}", number, numa=number, cores=cpulist(cpus), memory_bytes=memory
        )
        self._cores[id_] = cpus
        if hwloc_infos.LINK in _infos(node):
            self._declared_link(id_, self._package_of(cpus), _infos(node)[hwloc_infos.LINK])
        else:
            self.build.link(id_, self._package_of(cpus), "memory", "hwloc's format does not give the rate of memory")
        self._declared_attributes(id_, _infos(node))

    def _hosts(self) -> list[str]:
        return [device["id"] for device in self.build.devices if device["kind"] == "host"]

    def _package_of(self, cpus: list[int]) -> str:
        packages = [id_ for id_ in self._cores if id_.startswith("cpu")]
        return max(packages, key=lambda id_: len(set(cpus) & set(self._cores[id_])))

    def _near(self, element: Element) -> str:
        """The host memory near the CPUs of an object."""
        cpus = set(cpus_of_mask(element.get("cpuset", "0x0"), self._what))
        hosts = self._hosts()
        return max(hosts, key=lambda id_: len(cpus & set(self._cores[id_])) / (len(self._cores[id_]) or 1))

    def _read_io(self, element: Element, place: Element) -> None:
        """Adds host bridges below the object (machine, package, group) whose CPUs they are near to."""
        for child in element.findall("object"):
            if child.get("type") == "Bridge" and child.get("bridge_type", "").startswith("0-"):
                self._read_host_bridge(child, self._near(place))
            elif child.get("type") == "PCIDev":  # a file without bridges
                self._read_endpoint(child, self._add_root("root complex", self._near(place)))
            elif child.get("type") not in ("PU", "OSDev", "Misc"):
                self._read_io(child, child if child.get("cpuset") else place)

    def _add_root(self, name: str, host: str) -> str:
        numa = self.build.device(host)["numa"]
        root = self.build.add("root", name, numa=numa)
        self.build.link(self._package_of(self._cores[host]), root, "internal", "inside the package; no limit is known")
        return root

    def _read_host_bridge(self, bridge: Element, host: str) -> None:
        if not any(_kind(child) for child in bridge.iter("object")):
            return
        name = "root complex " + bridge.get("bridge_pci", "").split(":", 1)[0][:20]
        root = self._add_root(_infos(bridge).get("WaywiserName", name)[:200], host)
        self._read_below(bridge, root, [])

    def _read_below(self, element: Element, parent: str, ports: list[Element]) -> None:
        """`ports`: the PCI bridges since the last switch. The first is a root port, then pairs form switches."""
        for child in element.findall("object"):
            if child.get("type") == "PCIDev":
                self._read_endpoint(child, self._close(ports, parent))
            elif child.get("type") == "Bridge":
                if not any(_kind(below) for below in child.iter("object")):
                    continue
                declared = _infos(child).get(hwloc_infos.DEVICE)
                if declared in ("switch", "bridge"):
                    self._read_below(child, self._add_switch(declared, child, parent), [])
                elif len(ports) == 2:
                    self._read_below(child, self._switch_at(ports[1], parent), [ports[0]])
                else:
                    self._read_below(child, parent, [*ports, child])

    def _switch_at(self, port: Element, parent: str) -> str:
        key = port.get("gp_index", "") + " " + port.get("pci_busid", "")
        if key not in self._switch_ports:
            self._switch_ports[key] = self._add_switch("switch", port, parent)
        return self._switch_ports[key]

    def _close(self, ports: list[Element], parent: str) -> str:
        return parent if len(ports) < 2 else self._add_switch("bridge", ports[1], parent)

    def _add_switch(self, kind: str, element: Element, parent: str) -> str:
        numa = self.build.device(parent)["numa"]
        name = "PCIe switch" if kind == "switch" else "PCI bridge"
        id_ = self.build.add(kind, name, bus_id=element.get("pci_busid", "")[:40], numa=numa)
        self._pcie(parent, id_, element)
        return id_

    def _pcie(self, parent: str, id_: str, element: Element) -> None:
        if hwloc_infos.LINK in _infos(element):
            return self._declared_link(parent, id_, _infos(element)[hwloc_infos.LINK])
        generation, width = pcie_of_rate(decimal(element.get("pci_link_speed")))
        source = "" if generation else "the PCI link speed is not in the file"
        return self.build.link(parent, id_, "pcie", source, generation=generation, width=width)

    def _declared_attributes(self, id_: str, infos: dict[str, str]) -> None:
        if hwloc_infos.ATTRIBUTES in infos:
            self.build.device(id_)["attributes"] = _json_object(infos[hwloc_infos.ATTRIBUTES], self._what)

    def _declared_link(self, a: str, b: str, text: str) -> None:
        facts: dict[str, Any] = _json_object(text, self._what)
        facts = {key: value for key, value in facts.items() if key not in ("a", "b")}
        kind, source = str(facts.pop("kind", "pcie")), str(facts.pop("source", ""))
        self.build.link(a, b, kind, source, **facts)

    def _read_endpoint(self, element: Element, parent: str) -> None:
        kind = _kind(element)
        if not kind:
            return
        infos = _infos(element)
        parts = {
            part.get("name", ""): _infos(part) for part in element.findall("object") if part.get("type") == "OSDev"
        }
        number = whole(infos.get("WaywiserNumber"), -1, 4095)
        facts = {"bus_id": element.get("pci_busid", "")[:40], "numa": self.build.device(parent)["numa"]}
        if kind == "gpu":
            facts |= {"memory_bytes": _gpu_memory(parts), "attributes": {"pci": ":".join(_pci_ids(element))}}
        name = _endpoint_name(kind, infos, parts, _pci_ids(element))
        id_ = self.build.add(kind, name[:200], None if number < 0 else number, **facts)
        self._declared_attributes(id_, infos)
        self.links.add(id_, element)
        self._pcie(parent, id_, element)

    @staticmethod
    def declares_links(machine: Element) -> bool:
        """Whether `hwloc_writer` wrote the file, so that it has all links."""
        return any(info.get("name") == hwloc_infos.LINK for info in machine.findall("info"))

    def finish(self, machine: Element, kind: str) -> _core.Topology:
        infos = _infos(machine)
        for info in machine.findall("info"):
            if info.get("name") == hwloc_infos.DEVICE:
                self._add_declared(info.get("value", ""))
        for info in machine.findall("info"):
            if info.get("name") == hwloc_infos.LINK:
                ends = _json_object(info.get("value", ""), self._what)
                self._declared_link(str(ends.get("a")), str(ends.get("b")), info.get("value", ""))
        if not self._declared_sockets(machine):
            packages = [id_ for id_ in self._cores if id_.startswith("cpu")]
            for i, a in enumerate(packages[:64]):
                for b in packages[i + 1 : 64]:
                    self.build.link(a, b, "socket", "hwloc's format does not give the rate between packages")
        name = (
            infos.get("WaywiserName")
            or infos.get("DMIProductName")
            or infos.get("HostName")
            or name_of_file(self._what, "hwloc")
        )
        return self.build.finish(name[:200], kind, "hwloc")

    def _add_declared(self, text: str) -> None:
        facts = _json_object(text, self._what)
        kind = str(facts.get("kind"))
        number = re.fullmatch(re.escape(kind) + r"(\d{1,4})", str(facts.get("id")))
        if number is None:
            raise InputError(f"{self._what}: {hwloc_infos.DEVICE} {str(facts.get('id'))[:40]!r} is not a device")
        rest = {key: value for key, value in facts.items() if key not in ("id", "kind", "name")}
        self.build.add(kind, str(facts.get("name", "")), int(number[1]), **rest)

    @staticmethod
    def _declared_sockets(machine: Element) -> bool:
        return any(
            info.get("name") == hwloc_infos.LINK and '"socket"' in info.get("value", "")
            for info in machine.findall("info")
        )


def _json_object(text: str, what: str) -> dict[str, object]:
    try:
        value = json.loads(text[:65536])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(f"{what}: an info of Waywiser is not a JSON object: {text[:40]!r}")
    return value


def _pci_ids(element: Element) -> tuple[str, str]:
    """Vendor and device of "0302 [10de:1db8] ..."."""
    found = re.match(r"[0-9a-f]{4} \[([0-9a-f]{4}):([0-9a-f]{4})\]", element.get("pci_type", "").lower())
    return (found[1], found[2]) if found else ("", "")


def _kind(element: Element) -> str:
    """The kind of an endpoint; empty if it is not shown."""
    if element.get("type") != "PCIDev":
        return ""
    class_, vendor = element.get("pci_type", "")[:4], _pci_ids(element)[0]
    if is_gpu(class_, vendor):
        return "gpu"
    if class_ == "0280" and vendor == "15b3":  # Mellanox; other devices of this class are Wi-Fi
        return "nic"
    return {"0200": "nic", "0207": "nic", "0108": "nvme"}.get(class_, "")


def _gpu_memory(parts: dict[str, dict[str, str]]) -> int:
    keys = ("CUDAGlobalMemorySize", "RSMIVRAMSize")
    return 1024 * max((whole(part.get(key)) for part in parts.values() for key in keys), default=0)


def _endpoint_name(kind: str, infos: dict[str, str], parts: dict[str, dict[str, str]], ids: tuple[str, str]) -> str:
    if "WaywiserName" in infos:
        return infos["WaywiserName"]
    if kind == "gpu":
        models = [part["GPUModel"] for part in parts.values() if part.get("GPUModel")]
        by_ids = gpu_name(*ids) if ids[0] in (NVIDIA, AMD) else "GPU"
        return models[0] if models else infos.get("PCIDevice", by_ids)
    names = sorted(parts, key=lambda name: (not name.startswith(("mlx", "hfi", "bnxt", "irdma")), name))
    return names[0] if names else infos.get("PCIDevice", kind)
