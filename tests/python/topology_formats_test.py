"""NCCL XML, hwloc XML, synthetic strings and tables of nvidia-smi keep what they can express."""

from __future__ import annotations

import ctypes

import pytest

from waywiser import _core
from waywiser.errors import InputError
from waywiser.topology import load_topology, machine_names, read_topology
from waywiser.topology.hwloc_library import read_live
from waywiser.topology.hwloc_writer import write_hwloc
from waywiser.topology.matrix import write_matrix
from waywiser.topology.nccl_writer import write_nccl


def _has_hwloc() -> bool:
    try:
        ctypes.CDLL("libhwloc.so.15")
    except OSError:
        return False
    return True


needs_hwloc = pytest.mark.skipif(not _has_hwloc(), reason="libhwloc.so.15 is not installed")


def _routes(machine: _core.Topology) -> dict[tuple[str, str], float | None]:
    return {(a, b): machine.route(a, b).limit for a in machine.places() for b in machine.places()}


@pytest.mark.parametrize("name", machine_names())
def test_hwloc_xml_keeps_relations_and_rates(name: str) -> None:
    machine = load_topology(name)
    back = read_topology(write_hwloc(machine), "hwloc")
    assert back.matrix() == machine.matrix()
    assert _routes(back) == _routes(machine)
    assert back.name == name


@pytest.mark.parametrize("name", machine_names())
def test_nccl_xml_keeps_relations_and_gpu_rates(name: str) -> None:
    machine = load_topology(name)
    back = read_topology(write_nccl(machine), "nccl")
    assert back.matrix() == machine.matrix()
    for a in machine.ids("gpu"):
        for b in machine.ids("gpu"):
            if machine.relation(a, b).startswith("NV"):
                assert back.route(a, b).limit == machine.route(a, b).limit


@pytest.mark.parametrize("name", machine_names())
def test_a_table_keeps_relations(name: str) -> None:
    machine = load_topology(name)
    assert read_topology(write_matrix(machine), "table").matrix()[1] == machine.matrix()[1]


@needs_hwloc
@pytest.mark.parametrize("name", ["dgx-1v", "dgx-2", "lassen"])
def test_hwloc_itself_reads_what_we_write(name: str) -> None:
    library = ctypes.CDLL("libhwloc.so.15")
    topology = ctypes.c_void_p()
    library.hwloc_topology_init(ctypes.byref(topology))
    text = write_hwloc(load_topology(name)).encode() + b"\0"
    assert library.hwloc_topology_set_xmlbuffer(topology, text, len(text)) == 0
    library.hwloc_topology_set_io_types_filter(topology, 0)
    assert library.hwloc_topology_load(topology) == 0
    buffer, length = ctypes.c_void_p(), ctypes.c_int()
    library.hwloc_topology_export_xmlbuffer(topology, ctypes.byref(buffer), ctypes.byref(length), ctypes.c_ulong(0))
    exported = ctypes.string_at(buffer, length.value - 1).decode()
    library.hwloc_topology_destroy(topology)
    assert read_topology(exported, "hwloc").matrix() == load_topology(name).matrix()


@needs_hwloc
def test_synthetic_strings() -> None:
    machine = load_topology("pack:2 [numa] core:8 pu:2")
    assert machine.places() == ["host0", "host1"]
    assert machine.ids("cpu") == ["cpu0", "cpu1"]
    assert machine.kind == "synthetic"
    assert [machine.device(id_).cores for id_ in machine.places()] == ["0-15", "16-31"]
    with pytest.raises(InputError, match="more than 65536"):
        load_topology("pack:99999 core:99999")
    with pytest.raises(InputError, match="hwloc does not understand"):
        load_topology("banana:2")


@needs_hwloc
def test_hwloc_sees_this_machine() -> None:
    assert read_live().places()


NCCL = """<system version="1">
  <cpu numaid="0" affinity="0000ffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="85">
    <pci busid="0000:17:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:18:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1"><nvlink target="0000:19:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:19:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
        <gpu dev="1" sm="80" rank="1" gdr="1"><nvlink target="0000:18:00.0" count="4" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:1a:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_0" dev="0" speed="200000" port="1"/></nic>
      </pci>
    </pci>
  </cpu>
</system>"""


def test_nccl_xml_of_nccl() -> None:
    machine = read_topology(NCCL, "topo.xml")
    assert machine.relation("gpu0", "gpu1") == "NV4"
    assert machine.relation("gpu0", "nic0") == "PIX"
    assert machine.route("gpu0", "gpu1").limit == 100e9
    assert machine.route("gpu1", "host0").limit == pytest.approx(15.75e9, rel=1e-3)
    assert machine.device("host0").cores == "0-15"
    assert machine.device("nic0").name == "mlx5_0"


HWLOC = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x0000000f" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x0000000f" gp_index="2">
   <info name="CPUModel" value="Some CPU"/>
   <object type="NUMANode" os_index="0" cpuset="0x0000000f" local_memory="68719476736" gp_index="3"/>
   <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[00-1f]" gp_index="4">
    <object type="Bridge" bridge_type="1-1" depth="1" pci_busid="0000:00:01.0" pci_type="0604 [8086:2030]" gp_index="5">
     <object type="Bridge" bridge_type="1-1" depth="2" pci_busid="0000:01:00.0" pci_type="0604 [10b5:8764]" gp_index="6"
             pci_link_speed="15.753846">
      <object type="Bridge" bridge_type="1-1" depth="3" pci_busid="0000:02:00.0" pci_type="0604 [10b5:8764]"
              gp_index="7">
       <object type="PCIDev" pci_busid="0000:03:00.0" pci_type="0302 [10de:1db1] [0:0] a1" gp_index="8"
               pci_link_speed="15.753846">
        <object type="OSDev" name="cuda0" subtype="CUDA" osdev_type="5" gp_index="9">
         <info name="GPUModel" value="Tesla V100-SXM2-16GB"/><info name="CUDAGlobalMemorySize" value="16777216"/>
        </object>
       </object>
      </object>
      <object type="Bridge" bridge_type="1-1" depth="3" pci_busid="0000:02:01.0" pci_type="0604 [10b5:8764]"
              gp_index="10">
       <object type="PCIDev" pci_busid="0000:04:00.0" pci_type="0302 [10de:1db1] [0:0] a1" gp_index="11"
               pci_link_speed="7.876923">
        <object type="OSDev" name="cuda1" subtype="CUDA" osdev_type="5" gp_index="12">
         <info name="GPUModel" value="Tesla V100-SXM2-16GB"/>
        </object>
       </object>
      </object>
     </object>
    </object>
   </object>
  </object>
 </object>
 <distances2 type="OSDev" nbobjs="2" kind="9" name="NVLinkBandwidth" indexing="gp">
  <indexes length="4">9 12 </indexes>
  <u64values length="20">1000000 50000 50000 1000000 </u64values>
 </distances2>
</topology>"""


def test_hwloc_xml_of_hwloc() -> None:
    machine = read_topology(HWLOC, "machine.xml")
    assert machine.ids("switch") == ["switch0"]
    assert machine.relation("gpu0", "gpu1") == "NV2"
    assert machine.route("gpu0", "gpu1").limit == 50e9
    assert machine.device("gpu0").memory_bytes == 16 << 30
    link = next(link for link in machine.links if link.b == "gpu1")
    assert (link.generation, link.width) == (3, 8)


TABLE = """\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV4\tNV4\tSYS\tPIX\tSYS\t0-15,32-47\t0\t\tN/A
GPU1\tNV4\t X \tPXB\tSYS\tPXB\tSYS\t0-15,32-47\t0\t\tN/A
GPU2\tNV4\tPXB\t X \tSYS\tPXB\tSYS\t0-15,32-47\t0\t\tN/A
GPU3\tSYS\tSYS\tSYS\t X \tSYS\tNODE\t16-31,48-63\t1\t\tN/A
NIC0\tPIX\tPXB\tPXB\tSYS\t X \tSYS
NIC1\tSYS\tSYS\tSYS\tNODE\tSYS\t X

Legend:

  X    = Self
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_bond_0
"""


def test_table_of_nvidia_smi() -> None:
    machine = read_topology(TABLE, "topo.txt")
    rows = [line.split()[1:7] for line in TABLE.splitlines()[1:7]]
    assert machine.matrix() == (["gpu0", "gpu1", "gpu2", "gpu3", "nic0", "nic1"], rows)
    assert machine.device("nic1").name == "mlx5_bond_0"
    assert machine.device("host1").cores == "16-31,48-63"


def test_a_table_with_nics_by_any_name_and_without_cpus() -> None:
    text = (
        "\tGPU0\tGPU1\trocep24s0\trocep162s0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\tX\tSYS\tPXB\tSYS\tN/A\t1\tN/A\nGPU1\tSYS\tX\tSYS\tPXB\tN/A\t0\tN/A\n"
        "rocep24s0\tPXB\tSYS\tX\tSYS\nrocep162s0\tSYS\tPXB\tSYS\tX\n"
    )
    machine = read_topology(text, "topo.txt")
    assert [machine.device(id_).name for id_ in machine.ids("nic")] == ["rocep24s0", "rocep162s0"]
    assert [(machine.device(id_).numa) for id_ in ("gpu0", "gpu1")] == [1, 0]
    assert {machine.device(id_).cores for id_ in machine.ids("host")} == {""}


def test_links_through_switches_count_for_each_gpu() -> None:
    rows = [["X" if i == j else "NV11" if 3 in (i, j) else "NV12" for j in range(4)] for i in range(4)]
    text = "\t".join(["", *(f"GPU{i}" for i in range(4))]) + "\n"
    text += "".join("\t".join([f"GPU{i}", *row]) + "\n" for i, row in enumerate(rows))
    machine = read_topology(text, "topo.txt")
    assert [link.count for link in machine.links if link.kind == "nvlink"] == [12, 12, 12, 11]


def test_a_table_that_no_tree_has_is_said_so() -> None:
    text = "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tPIX\tSYS\nGPU1\tPIX\tX\tPIX\nGPU2\tSYS\tPIX\tX\n"
    machine = read_topology(text, "topo.txt")
    assert "GPU0 - GPU2: the table says SYS, but no tree has that; PIX is used" in machine.notes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x: neither our JSON"),
        ("hello", "x: neither our JSON"),
        ("{}", "x: 'schema' is missing"),
        ("{", "x: not JSON"),
        ("<system>", "x: not valid XML"),
        ("<system></system>", "x: no <cpu> element"),
        ("<topology/>", "x: no object of type Machine"),
        ("<html/>", "x: the outermost element is 'html'"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><system>&b;</system>', "document type or entities is refused"),
        ('<system><cpu affinity="zz"/></system>', "'zz' is not a CPU mask"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\n", "x: 'GPU1' has a column, but no row"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tWHAT\n", "x: 'WHAT' in the row of GPU1 is not a relation"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\n", "x: the row of GPU1 is short"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU0\tX\tNV4\nGPU1\tNV4\tX", "x: the row of GPU0 is short, or there twice"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV0\nGPU1\tNV0\tX", "x: 'NV0' in the row of GPU0 is not a relation"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV19\nGPU1\tNV19\tX", "x: 'NV19' in the row of GPU0 is not a relation"),
        ("\tGPU0 GPU1 NIC0NIC1\nGPU0 X SYS PIXSYS\nGPU1 SYS X SYS\n", "x: 'NIC0NIC1' has a column, but no row"),
        ("\tGPU0 NIC0NIC1\nGPU0 X PIX SYS\nNIC0 PIX X\nNIC1 SYS X\n", "x: 'NIC0' has a row, but no column"),
        ("\tGPU0 NIC0\nGPU0 X PIX\nNIC0 PIX X\nNIC1 SYS SYS\n", "x: 'NIC1' has a row, but no column"),
        ("\tGPU0 GPU1\nGPU0 X SYS 0-3 0 SYS\nGPU1 SYS X\n", "x: 'SYS' in the row of GPU0 is in no column"),
        ("\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tPIX\tX\n", "x: GPU0 - GPU1 is NV4, the other way PIX"),
        ('\tGPU0\tty\b="1"/>\nty\b="1"/>\n', "x: 'ty\\x08=\"1\"/>' is no name of a device"),
    ],
)
def test_bad_texts_are_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises((InputError, _core.Error)) as caught:
        read_topology(text, "x")
    assert message in str(caught.value)
    assert str(caught.value).isprintable()


def test_deep_and_huge_xml_is_refused() -> None:
    with pytest.raises(InputError, match="nested deeper"):
        read_topology("<system>" + "<pci>" * 5000, "x")
    with pytest.raises(InputError, match="elements"):
        read_topology("<system>" + "<cpu/>" * 200_001 + "</system>", "x")
