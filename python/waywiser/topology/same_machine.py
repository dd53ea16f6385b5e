"""Finds out, by PCI addresses of GPUs, whether a file describes this machine, so that the driver can add facts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from xml.etree.ElementTree import Element

from waywiser import _core
from waywiser.topology.gpu_models import is_gpu, pci_id
from waywiser.topology.safe_xml import whole


class SameMachine:
    """This machine's devices by PCI address; none if its GPUs differ from those of the file `root`."""

    def __init__(self, root: Element, discover: Callable[[], _core.Topology]) -> None:
        """`discover` is called only for a file that leaves something open."""
        self._discover = discover
        self._declared: dict[str, int] = {}  # GPUs with a `gpu` element: bus id -> number
        self._told: dict[str, int] = {}  # GPUs whose number comes from another source
        self._by_class: set[str] = set()
        self._open: set[str] = set()  # bus ids without a class
        for pci in root.iter("pci"):
            self._sort_in(pci)
        self._numbers = self._number()

    def _sort_in(self, pci: Element) -> None:
        bus_id = pci.get("busid", "").lower()[:40]
        gpu, class_ = pci.find("gpu"), pci.get("class", "").lower().removeprefix("0x")
        if gpu is not None:
            self._declared[bus_id] = whole(gpu.get("dev"), len(self._declared), 4095)
        elif is_gpu(class_, pci_id(pci.get("vendor"))):
            self._by_class.add(bus_id)
            if pci.get("waywiser_dev"):
                self._told[bus_id] = whole(pci.get("waywiser_dev"), 0, 4095)
        elif not class_ and pci.find("nic") is None and pci.find("pci") is None:
            self._open.add(bus_id)

    @cached_property
    def _live(self) -> _core.Topology | None:
        if not self._by_class and not self._open:
            return None
        live = self._discover()
        gpus = {live.device(id_).bus_id for id_ in live.ids("gpu")}
        told = self._by_class | self._declared.keys()
        return live if gpus and told <= gpus <= told | self._open else None

    @cached_property
    def _devices(self) -> dict[str, _core.Device]:
        live = self._live
        return {device.bus_id: device for device in live.devices if device.bus_id} if live else {}

    @property
    def is_it(self) -> bool:
        """Whether the file describes this machine."""
        return self._live is not None

    @property
    def topology(self) -> _core.Topology:
        """This machine; only valid if `is_it`."""
        assert self._live is not None
        return self._live

    def device(self, bus_id: str) -> _core.Device | None:
        """This machine's device at the address."""
        return self._devices.get(bus_id)

    def kind(self, bus_id: str) -> str:
        """The kind of an endpoint at the address; empty for what is not here or is no endpoint."""
        device = self.device(bus_id)
        return device.kind if device and device.kind in ("gpu", "nic", "nvme") else ""

    def _number(self) -> dict[str, int]:
        """Numbers of GPUs as CUDA gives them, by PCI address, unless the file gives them."""
        numbers = self._told | self._declared
        gpus = (self._by_class | {id_ for id_ in self._open if self.kind(id_) == "gpu"}) - numbers.keys()
        taken = set(numbers.values())
        free = (number for number in range(8192) if number not in taken)
        for bus_id in sorted(gpus):
            numbers[bus_id] = next(free)
        return numbers

    def number(self, pci: Element) -> int:
        """The number of the GPU at this element."""
        return self._numbers[pci.get("busid", "").lower()[:40]]
