"""Every GPU, NIC and link in a topology file is read, or a note says what was left out; what is read stays the same
through both formats. WAYWISER_TOPOLOGIES adds a folder of files of clouds and vendors to the small ones of
tests/machines, which have the same shapes.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology import read_topology
from waywiser.topology.hwloc_writer import write_hwloc
from waywiser.topology.load import read_topology_file
from waywiser.topology.nccl_writer import write_nccl

VARIABLE = "WAYWISER_TOPOLOGIES"
MACHINES = Path(__file__).parents[1] / "machines"
FOLDERS = [MACHINES, *([Path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else [])]
FILES = sorted(path for folder in FOLDERS for path in folder.rglob("*") if path.suffix in (".xml", ".txt"))
SHOWN = ("02", "03", "12")  # PCI classes of NICs, display controllers and GPUs
LEFT_OUT = re.compile(r"left out: ([^;]*?)(?: \((\d+) of them\))?$")


def left_out(machine: _core.Topology, *words: str) -> int:
    """How many parts of the file the notes name as left out, of those with one of these words."""
    found = [LEFT_OUT.search(part) for note in machine.notes for part in re.split(r"; (?=left out: )", note)]
    counts = {match[1]: int(match[2] or 1) for match in found if match}
    return sum(number for what, number in counts.items() if any(word in what for word in words))


def endpoints(root: Element) -> Iterator[str]:
    """The bus ids of the GPUs and NICs in a file of either format."""
    for element in root.iter("pci"):
        class_ = element.get("class", "").lower().removeprefix("0x")
        if element.find("gpu") is not None or element.find("nic") is not None or class_.startswith(SHOWN):
            yield element.get("busid", "").lower()
    for element in root.iter("object"):
        if element.get("type") == "PCIDev" and element.get("pci_type", "").startswith(SHOWN):
            yield element.get("pci_busid", "")


def missing_endpoints(root: Element, machine: _core.Topology) -> list[str]:
    known = Counter(machine.device(id_).bus_id for kind in ("gpu", "nic") for id_ in machine.ids(kind))
    missing = list((Counter(endpoints(root)) - known).elements())
    return missing if len(missing) > left_out(machine, "PCI device", "other elements") else []


def unexplained_links(root: Element, machine: _core.Topology) -> int:
    """Links of GPUs in NCCL's format that are not read and not named in a note. Links of two GPUs are there twice."""
    in_file = sum(max(int(each.get("count", "1")), 1) for tag in ("nvlink", "xgmi") for each in root.iter(tag))
    gpus = set(machine.ids("gpu"))
    read = sum(link.count * (2 if {link.a, link.b} <= gpus else 1) for link in gpu_links(machine))
    return in_file - read - left_out(machine, "NVLink", "xGMI link", "other elements") if in_file else 0


def gpu_links(machine: _core.Topology) -> list[_core.Link]:
    gpus = set(machine.ids("gpu"))
    return [link for link in machine.links if link.kind in ("nvlink", "xgmi") and {link.a, link.b} & gpus]


def unread_pairs(root: Element, machine: _core.Topology) -> set[tuple[str, str]]:
    """The pairs of GPUs that hwloc's matrices connect and the machine does not."""
    by_bus = {machine.device(id_).bus_id: id_ for id_ in machine.ids("gpu")}
    gpu_of = {
        part.get("gp_index", ""): by_bus[device.get("pci_busid", "")]
        for device in root.iter("object")
        if device.get("pci_busid") in by_bus
        for part in device.iter("object")
    }
    read = {pair for link in gpu_links(machine) for pair in ((link.a, link.b), (link.b, link.a))}
    missing = set()
    for matrix in [*root.iter("distances2"), *root.iter("distances2hetero")]:
        if matrix.get("name") not in ("NVLinkBandwidth", "XGMIBandwidth"):
            continue
        ends, values = (
            re.findall(r"(?:\w+:)?(\d+)", " ".join(part.text or "" for part in matrix.iter(tag)))
            for tag in ("indexes", "u64values")
        )
        for number, value in enumerate(values):
            a, b = (gpu_of.get(ends[at]) for at in divmod(number, len(ends)))
            if a and b and a != b and int(value) and (a, b) not in read:
                missing.add((a, b))
    return missing


def relations(machine: _core.Topology) -> dict[tuple[str, str], str]:
    """Of GPUs and NICs, by bus id."""
    ends = [(machine.device(id_).bus_id or id_, id_) for kind in ("gpu", "nic") for id_ in machine.ids(kind)]
    return {(a, b): machine.relation(one, other) for a, one in ends for b, other in ends if a != b}


def test_the_folder_has_files() -> None:
    for folder in FOLDERS:
        assert any(file.is_relative_to(folder) for file in FILES), folder


def test_lost_parts_are_found() -> None:
    file = MACHINES / "xgmi.xml"
    machine, root = read_topology_file(file), ElementTree.parse(file).getroot()
    assert not missing_endpoints(root, machine) and not unexplained_links(root, machine)
    next(root.iter("cpu")).append(Element("pci", {"busid": "0000:ff:00.0", "class": "0x030200"}))
    assert missing_endpoints(root, machine) == ["0000:ff:00.0"]
    next(root.iter("gpu")).append(Element("nvlink", {"target": "0000:fe:00.0", "tclass": "0x068000"}))
    assert unexplained_links(root, machine) == 1
    assert left_out(machine, "PCI device") == 0

    machine, text = read_topology_file(MACHINES / "nvswitch.xml"), (MACHINES / "nvswitch.xml").read_text()
    assert not unread_pairs(ElementTree.fromstring(text), machine)
    joined = ElementTree.fromstring(text.replace('<u64values length="191">0 0 ', '<u64values length="191">0 7 '))
    assert unread_pairs(joined, machine) == {("gpu0", "gpu1")}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_every_part_of_a_file_is_read_or_named(file: Path) -> None:
    is_xml = file.suffix == ".xml"
    root = ElementTree.parse(file).getroot() if is_xml else None
    if root is not None and root.tag == "graphs":
        with pytest.raises(InputError, match="a graph file of NCCL"):
            read_topology_file(file)
        return
    machine = read_topology_file(file)
    if root is not None:
        assert missing_endpoints(root, machine) == [], machine.notes
        assert unexplained_links(root, machine) <= 0, machine.notes
        assert unread_pairs(root, machine) == set(), machine.notes
    for write in (write_nccl, write_hwloc):
        again = read_topology(write(machine), file.name)
        assert relations(again) == relations(machine)
