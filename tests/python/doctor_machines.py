"""Fake machines for the checks: files below a folder, answers of commands, variables."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waywiser.look.commands import Replayed
from waywiser.look.root import Root

Files = dict[str, Any]  # path -> text, bytes, or ("link", target)

GPU0, GPU1, NIC0, NIC1 = "0000:17:00.0", "0000:65:00.0", "0000:18:00.0", "0000:66:00.0"
BRIDGE0, BRIDGE1 = "0000:16:00.0", "0000:64:00.0"
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 2023\n"


def link(target: str) -> tuple[str, str]:
    return "link", target


def pci(
    address: str,
    vendor: str,
    kind: str,
    bridge: str | None = None,
    numa: int = 0,
    cpus: str = "0-3",
    **files: Any,
) -> Files:
    """A PCI device, below a bridge when one is given."""
    place = f"/sys/devices/pci0000:00/{bridge + '/' if bridge else ''}{address}"
    found: Files = {
        f"/sys/bus/pci/devices/{address}": link(place),
        f"{place}/vendor": vendor,
        f"{place}/class": kind,
        f"{place}/numa_node": str(numa),
        f"{place}/local_cpulist": cpus,
        **link_files(place, "32.0", "16", "32.0", "16"),
    }
    return found | {f"{place}/{name}": value for name, value in files.items()}


def link_files(place: str, speed: str, width: str, most_speed: str, most_width: str) -> Files:
    return {
        f"{place}/current_link_speed": f"{speed} GT/s PCIe",
        f"{place}/current_link_width": width,
        f"{place}/max_link_speed": f"{most_speed} GT/s PCIe",
        f"{place}/max_link_width": most_width,
    }


def gpu(address: str = GPU0, bridge: str | None = BRIDGE0, **more: Any) -> Files:
    found = pci(address, "0x10de", "0x030200", bridge, **more)
    return found | {f"/proc/driver/nvidia/gpus/{address}/information": "Model: H100\n"} | bridge_of(bridge)


def bridge_of(bridge: str | None, **more: Any) -> Files:
    return pci(bridge, "0x1000", "0x060400", **more) if bridge else {}


def nic(
    name: str = "mlx5_0",
    address: str = NIC0,
    bridge: str | None = BRIDGE0,
    state: str = "4: ACTIVE",
    rate: str = "400 Gb/sec (4X NDR)",
    layer: str = "InfiniBand",
    uverbs: str = "uverbs0",
    **more: Any,
) -> Files:
    """An RDMA device with one port and its device node."""
    port = f"/sys/class/infiniband/{name}/ports/1"
    device = f"/sys/devices/pci0000:00/{bridge + '/' if bridge else ''}{address}"
    return {
        **bridge_of(bridge),
        **pci(address, "0x15b3", "0x020700", bridge, **more),
        f"/sys/class/infiniband/{name}/device": link(device),
        f"{device}/infiniband_verbs/{uverbs}/dev": "231:192",
        f"/dev/infiniband/{uverbs}": "",
        f"{port}/state": state,
        f"{port}/phys_state": "5: LinkUp",
        f"{port}/rate": rate,
        f"{port}/link_layer": layer,
    }


def roce(gids: Mapping[int, tuple[str, str]], mtu: int = 9000) -> Files:
    """An Ethernet RDMA device with a table of (address, type)."""
    port = "/sys/class/infiniband/mlx5_0/ports/1"
    found = nic(layer="Ethernet")
    for index in range(4):
        address, kind = gids.get(index, ("0000:0000:0000:0000:0000:0000:0000:0000", ""))
        found[f"{port}/gids/{index}"] = address
        found[f"{port}/gid_attrs/types/{index}"] = kind
        found[f"{port}/gid_attrs/ndevs/{index}"] = "eth2"
    return found | {"/sys/class/net/eth2/mtu": str(mtu)}


LINK_LOCAL = "fe80:0000:0000:0000:0ac0:ebff:fe00:0001"
IPV4 = "0000:0000:0000:0000:0000:ffff:0a00:0001"


def config(extended: Mapping[int, Mapping[int, int]] | None = None, express: Mapping[int, int] | None = None) -> bytes:
    """A configuration space of 4 KiB; capability id -> {offset of a 16-bit register: value}."""
    data = bytearray(4096)
    if express is not None:
        data[0x34] = 0x40
        data[0x40] = 0x10
        for offset, value in express.items():
            struct.pack_into("<H", data, 0x40 + offset, value)
    at = 0x100
    for id_, registers in (extended or {}).items():
        struct.pack_into("<I", data, at, id_ | 1 << 16 | (at + 0x40) << 20)
        for offset, value in registers.items():
            struct.pack_into("<H", data, at + offset, value)
        at += 0x40
    return bytes(data)


def numa(nodes: int) -> Files:
    return {f"/sys/devices/system/node/node{i}/cpulist": f"{4 * i}-{4 * i + 3}" for i in range(nodes)}


def smi(*gpus: str, head: str = "CUDA Version                              : 13.0\n", **values: str) -> dict[str, str]:
    """`nvidia-smi -q`; values by name, sections before a dot: FB_Memory_Usage__Total="80 MiB"."""
    lines = [f"==============NVSMI LOG==============\n\nDriver Version                            : 580.95.05\n{head}"]
    for address in gpus or (GPU0,):
        lines.append(f"GPU 0000{address}\n")
        for name, value in {"Product_Name": "NVIDIA H100", **values}.items():
            *sections, key = name.replace("_", " ").split("  ")
            lines += [f"{'    ' * (i + 1)}{section}\n" for i, section in enumerate(sections)]
            lines.append(f"{'    ' * (len(sections) + 1)}{key:<34}: {value}\n")
    return {"nvidia-smi -q": "".join(lines)}


def cuda(gpus: int = 1, peers: list[list[bool]] | None = None, **attributes: int) -> dict[str, str]:
    """The answer of the CUDA probe."""
    found = {"dma_buf": 1, "writes_ordering": 100, "flush_options": 1, "posix_handles": 1, **attributes}
    matrix = peers or [[True] * gpus for _ in range(gpus)]
    return {"waywiser-probe cuda": json.dumps({"gpus": [found] * gpus, "peers": matrix})}


def verbs(**devices: str) -> dict[str, str]:
    return {"waywiser-probe verbs": json.dumps({"devices": devices})}


def cma(error: str = "") -> dict[str, str]:
    return {"waywiser-probe cma": json.dumps({"allowed": not error, "error": error})}


def nvlinks(*lines: str, errors: str = "") -> dict[str, str]:
    """Links of each GPU: "26.562 GB/s" or "<inactive>", separated by blanks between bars."""
    text = ""
    for index, line in enumerate(lines):
        text += f"GPU {index}: NVIDIA (UUID: GPU-x)\n"
        text += "".join(f"\t Link {i}: {state}\n" for i, state in enumerate(line.split("|")) if line)
    return {"nvidia-smi nvlink -s": text, "nvidia-smi nvlink -e": errors}


STATUS = "Name:\tx\nCapEff:\t0000000000000000\nCpus_allowed_list:\t{}\n"


def build(
    folder: Path,
    files: Mapping[str, Any],
    commands: Mapping[str, str | None] | None = None,
    environment: Mapping[str, str] | None = None,
    spaces: Mapping[str, tuple[int, int]] | None = None,
    user: int = 0,
    results: Path | None = None,
) -> Root:
    """Writes the files below `folder` and returns the root that sees them."""
    for path, value in files.items():
        place = folder / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, tuple):
            target = folder / value[1].lstrip("/")
            target.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)
        elif isinstance(value, bytes):
            place.write_bytes(value)
        else:
            place.write_text(value)
    return Root(folder, environment or {}, Replayed(commands or {}, spaces), user, results)


TWO_GPUS = gpu() | gpu(GPU1, BRIDGE1)
