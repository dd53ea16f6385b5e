"""Links between GPUs, NVSwitches and packages in hwloc's matrices of distances, NVLinkBandwidth and XGMIBandwidth.

hwloc gives the sum of all links between two objects in MB/s per direction. In hwloc each NVSwitch is a PCI device;
NVSwitches that share a GPU become one device, as in all our topologies.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from waywiser.errors import InputError
from waywiser.topology.builder import TopologyBuilder
from waywiser.topology.gpu_models import has_no_nvlink, nvlink_generation
from waywiser.topology.safe_xml import whole

_MEGABYTES_A_LINK = {1: 20000, 5: 50000}  # values of hwloc's NVML back end; 25000 for the generations between
_MOST_OBJECTS = 1024
_BANDWIDTH = 8  # the bit of `kind` for bandwidth


class HwlocLinks:
    """Maps the objects of the matrices to devices, and adds the links."""

    def __init__(self, build: TopologyBuilder) -> None:
        self._build = build
        self._ids: dict[str, str] = {}  # gp_index -> device, or the bus id of an NVSwitch
        self._nvswitches: set[str] = set()
        self._looked_at: set[str] = set()  # GPUs whose links hwloc could have seen

    def add(self, id_: str, element: Element, *, below: bool = True) -> None:
        """Registers a device and its object, by default with the objects below it."""
        for part in element.iter("object") if below else [element]:
            self._ids[part.get("gp_index", "")] = id_
            if part.get("name", "").startswith(("nvml", "rsmi", "amdsmi")):
                self._looked_at.add(id_)

    def add_other(self, element: Element) -> None:
        """Registers a PCI device that is not shown: an NVSwitch, or a device that is left out."""
        class_, ids = element.get("pci_type", "")[:4], element.get("pci_type", "")[5:16]
        if element.get("subtype") == "NVSwitch" or (class_ == "0680" and ids.startswith("[10de:")):
            bus_id = element.get("pci_busid", "")[:40]
            self._ids[element.get("gp_index", "")] = bus_id
            self._nvswitches.add(bus_id)
        elif class_[:2] in ("02", "03", "12"):
            self._build.leave_out(f"PCI device of class {class_} {ids}")

    def read(self, root: Element) -> None:
        """Adds the links of all matrices, and notes for missing information."""
        matrices = [*root.findall("distances2"), *root.findall("distances2hetero")]
        known: set[str] = set()
        for matrix in matrices:
            name = matrix.get("name", "")[:40]
            if name in ("NVLinkBandwidth", "XGMIBandwidth"):
                known |= self._read_matrix(matrix, name)
            elif whole(matrix.get("kind")) & _BANDWIDTH:
                self._build.leave_out(f"matrix {name or 'without a name'} of bandwidths")
        if not known and self._nvswitches:
            self._build.leave_out("NVSwitch: the file does not give its links", len(self._nvswitches))
        gpus = [device for device in self._build.devices if device["kind"] == "gpu"]
        dark = [g for g in gpus if g["id"] not in known and (g["id"] not in self._looked_at or self._nvswitches)]
        silent = [gpu["id"] for gpu in dark if not has_no_nvlink(gpu["name"], gpu["attributes"].get("pci", ""))]
        self._build.links_unknown(silent, "hwloc saw the PCI bus, but no driver that reports them")

    def _read_matrix(self, matrix: Element, name: str) -> set[str]:
        """Adds the links of a matrix; returns the GPUs that it covers."""
        words = " ".join(e.text or "" for e in matrix.findall("indexes")).split()
        values = [whole(v) for v in " ".join(e.text or "" for e in matrix.findall("u64values")).split()]
        if len(words) > _MOST_OBJECTS or len(values) != len(words) ** 2:
            raise InputError(f"{self._build.what}: {name} has {len(values)} values for {len(words)} objects")
        ids = [self._ids.get(word.rpartition(":")[2], "") for word in words]
        groups = self._groups(ids, values)
        rates: dict[tuple[str, str], int] = {}
        for i, a in enumerate(ids):
            for j, b in enumerate(ids[:i]):
                value = max(values[i * len(ids) + j], values[j * len(ids) + i])
                ends = (groups.get(b, b), groups.get(a, a))
                if value and not all(ends):
                    self._build.leave_out(f"{name} with an object that is not shown")
                elif value and ends[0] != ends[1]:
                    rates[ends] = rates.get(ends, 0) + value
        for (a, b), rate in rates.items():
            self._add_link(a, b, "nvlink" if name.startswith("NVLink") else "xgmi", rate)
        self._note_apart(sorted(set(groups.values())), rates)
        return {id_ for id_ in ids if id_.startswith("gpu")}

    def _groups(self, ids: list[str], values: list[int]) -> dict[str, str]:
        """The device of each NVSwitch of the matrix; NVSwitches that share a GPU are one device."""
        together: list[tuple[set[str], set[str]]] = []  # NVSwitches, GPUs
        for i, switch in enumerate(ids):
            if switch not in self._nvswitches:
                continue
            row = range(len(ids))
            gpus = {ids[j] for j in row if ids[j].startswith("gpu") and values[i * len(ids) + j]}
            near = [group for group in together if group[1] & gpus]
            together = [group for group in together if group not in near]
            together.append(({switch}.union(*(g[0] for g in near)), gpus.union(*(g[1] for g in near))))
        groups: dict[str, str] = {}
        for switches, _ in together:
            facts = {"attributes": {"switches": str(len(switches))}}
            groups |= dict.fromkeys(switches, self._build.add("nvswitch", "NVSwitch", **facts))
        return groups

    def _note_apart(self, groups: list[str], rates: dict[tuple[str, str], int]) -> None:
        """Notes that NVLinks between groups of NVSwitches are unknown, since the driver does not report them."""
        if len(groups) < 2 or any(a in groups and b in groups for a, b in rates):
            return
        gpus = sorted({a if b in groups else b for a, b in rates if (a in groups) != (b in groups)}, key=_number)
        self._build.links_unknown(
            gpus, f"hwloc does not report the links between the {len(groups)} groups of NVSwitches"
        )

    def _add_link(self, a: str, b: str, kind: str, megabytes: int) -> None:
        if kind == "xgmi":  # hwloc always writes 100 GB/s, whatever the GPU
            self._build.link(a, b, "xgmi", "hwloc does not know the rate of xGMI")
            return
        names = [self._build.device(id_)["name"] for id_ in (a, b) if id_.startswith("gpu")]
        generation = nvlink_generation(names[0]) if names else 0
        count = min(max(1, round(megabytes / _MEGABYTES_A_LINK.get(generation, 25000))), 1024)
        facts: dict[str, float] = {"generation": generation, "max_generation": generation, "count": count}
        if not generation:
            facts |= {"nominal": megabytes * 1e6, "achievable": megabytes * 1e6}
        self._build.link(a, b, "nvlink", "" if generation else "NVLinkBandwidth of hwloc", **facts)


def _number(id_: str) -> int:
    return int(id_.lstrip("abcdefghijklmnopqrstuvwxyz") or 0)
