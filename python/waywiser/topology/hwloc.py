"""Reads and writes hwloc XML (versions 2 and 3).

hwloc has no NVSwitches, packages' links or trained widths; `info` elements named Waywiser*, which hwloc keeps and
passes over, carry them in files that this module writes.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
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
    pcie_of_rate,
    pcie_rate,
)
from waywiser.topology.safe_xml import decimal, open_tag, parse_xml, whole

_LINK = "WaywiserLink"
_DEVICE = "WaywiserDevice"
_NVLINK_MEGABYTES = {1: 20000, 2: 25000, 3: 25000, 4: 26562, 5: 50000}


def read_hwloc(text: str, what: str) -> _core.Topology:
    """The machine of an hwloc XML file. Raises InputError or `_core.Error` with one line."""
    root = parse_xml(text, what)
    if root.tag != "topology":
        raise InputError(f"{what}: the outermost element is <{root.tag[:40]}>, not <topology> as in hwloc's format")
    machine = root.find("object")
    if machine is None or machine.get("type") != "Machine":
        raise InputError(f"{what}: no object of type Machine")
    reader = _Reader(what)
    reader.read(machine)
    reader.read_distances(root)
    return reader.finish(machine)


def _infos(element: Element) -> dict[str, str]:
    return {info.get("name", ""): info.get("value", "") for info in element.findall("info")}


class _Reader:
    def __init__(self, what: str) -> None:
        self.build = TopologyBuilder(what)
        self._what = what
        self._cores: dict[str, list[int]] = {}  # of packages and hosts
        self._by_gp: dict[str, str] = {}
        self._written_by_us = False

    def read(self, machine: Element) -> None:
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

    def _add_with_cpus(self, kind: str, name: str, element: Element, **facts: object) -> str:
        cpus = cpus_of_mask(element.get("cpuset", "0x0"), self._what)
        id_ = self.build.add(kind, name[:200], cores=cpulist(cpus), **facts)
        self._cores[id_] = cpus
        return id_

    def _add_host(self, node: Element, machine: Element) -> None:
        number = whole(node.get("os_index"), 0, 4095) if node is not machine else 0
        cpus = cpus_of_mask(node.get("cpuset", "0x0"), self._what)
        if not cpus and len(list(machine.iter("object"))) > 1 and self._hosts():
            self.build.notes.append(f"NUMA node {number} has no CPUs and is left out")
            return
        memory = whole(node.get("local_memory"))
        id_ = self.build.add(
            "host", f"NUMA node {number}", number=number, numa=number, cores=cpulist(cpus), memory_bytes=memory
        )
        self._cores[id_] = cpus
        self.build.link(id_, self._package_of(cpus), "memory", "hwloc's format does not tell the rate of memory")

    def _hosts(self) -> list[str]:
        return [device["id"] for device in self.build.devices if device["kind"] == "host"]

    def _package_of(self, cpus: list[int]) -> str:
        packages = [id_ for id_ in self._cores if id_.startswith("cpu")]
        return max(packages, key=lambda id_: len(set(cpus) & set(self._cores[id_])))

    def _near(self, element: Element) -> str:
        """The host memory whose CPUs an object is close to."""
        cpus = set(cpus_of_mask(element.get("cpuset", "0x0"), self._what))
        hosts = self._hosts()
        return max(hosts, key=lambda id_: (len(cpus & set(self._cores[id_])) / (len(self._cores[id_]) or 1)))

    def _read_io(self, element: Element, place: Element) -> None:
        """Host bridges hang on the object (machine, package, group) whose CPUs they are close to."""
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
        """`ports` are the PCI bridges since the last switch: a root port, then pairs of ports make switches."""
        for child in element.findall("object"):
            if child.get("type") == "PCIDev":
                self._read_endpoint(child, self._close(ports, parent))
            elif child.get("type") == "Bridge":
                if not any(_kind(below) for below in child.iter("object")):
                    continue
                declared = _infos(child).get(_DEVICE)
                if declared in ("switch", "bridge"):
                    self._read_below(child, self._add_switch(declared, child, parent), [])
                elif len(ports) == 2:
                    self._read_below(child, self._switch_at(ports[1], parent), [ports[0]])
                else:
                    self._read_below(child, parent, [*ports, child])

    def _switch_at(self, port: Element, parent: str) -> str:
        known = self._by_gp.get("port " + port.get("gp_index", "") + port.get("pci_busid", ""))
        if known is None:
            known = self._add_switch("switch", port, parent)
            self._by_gp["port " + port.get("gp_index", "") + port.get("pci_busid", "")] = known
        return known

    def _close(self, ports: list[Element], parent: str) -> str:
        return parent if len(ports) < 2 else self._add_switch("bridge", ports[1], parent)

    def _add_switch(self, kind: str, element: Element, parent: str) -> str:
        numa = self.build.device(parent)["numa"]
        name = "PCIe switch" if kind == "switch" else "PCI bridge"
        id_ = self.build.add(kind, name, bus_id=element.get("pci_busid", "")[:40], numa=numa)
        self._pcie(parent, id_, element)
        return id_

    def _pcie(self, parent: str, id_: str, element: Element) -> None:
        if _LINK in _infos(element):
            return self._declared_link(parent, id_, _infos(element)[_LINK])
        generation, width = pcie_of_rate(decimal(element.get("pci_link_speed")))
        source = "" if generation else "the PCI link speed is not in the file"
        return self.build.link(parent, id_, "pcie", source, generation=generation, width=width)

    def _declared_link(self, a: str, b: str, text: str) -> None:
        try:
            facts = json.loads(text[:4096])
        except (ValueError, RecursionError):
            facts = None
        if not isinstance(facts, dict):
            raise InputError(f"{self._what}: {_LINK} of {b} is not a JSON object")
        facts = {key: value for key, value in facts.items() if key not in ("a", "b")}
        kind, source = str(facts.pop("kind", "pcie")), str(facts.pop("source", ""))
        self.build.link(a, b, kind, source, **facts)

    def _read_endpoint(self, element: Element, parent: str) -> None:
        kind = _kind(element)
        if not kind:
            return
        infos = _infos(element)
        parts = {part.get("name", ""): _infos(part) for part in element.findall("object") if part.get("type") == "OSDev"}
        number = whole(infos.get("WaywiserNumber"), -1, 4095)
        facts = {"bus_id": element.get("pci_busid", "")[:40], "numa": self.build.device(parent)["numa"]}
        memory = max((whole(part.get(key)) for part in parts.values()
                      for key in ("CUDAGlobalMemorySize", "RSMIVRAMSize")), default=0) * 1024  # fmt: skip
        name = _endpoint_name(kind, infos, parts)
        id_ = self.build.add(kind, name[:200], number=None if number < 0 else number,
                             memory_bytes=memory if kind == "gpu" else 0, **facts)  # fmt: skip
        for part in element.iter("object"):
            self._by_gp[part.get("gp_index", "")] = id_
        self._pcie(parent, id_, element)

    def read_distances(self, root: Element) -> None:
        """NVLinks of files that hwloc itself wrote: a matrix of MB/s between devices."""
        for matrix in [*root.findall("distances2"), *root.findall("distances2hetero")]:
            if matrix.get("name") != "NVLinkBandwidth" or self._declares_links(root):
                continue
            words = " ".join(e.text or "" for e in matrix.findall("indexes")).split()
            values = [whole(v) for v in " ".join(e.text or "" for e in matrix.findall("u64values")).split()]
            ids = [self._by_gp.get(word.rpartition(":")[2], "") for word in words]
            if len(values) != len(ids) ** 2:
                raise InputError(f"{self._what}: NVLinkBandwidth has {len(values)} values for {len(ids)} objects")
            for i, a in enumerate(ids):
                for j, b in enumerate(ids[:i]):
                    if a and b and a != b and values[i * len(ids) + j]:
                        self._add_nvlink(b, a, values[i * len(ids) + j])

    @staticmethod
    def _declares_links(root: Element) -> bool:
        machine = root.find("object")
        return machine is not None and any(info.get("name") == _LINK for info in machine.findall("info"))

    def _add_nvlink(self, a: str, b: str, megabytes: int) -> None:
        generation = nvlink_generation(self.build.device(a)["name"])
        count = max(1, round(megabytes / _NVLINK_MEGABYTES.get(generation, 25000)))
        self.build.link(a, b, "nvlink", generation=generation, max_generation=generation, count=min(count, 1024))

    def finish(self, machine: Element) -> _core.Topology:
        infos = _infos(machine)
        for info in machine.findall("info"):
            if info.get("name") == _DEVICE:
                self._add_declared(info.get("value", ""))
        for info in machine.findall("info"):
            if info.get("name") == _LINK:
                ends = _json_object(info.get("value", ""), self._what)
                self._declared_link(str(ends.get("a")), str(ends.get("b")), info.get("value", ""))
        if not self._declared_sockets(machine):
            packages = [id_ for id_ in self._cores if id_.startswith("cpu")]
            for i, a in enumerate(packages[:64]):
                for b in packages[i + 1 : 64]:
                    self.build.link(a, b, "socket", "hwloc's format does not tell the rate between packages")
        name = infos.get("WaywiserName") or infos.get("DMIProductName") or infos.get("HostName") or "hwloc"
        return self.build.finish(name[:200], "recorded", "hwloc XML")

    def _add_declared(self, text: str) -> None:
        facts = _json_object(text, self._what)
        kind = str(facts.get("kind"))
        number = re.fullmatch(re.escape(kind) + r"(\d{1,4})", str(facts.get("id")))
        if number is None:
            raise InputError(f"{self._what}: {_DEVICE} {str(facts.get('id'))[:40]!r} is not a device")
        rest = {key: value for key, value in facts.items() if key not in ("id", "kind", "name")}
        self.build.add(kind, str(facts.get("name", "")), number=int(number[1]), **rest)

    @staticmethod
    def _declared_sockets(machine: Element) -> bool:
        return any(info.get("name") == _LINK and '"socket"' in info.get("value", "") for info in machine.findall("info"))


def _json_object(text: str, what: str) -> dict[str, object]:
    try:
        value = json.loads(text[:65536])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise InputError(f"{what}: an info of Waywiser is not a JSON object: {text[:40]!r}")
    return value


def _kind(element: Element) -> str:
    """The kind of an endpoint, empty for what is not shown."""
    if element.get("type") != "PCIDev":
        return ""
    class_, vendor = element.get("pci_type", "")[:4], element.get("pci_type", "")[6:10].lower()
    if class_ == "0302" or (class_ == "0300" and vendor == "10de") or (class_ in ("0380", "1200") and vendor == "1002"):
        return "gpu"
    return {"0200": "nic", "0207": "nic", "0108": "nvme"}.get(class_, "")


def _endpoint_name(kind: str, infos: dict[str, str], parts: dict[str, dict[str, str]]) -> str:
    if "WaywiserName" in infos:
        return infos["WaywiserName"]
    if kind == "gpu":
        models = [part["GPUModel"] for part in parts.values() if part.get("GPUModel")]
        return models[0] if models else infos.get("PCIDevice", "GPU")
    names = sorted(parts, key=lambda name: (not name.startswith(("mlx", "hfi", "bnxt", "irdma")), name))
    return names[0] if names else infos.get("PCIDevice", kind)


def write_hwloc(topology: _core.Topology) -> str:
    """The machine as hwloc 2 XML, for `lstopo -i` and HWLOC_XMLFILE."""
    return _Writer(topology).text()


_PCI_TYPE = {"gpu": "0302 [10de:0000]", "nic": "0207 [15b3:0000]", "nvme": "0108 [0000:0000]"}


class _Writer:
    def __init__(self, topology: _core.Topology) -> None:
        self._topology = topology
        self._devices = {device.id: device for device in topology.devices}
        self._links: dict[str, list[_core.Link]] = defaultdict(list)
        for link in topology.links:
            self._links[link.a].append(link)
            self._links[link.b].append(link)
        self._cpus = self._share_out_cpus()
        self._lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<!DOCTYPE topology SYSTEM "hwloc2.dtd">']
        self._gp = 0
        self._written: set[str] = set()
        self._gp_of_gpu: dict[str, int] = {}

    def _share_out_cpus(self) -> dict[str, list[int]]:
        """CPUs of each memory; one of its own where the topology names none, as hwloc needs some."""
        cpus, taken = {}, set()
        for id_ in self._topology.ids("host"):
            own = [cpu for cpu in cpus_of_list(self._devices[id_].cores) if cpu not in taken]
            cpus[id_] = own or [max(taken, default=-1) + 1]
            taken.update(cpus[id_])
        return cpus

    def text(self) -> str:
        self._lines.append('<topology version="2.0">')
        everyone = [cpu for cpus in self._cpus.values() for cpu in cpus]
        self._open(1, "Machine", os_index=0, **self._sets(everyone, self._topology.ids("host")))
        self._info(2, "WaywiserName", self._topology.name)
        body = len(self._lines)
        for package in self._topology.ids("cpu"):
            self._write_package(package)
        declared = self._declarations()
        self._lines[body:body] = declared
        self._lines += ["  </object>", *self._nvlinks(), "</topology>", ""]
        return "\n".join(self._lines)

    def _open(self, indent: int, type_: str, **attributes: object) -> int:
        self._gp += 1
        self._lines.append("  " * indent + open_tag("object", {"type": type_, **attributes, "gp_index": self._gp}))
        return self._gp

    def _close(self, depth: int) -> None:
        self._lines.append("  " * depth + "</object>")

    def _info(self, depth: int, name: str, value: str) -> None:
        self._lines.append("  " * depth + open_tag("info", {"name": name, "value": value}, close=True))

    def _sets(self, cpus: list[int], hosts: list[str]) -> dict[str, object]:
        mask, nodes = mask_of_cpus(cpus, "0x"), mask_of_cpus([self._devices[id_].numa for id_ in hosts], "0x")
        return {"cpuset": mask, "complete_cpuset": mask, "nodeset": nodes, "complete_nodeset": nodes}

    def _others(self, id_: str, kind: str) -> list[tuple[str, _core.Link]]:
        return [(link.b if link.a == id_ else link.a, link) for link in self._links[id_] if link.kind == kind]

    def _write_package(self, package: str) -> None:
        hosts = [other for other, _ in self._others(package, "memory")]
        if not hosts:
            return
        cpus = [cpu for host in hosts for cpu in self._cpus[host]]
        self._open(2, "Package", os_index=package[3:], **self._sets(cpus, hosts))
        self._info(3, "CPUModel", self._devices[package].name)
        for host in hosts:
            self._write_host(package, host, len(hosts) > 1)
        self._close(2)
        self._written.add(package)

    def _write_host(self, package: str, host: str, several: bool) -> None:
        device, depth = self._devices[host], 3
        if several:  # one Group per NUMA node keeps its devices apart
            self._open(3, "Group", kind=1001, subkind=0, **self._sets(self._cpus[host], [host]))
            depth = 4
        memory = device.memory_bytes or None
        self._open(depth, "NUMANode", os_index=device.numa, local_memory=memory, **self._sets(self._cpus[host], [host]))
        self._close(depth)
        for cpu in self._cpus[host]:
            self._open(depth, "Core", os_index=cpu, **self._sets([cpu], [host]))
            self._open(depth + 1, "PU", os_index=cpu, **self._sets([cpu], [host]))
            self._close(depth + 1)
            self._close(depth)
        self._written.add(host)
        for root, _ in self._others(package, "internal"):
            if root not in self._written and self._is_near(root, host, package):
                self._write_root(root, depth)
        if several:
            self._close(3)

    def _is_near(self, root: str, host: str, package: str) -> bool:
        hosts = [self._devices[other].numa for other, _ in self._others(package, "memory")]
        numa = self._devices[root].numa
        return numa == self._devices[host].numa or (numa not in hosts and self._devices[host].numa == hosts[0])

    def _write_root(self, root: str, depth: int) -> None:
        number = self._topology.ids("root").index(root)
        self._open(depth, "Bridge", bridge_type="0-1", depth=0, bridge_pci=f"{number:04x}:[00-ff]")
        self._info(depth + 1, "WaywiserName", self._devices[root].name)
        self._written.add(root)
        self._write_below(root, depth + 1, 1)
        self._close(depth)

    def _write_below(self, parent: str, depth: int, level: int) -> None:
        for child, link in self._others(parent, "pcie"):
            if child in self._written:
                continue
            self._written.add(child)
            device = self._devices[child]
            number = list(self._devices).index(child)
            bus_id = device.bus_id or f"0000:{number >> 5:02x}:{number & 31:02x}.0"
            speed = f"{pcie_rate(link.generation, link.width):.6f}" if pcie_rate(link.generation, link.width) else None
            if device.kind in ("switch", "bridge"):
                bus = int(bus_id[5:7], 16)
                self._open(depth, "Bridge", bridge_type="1-1", depth=level, pci_busid=bus_id, pci_link_speed=speed,
                           bridge_pci=f"0000:[{bus:02x}-{bus:02x}]", pci_type="0604 [0000:0000] [0000:0000] 00")  # fmt: skip
                self._info(depth + 1, _DEVICE, device.kind)
                self._declare_pcie(depth + 1, link)
                self._write_below(child, depth + 1, level + 1)
            else:
                gp = self._open(depth, "PCIDev", pci_busid=bus_id, pci_link_speed=speed,
                                pci_type=f"{_PCI_TYPE.get(device.kind, '0000 [0000:0000]')} [0000:0000] 00")  # fmt: skip
                self._declare_endpoint(depth + 1, device, link)
                if device.kind == "gpu":
                    self._gp_of_gpu[child] = gp
            self._close(depth)

    def _declare_endpoint(self, depth: int, device: _core.Device, link: _core.Link) -> None:
        self._info(depth, "WaywiserName", device.name)
        self._info(depth, "WaywiserNumber", device.id.removeprefix(device.kind))
        self._declare_pcie(depth, link)
        if device.kind == "gpu":
            self._open(depth, "OSDev", name=f"cuda{device.id[3:]}", subtype="CUDA", osdev_type=5)
            self._info(depth + 1, "GPUModel", device.name)
            if device.memory_bytes:
                self._info(depth + 1, "CUDAGlobalMemorySize", str(device.memory_bytes // 1024))
            self._close(depth)
        elif device.kind == "nic":
            self._open(depth, "OSDev", name=device.name, osdev_type=3)
            self._close(depth)

    def _declare_pcie(self, depth: int, link: _core.Link) -> None:
        self._info(depth, _LINK, json.dumps(_facts(link)))

    def _declarations(self) -> list[str]:
        """Devices and links that have no place in hwloc's tree."""
        lines = []
        for device in self._topology.devices:
            if device.id not in self._written:
                facts = {"id": device.id, "kind": device.kind, "name": device.name, "numa": device.numa}
                facts |= {"attributes": dict(device.attributes)} if device.attributes else {}
                lines.append(open_tag("info", {"name": _DEVICE, "value": json.dumps(facts)}, close=True))
        for link in self._topology.links:
            tree = link.kind in ("memory", "internal") or (link.kind == "pcie" and {link.a, link.b} <= self._written)
            if not tree:
                facts = {"a": link.a, "b": link.b, **_facts(link)}
                lines.append(open_tag("info", {"name": _LINK, "value": json.dumps(facts)}, close=True))
        return ["    " + line for line in lines]

    def _nvlinks(self) -> list[str]:
        """Direct NVLinks once more, as hwloc itself writes them."""
        gpus = list(self._gp_of_gpu)
        rates = {frozenset((link.a, link.b)): round((link.nominal or 0) / 1e6)
                 for link in self._topology.links if link.kind == "nvlink"}  # fmt: skip
        values = [rates.get(frozenset((a, b)), 0) if a != b else 0 for a in gpus for b in gpus]
        if not any(values):
            return []
        indexes, matrix = " ".join(str(self._gp_of_gpu[gpu]) for gpu in gpus), " ".join(map(str, values))
        return [
            "  " + open_tag("distances2", {"type": "PCIDev", "nbobjs": len(gpus), "kind": 9,
                                           "name": "NVLinkBandwidth", "indexing": "gp"}),  # fmt: skip
            f'    <indexes length="{len(indexes)}">{indexes}</indexes>',
            f'    <u64values length="{len(matrix)}">{matrix}</u64values>',
            "  </distances2>",
        ]


def _facts(link: _core.Link) -> dict[str, object]:
    facts = {
        "kind": link.kind,
        "generation": link.generation,
        "width": link.width,
        "max_generation": link.max_generation,
        "max_width": link.max_width,
        "count": link.count,
        "nominal": link.nominal,
        "achievable": link.achievable,
        "source": link.source,
    }
    return {key: value for key, value in facts.items() if value not in (0, None, "")}
