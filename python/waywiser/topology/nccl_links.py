"""NVLinks and xGMI links of an NCCL topology file, once all their ends are known."""

from __future__ import annotations

from collections import Counter
from xml.etree.ElementTree import Element

from waywiser import _core
from waywiser.topology.builder import TopologyBuilder
from waywiser.topology.gpu_models import is_gpu, nvlink_generation
from waywiser.topology.safe_xml import whole
from waywiser.topology.same_machine import SameMachine

_BY_SM = {6: 1, 7: 2, 8: 3, 9: 4, 10: 5, 12: 5}


class GpuLinks:
    """Collects the `nvlink` and `xgmi` elements; `join` makes links of them."""

    def __init__(self, build: TopologyBuilder, hosts: dict[int, str]) -> None:
        """`hosts`: the package of each NUMA node, complete when `join` is called."""
        self._build = build
        self._hosts = hosts
        self._gpus: dict[str, str] = {}  # bus id -> device
        self._generation: dict[str, int] = {}
        self._elements: list[tuple[str, Element]] = []
        self._nvswitches: dict[str, str] = {}

    def add_gpu(self, id_: str, bus_id: str, name: str, sm: int) -> None:
        """Registers a GPU as an end of links."""
        self._gpus[bus_id] = id_
        self._generation[id_] = nvlink_generation(name) or _BY_SM.get(sm // 10, 0)

    def add_link(self, gpu: str, element: Element) -> None:
        """Registers an element inside the `gpu` element of a GPU."""
        self._elements.append((gpu, element))

    def join(self, trunks: str) -> None:
        """Adds the links; `trunks` lists those between NVSwitches."""
        counts: Counter[tuple[str, str, str]] = Counter()
        unknown: dict[str, None] = {}
        for gpu, element in self._elements:
            target = self._target(gpu, element)
            count = max(whole(element.get("count"), 1, 1024), 1)
            if target is None or target == gpu:
                end = "at the GPU itself" if target else "at a device that is not in the file"
                self._build.leave_out(f"{'NVLink' if element.tag == 'nvlink' else 'xGMI link'} that ends {end}", count)
                unknown[gpu] = None
            else:
                counts[gpu, target, element.tag] += count
        for (a, b, kind), count in counts.items():
            if b in self._generation and (b, a, kind) in counts and b < a:
                continue  # the same links, seen from the other GPU
            generation = self._generation[a] if kind == "nvlink" else 0
            source = "" if kind == "nvlink" else "the file does not give the rate of xGMI"
            self._build.link(a, b, kind, source, generation=generation, max_generation=generation, count=count)
        self._join_nvswitches(trunks)
        self._build.links_unknown(unknown, "links of the file lead nowhere")

    def _target(self, gpu: str, link: Element) -> str | None:
        class_, target = link.get("tclass", "").lower().removeprefix("0x"), link.get("target", "").lower()
        if target in self._gpus and (is_gpu(class_, "") or class_[:2] in ("03", "12")):
            return self._gpus[target]
        if class_.startswith("068001"):
            return self._hosts[self._build.device(gpu)["numa"]]
        if not class_.startswith("0680"):
            return None
        fabric = link.get("waywiser_nvswitch", "")  # NCCL treats all NVSwitches as one
        if fabric not in self._nvswitches:
            self._nvswitches[fabric] = self._build.add("nvswitch", "NVSwitch")
        return self._nvswitches[fabric]

    def _join_nvswitches(self, text: str) -> None:
        """`text` lists links between NVSwitches: "nvswitch0:nvswitch1:links:generation"."""
        for part in text.split()[:64]:
            a, b, count, generation = (*part.split(":"), "", "", "", "")[:4]
            ends = self._nvswitches.get(a), self._nvswitches.get(b)
            if ends[0] and ends[1]:
                number = whole(generation, 0, 9)
                facts = {"generation": number, "max_generation": number, "count": max(1, whole(count, 1, 1024))}
                self._build.link(ends[0], ends[1], "nvlink", "", **facts)

    def take_over(self, here: SameMachine) -> None:
        """Memories of the GPUs, and the links between them, from the driver of this machine."""
        ids = {device.id: self._gpus[device.bus_id] for device in here.topology.devices if device.bus_id in self._gpus}
        for id_, own in ids.items():
            known = self._build.device(own)
            known["memory_bytes"] = here.topology.device(id_).memory_bytes
            known["attributes"] = {_renamed(key, ids): value for key, value in known["attributes"].items()}
        present = {frozenset((link["a"], link["b"])) for link in self._build.links}
        for device in here.topology.devices:
            if device.kind == "nvswitch":
                ids[device.id] = self._build.add("nvswitch", device.name, attributes=dict(device.attributes))
        for link in here.topology.links:
            a, b = ids.get(link.a, ""), ids.get(link.b, "")
            if link.kind == "nvlink" and a and b and frozenset((a, b)) not in present:
                self._build.link(a, b, "nvlink", link.source, **_facts(link))


def _renamed(key: str, ids: dict[str, str]) -> str:
    """ "peer:gpu1", with the file's number of that GPU."""
    return f"peer:{ids.get(key[5:], key[5:])}" if key.startswith("peer:") else key


def _facts(link: _core.Link) -> dict[str, object]:
    facts = {"generation": link.generation, "max_generation": link.max_generation, "count": link.count}
    return facts | {"nominal": link.nominal, "achievable": link.achievable}
