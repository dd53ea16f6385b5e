"""Writes hwloc 2 XML. Facts without a place in hwloc go into `info` elements, which hwloc keeps and ignores."""

from __future__ import annotations

import json
from collections import defaultdict

from waywiser import _core
from waywiser.topology import hwloc_infos
from waywiser.topology.builder import cpus_of_list, mask_of_cpus, pcie_rate
from waywiser.topology.gpu_models import is_amd
from waywiser.topology.safe_xml import open_tag


def write_hwloc(topology: _core.Topology) -> str:
    """The machine as hwloc 2 XML, for `lstopo -i` and HWLOC_XMLFILE."""
    return _Writer(topology).text()


_PCI_TYPE = {
    "gpu": "0302 [10de:0000]",
    "amd": "1200 [1002:0000]",
    "nic": "0207 [15b3:0000]",
    "nvme": "0108 [0000:0000]",
}


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
        """CPUs of each memory; hwloc needs some, so a memory without CPUs in the topology gets one."""
        cpus: dict[str, list[int]] = {}
        taken: set[int] = set()
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
        cpus = [cpu for host in hosts for cpu in self._cpus[host]] or cpus_of_list(self._devices[package].cores)
        self._open(2, "Package", os_index=package[3:], **self._sets(cpus, hosts))
        self._info(3, "CPUModel", self._devices[package].name)
        self._info(3, "WaywiserNumber", package[3:])
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
        for _, link in self._others(host, "memory"):
            self._declare_link(depth + 1, link)
        self._declare_attributes(depth + 1, device)
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
                self._open(
                    depth,
                    "Bridge",
                    bridge_type="1-1",
                    depth=level,
                    pci_busid=bus_id,
                    pci_link_speed=speed,
                    bridge_pci=f"0000:[{bus:02x}-{bus:02x}]",
                    pci_type="0604 [0000:0000] [0000:0000] 00",
                )
                self._info(depth + 1, hwloc_infos.DEVICE, device.kind)
                self._declare_link(depth + 1, link)
                self._write_below(child, depth + 1, level + 1)
            else:
                kind = "amd" if is_amd(device.attributes) else device.kind
                gp = self._open(
                    depth,
                    "PCIDev",
                    pci_busid=bus_id,
                    pci_link_speed=speed,
                    pci_type=f"{_PCI_TYPE.get(kind, '0000 [0000:0000]')} [0000:0000] 00",
                )
                self._declare_endpoint(depth + 1, device, link)
                if device.kind == "gpu":
                    self._gp_of_gpu[child] = gp
            self._close(depth)

    def _declare_endpoint(self, depth: int, device: _core.Device, link: _core.Link) -> None:
        self._info(depth, "WaywiserName", device.name)
        self._info(depth, "WaywiserNumber", device.id.removeprefix(device.kind))
        self._declare_link(depth, link)
        self._declare_attributes(depth, device)
        if device.kind == "gpu":
            self._open(depth, "OSDev", name=f"cuda{device.id[3:]}", subtype="CUDA", osdev_type=5)
            self._info(depth + 1, "GPUModel", device.name)
            if device.memory_bytes:
                self._info(depth + 1, "CUDAGlobalMemorySize", str(device.memory_bytes // 1024))
            self._close(depth)
        elif device.kind == "nic":
            self._open(depth, "OSDev", name=device.name, osdev_type=3)
            self._close(depth)

    def _declare_attributes(self, depth: int, device: _core.Device) -> None:
        if device.attributes:
            self._info(depth, hwloc_infos.ATTRIBUTES, json.dumps(dict(device.attributes)))

    def _declare_link(self, depth: int, link: _core.Link) -> None:
        self._info(depth, hwloc_infos.LINK, json.dumps(_facts(link)))

    def _declarations(self) -> list[str]:
        """Writes devices and links that have no place in hwloc's tree."""
        lines = []
        for device in self._topology.devices:
            if device.id not in self._written:
                facts = {"id": device.id, "kind": device.kind, "name": device.name, "numa": device.numa}
                facts |= {"attributes": dict(device.attributes)} if device.attributes else {}
                lines.append(open_tag("info", {"name": hwloc_infos.DEVICE, "value": json.dumps(facts)}, close=True))
        for link in self._topology.links:
            tree = link.kind in ("memory", "internal") or (link.kind == "pcie" and {link.a, link.b} <= self._written)
            if not tree:
                facts = {"a": link.a, "b": link.b, **_facts(link)}
                lines.append(open_tag("info", {"name": hwloc_infos.LINK, "value": json.dumps(facts)}, close=True))
        return ["    " + line for line in lines]

    def _nvlinks(self) -> list[str]:
        """Writes direct NVLinks again, in hwloc's own form."""
        gpus = list(self._gp_of_gpu)
        rates = {
            frozenset((link.a, link.b)): round((link.nominal or 0) / 1e6)
            for link in self._topology.links
            if link.kind == "nvlink"
        }
        values = [rates.get(frozenset((a, b)), 0) if a != b else 0 for a in gpus for b in gpus]
        if not any(values):
            return []
        indexes, matrix = " ".join(str(self._gp_of_gpu[gpu]) for gpu in gpus), " ".join(map(str, values))
        return [
            "  "
            + open_tag(
                "distances2",
                {"type": "PCIDev", "nbobjs": len(gpus), "kind": 9, "name": "NVLinkBandwidth", "indexing": "gp"},
            ),
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
