"""Topology files in the shapes that clouds, NCCL, RCCL and hwloc write: all is read, or said to be left out or open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from waywiser import _core, cli
from waywiser.errors import InputError
from waywiser.topology import read_topology
from waywiser.topology.hwloc_writer import write_hwloc
from waywiser.topology.load import read_topology_file
from waywiser.topology.matrix import write_matrix
from waywiser.topology.nccl_reader import read_nccl
from waywiser.topology.nccl_writer import write_nccl

MACHINES = Path(__file__).parents[1] / "machines"
FILES = sorted(MACHINES.glob("*.xml"))


def read(name: str) -> _core.Topology:
    return read_topology_file(MACHINES / f"{name}.xml")


def noted(machine: _core.Topology, words: str) -> bool:
    return any(words in note for note in machine.notes)


def names(machine: _core.Topology, kind: str = "gpu") -> list[str]:
    return [machine.device(id_).name for id_ in machine.ids(kind)]


def out_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.run(list(arguments)) == 0
    return capsys.readouterr().out


def test_gpus_by_their_pci_class() -> None:
    machine = read("gpus_by_class")
    assert machine.ids("gpu") == ["gpu1", "gpu0"]  # numbers in the order of PCI addresses, as CUDA gives them
    assert machine.relation("gpu0", "nic1") == "PIX" and machine.relation("gpu0", "gpu1") == "SYS"
    assert machine.device("gpu0").bus_id == "0001:00:00.0" and machine.device("gpu0").numa == 1
    assert noted(machine, "gpu0-1: GPUs by their PCI class; the file does not name the model")
    assert noted(machine, "links between GPUs are not known for gpu0-1: the file leaves NVLinks to NCCL")


def test_models_by_pci_ids() -> None:
    machine = read("gpus_by_ids")
    assert names(machine) == ["NVIDIA A100-SXM4-80GB"] * 2 + ["Tesla T4", "AMD Instinct MI300X"]
    assert [machine.device(id_).attributes.get("sm") for id_ in machine.ids("gpu")] == ["80", "80", "75", None]
    assert noted(machine, "not known for gpu0-1, gpu3:")  # a T4 has no NVLinks
    assert noted(machine, "left out: PCI device: class 0x030000 of vendor 0x1a03")
    assert noted(machine, "left out: <collnet> in <cpu>")
    assert noted(machine, "AMD GPUs: ")
    assert machine.ids("nic") == ["nic0"] and not machine.ids("network")


def test_addresses_alone_say_nothing() -> None:
    machine = read("bus_ids")
    assert not machine.ids("gpu") and not machine.ids("root")
    assert noted(machine, "left out: PCI device: a bus id only, and not of this machine (3 of them)")


def here(*addresses: str) -> _core.Topology:
    """A machine with H100s at these addresses, behind one NVSwitch."""
    devices = [{"id": "host0", "kind": "host", "numa": 0}, {"id": "nvswitch0", "kind": "nvswitch", "name": "NVSwitch"}]
    devices += [{"id": "nic0", "kind": "nic", "name": "efa0", "bus_id": "0000:00:1b.0"}]
    links = []
    for number, address in enumerate(addresses):
        gpu = {"id": f"gpu{number}", "kind": "gpu", "name": "NVIDIA H100 80GB HBM3", "bus_id": address}
        devices.append(
            {**gpu, "memory_bytes": 80 << 30, "attributes": {"nvlinks": "18", f"peer:gpu{1 - number}": "ok"}}
        )
        link = {"a": gpu["id"], "b": "nvswitch0", "kind": "nvlink", "count": 18, "generation": 4, "max_generation": 4}
        links.append(link)
    value = {"schema": "waywiser.topology", "version": 1, "name": "here", "kind": "discovered"}
    return _core.Topology.from_json(json.dumps({**value, "devices": devices, "links": links}))


@pytest.mark.parametrize(
    ("name", "addresses"),
    [("gpus_by_class", ("0001:00:00.0", "0002:00:00.0")), ("bus_ids", ("0000:00:16.0", "0000:00:17.0"))],
)
def test_the_driver_fills_in_a_file_of_this_machine(name: str, addresses: tuple[str, str]) -> None:
    text = (MACHINES / f"{name}.xml").read_text()
    machine = read_nccl(text, name, lambda: here(*addresses))
    assert names(machine) == ["NVIDIA H100 80GB HBM3"] * 2
    assert machine.relation("gpu0", "gpu1") == "NV18" and machine.gpu_links_known("gpu0", "gpu1")
    assert machine.device("gpu0").memory_bytes == 80 << 30
    assert machine.why_no_peer_access("gpu0", "gpu1") is None
    assert noted(machine, "are those of this machine")
    if name == "bus_ids":
        assert names(machine, "nic") == ["efa0"]


def test_another_machine_fills_in_nothing() -> None:
    text = (MACHINES / "gpus_by_class.xml").read_text()
    for addresses in (("0001:00:00.0",), ("0001:00:00.0", "0003:00:00.0")):
        assert names(read_nccl(text, "x", lambda a=addresses: here(*a))) == ["GPU", "GPU"]


def test_links_that_lead_nowhere_are_not_denied() -> None:
    machine = read("links_to_itself")
    assert machine.relation("gpu0", "gpu1") == "PHB" and not machine.gpu_links_known("gpu0", "gpu1")
    assert noted(machine, "left out: NVLink that ends at the GPU itself (24 of them)")
    assert noted(machine, "left out: NIC eth0: the file names no PCI device for it")


def test_xgmi() -> None:
    machine = read("xgmi")
    words = [["X", "XGMI1", "PHB", "XGMI1"], ["XGMI1", "X", "XGMI1", "PHB"]]
    assert machine.matrix()[1][:2] == words
    assert machine.route("gpu0", "gpu1").limit is None  # unknown, and not guessed
    assert machine.device("gpu0").attributes["gcn"] == "gfx942" and "sm" not in machine.device("gpu0").attributes
    placement = machine.place(2)
    assert "the pair has xGMI" in placement.why and "gpu0 - gpu1: rate not known" in placement.why
    assert placement.gres_conf[-1] == "AutoDetect=rsmi"


def test_nvswitches_of_hwloc() -> None:
    machine = read("nvswitch")
    assert [machine.device(id_).attributes["switches"] for id_ in machine.ids("nvswitch")] == ["2", "2"]
    assert machine.relation("gpu0", "gpu1") == "NV6" and machine.route("gpu0", "gpu1").limit == 150e9
    assert machine.relation("gpu0", "gpu2") == "PHB" and not machine.gpu_links_known("gpu0", "gpu2")
    assert noted(machine, "hwloc does not report the links between the 2 groups of NVSwitches")


def test_nvlinks_to_a_package_of_hwloc() -> None:
    machine = read("nvlink_to_cpus")
    assert machine.relation("gpu0", "gpu1") == "NV2"
    assert machine.route("gpu0", "host0").limit == 40e9  # two NVLinks, not PCIe
    assert not any("left out" in note or "not known" in note for note in machine.notes)


def test_other_devices_of_hwloc() -> None:
    machine = read("other_devices")
    assert names(machine, "nic") == ["mlx4_0"]
    assert names(machine) == ["Tesla V100-SXM2-16GB"] * 2
    assert noted(machine, "links between GPUs are not known for gpu0-1: hwloc saw the PCI bus")
    assert noted(machine, "left out: PCI device of class 0280 [8086:2723]")
    assert noted(machine, "left out: matrix SomeBandwidth of bandwidths")
    assert machine.ids("cpu") == ["cpu0", "cpu1"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("write", [write_nccl, write_hwloc])
def test_what_is_written_again_is_the_same_machine(path: Path, write: object) -> None:
    machine = read_topology_file(path)
    back = read_topology(write(machine), "back")  # type: ignore[operator]
    assert back.matrix() == machine.matrix()
    assert sorted(back.ids("gpu")) == sorted(machine.ids("gpu")) and back.ids("root") == machine.ids("root")
    assert back.ids("network") == machine.ids("network") and names(back) == names(machine)
    for a in machine.ids("gpu"):
        for b in machine.ids("gpu"):
            assert back.gpu_links_known(a, b) == machine.gpu_links_known(a, b)


def test_a_table_keeps_xgmi() -> None:
    assert read_topology(write_matrix(read("xgmi")), "table").matrix()[1] == read("xgmi").matrix()[1]


@pytest.mark.parametrize("name", ["gpus_by_class", "links_to_itself", "nvswitch", "other_devices"])
def test_place_does_not_deny_what_is_not_known(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    machine = read(name)
    count = str(len(machine.ids("gpu")))
    out = out_of(capsys, "place", "--gpus", count, "--from", str(MACHINES / f"{name}.xml"))
    assert "have no NVLink" not in out and "Links=-1" not in out
    assert "is not known" in out and "# Links= is left out" in out
    assert f"note: {machine.notes[0]}" in out
    answer = json.loads(out_of(capsys, "place", "--gpus", count, "--json", "--from", str(MACHINES / f"{name}.xml")))
    assert answer["pairs_unknown"] > 0 and answer["notes"] == machine.notes


def test_place_prefers_a_pair_that_is_known() -> None:
    assert read("nvswitch").place(2).cuda_visible_devices == "0,1"
    assert read("nvswitch").place(2).pairs_unknown == 0


def test_notes_are_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = out_of(capsys, "topology", "--from", str(MACHINES / "gpus_by_class.xml"))
    assert "links to GPUs not known" in out and "note: gpu0-1: GPUs by their PCI class" in out
    assert "xGMI: gpu1 ×1, gpu3 ×1" in out_of(capsys, "topology", "--from", str(MACHINES / "xgmi.xml"))


def test_a_graph_file_of_nccl_is_named() -> None:
    with pytest.raises(InputError, match="a graph file of NCCL"):
        read_topology('<graphs version="1"/>', "x")


def test_what_is_not_known_gives_no_setting() -> None:
    from waywiser.apply.facts import Machine

    assert Machine(read("gpus_by_class")).peer_rate() is None
    assert Machine(read("xgmi")).peer_rate() is None
    known = Machine(read("nvlink_to_cpus")).peer_rate()
    assert known is not None and known.rate == 40e9
