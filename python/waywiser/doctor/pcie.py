"""Checks of PCIe and of the IOMMU, which peer traffic passes through."""

from __future__ import annotations

from waywiser.look import machine, nvidia, pci, rdma
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, unknown, warning
from waywiser.look.root import Root

_EXPRESS, _ACS, _ATS = 0x10, 0x0D, 0x0F
_REDIRECTS = 0x1C  # request redirect, completion redirect, upstream forwarding
_DEVICE_CONTROL = 8
_GROUPS = "/sys/kernel/iommu_groups"
_SLOT = r"insufficient power|High temperature|Port module event\[error\]|available PCIe bandwidth, limited by"


def _devices(root: Root) -> list[pci.Device]:
    """GPUs and NICs with RDMA."""
    nics = [device for name in rdma.devices(root) if (device := rdma.pci_device(root, name))]
    return [*pci.gpus(root), *nics]


def iommu(root: Root) -> Finding:
    """D09."""
    devices = _devices(root)
    if not devices:
        return absent("no GPU and no RDMA device")
    if not root.names("/sys/class/iommu"):
        vm = " in this virtual machine (the host's cannot be seen from here)" if machine.in_vm(root) else ""
        return ok(f"no IOMMU is active{vm}")
    translated, unseen = [], []
    for device in devices:
        group = (root.link(f"{device.folder}/iommu_group") or "").rsplit("/", 1)[-1]
        if not group:
            unseen.append(device.address)
        elif root.needed(f"{_GROUPS}/{group}/type") != "identity":
            translated.append(device.address)
    if translated:
        return problem(f"the IOMMU translates for {machine.named(translated)}: peer copies are slow or lost")
    if unseen:
        raise Unknown(f"an IOMMU is active: needs iommu_group of {machine.named(unseen)}, which is not there")
    return ok("the IOMMU is on, but passes GPU and NIC through")


def acs(root: Root) -> Finding:
    """D10."""
    devices = _devices(root)
    if len(devices) < 2:
        return absent("fewer than two devices that could exchange data")
    bridges = sorted({bridge for device in devices for bridge in device.above})
    if not bridges:
        return absent("a flat PCI tree: no bridge above GPU or NIC")
    redirecting = []
    for bridge in bridges:
        found = pci.extended_capability(root, bridge, _ACS)
        if found and pci.register(found, 6) & _REDIRECTS:
            redirecting.append(bridge)
    if not redirecting:
        return ok(f"none of {len(bridges)} bridges redirects peer traffic")
    text = f"ACS sends peer traffic up to the CPU at {machine.named(redirecting)}"
    return warning(f"{text}; in a virtual machine keep it and use ATS") if machine.in_vm(root) else problem(text)


def trained(root: Root) -> Finding:
    """D12."""
    devices = _devices(root)
    if not devices:
        return absent("no GPU and no RDMA device")
    gpus = {device.address for device in pci.gpus(root)}
    idle = {bridge for device in devices if device.address in gpus for bridge in device.above} | gpus
    narrow, slow, told = [], [], False
    for device in devices:
        chain = (device.address, *device.above)
        for address, above in zip(chain, (*chain[1:], ""), strict=True):
            here, upper = pci.link(root, address), pci.link(root, above) if above else None
            told = told or bool(here.width and here.most_width)
            most_width = min(here.most_width, upper.most_width or here.most_width) if upper else here.most_width
            most_speed = min(here.most_speed, upper.most_speed or here.most_speed) if upper else here.most_speed
            if 0 < here.width < most_width:
                narrow.append(f"{address} x{here.width} of x{most_width}")
            elif 0 < here.speed < most_speed:
                slow.append((address, f"{address} {here.speed:g} of {most_speed:g} GT/s"))
    return _verdict(root, sorted(set(narrow)), dict(slow), idle, told)


def _verdict(root: Root, narrow: list[str], slow: dict[str, str], idle: set[str], told: bool) -> Finding:
    if not told:
        raise Unknown("needs current_link_width of the devices, which this machine does not report")
    if narrow:
        return problem(f"trained with too few lanes: {machine.named(narrow)}")
    surely = [text for address, text in slow.items() if address not in idle]
    if surely:
        return problem(f"trained too slow: {machine.named(surely)}")
    if slow and _busy(root):
        return problem(f"too slow, though the GPUs are under load: {machine.named(slow.values())}")
    if slow:
        return unknown(f"an idle GPU lowers its speed ({machine.named(slow.values())}); needs a check under load")
    return ok("every PCIe link of GPUs, NICs and the bridges above has its full width and speed")


def _busy(root: Root) -> bool:
    """Whether all GPUs are in their fastest performance state."""
    try:
        _, gpus = nvidia.query(root)
    except Unknown:
        return False
    return all(nvidia.value(gpu, "Performance State") == "P0" for gpu in gpus.values())


def requests(root: Root) -> Finding:
    """D30."""
    nics = [device for name in rdma.devices(root) if (device := rdma.pci_device(root, name))]
    if not nics:
        return absent("no RDMA device on PCI")
    for name in ("UCX_IB_PCI_RELAXED_ORDERING", "NCCL_IB_PCI_RELAXED_ORDERING"):
        if root.environment.get(name, "").lower() in ("n", "no", "0", "off"):
            return warning(f"{name}={root.environment[name]} switches relaxed ordering off")
    bad = []
    for nic in nics:
        found = pci.capability(root, nic.address, _EXPRESS)
        control = pci.register(found, _DEVICE_CONTROL) if found else 0
        read = 128 << (control >> 12 & 7)
        if found and read < 512:
            bad.append(f"{nic.address} requests at most {read} bytes at once")
        if found and not control & 0x10:
            bad.append(f"{nic.address} has relaxed ordering off")
    return warning(machine.named(bad)) if bad else ok("NICs may reorder, and may request 512 bytes or more at once")


def virtual_machine(root: Root) -> Finding:
    """D31."""
    if not machine.in_vm(root):
        return absent("not a virtual machine")
    gpus, devices = pci.gpus(root), _devices(root)
    if not gpus:
        return absent("a virtual machine without an NVIDIA GPU")
    flat = not any(device.above for device in devices)
    if len(devices) == len(gpus):
        if flat and len(gpus) > 1:
            return warning("the PCI tree is flat: it does not show which GPUs are near to each other")
        return ok("a virtual machine without an RDMA device: no address translation service needed")
    off = [nic.address for nic in devices[len(gpus) :] if not _translates(root, nic.address)]
    if off:
        return problem(
            f"the address translation service (ATS) is off at {machine.named(off)}: GPUDirect RDMA is very slow"
        )
    if flat:
        return warning("the PCI tree is flat: NCCL and UCX cannot see which NIC is near to which GPU")
    return ok("address translation service is on at the NICs and the PCI tree shows what is near")


def _translates(root: Root, address: str) -> bool:
    found = pci.extended_capability(root, address, _ATS)
    return bool(found and pci.register(found, 6) & 0x8000)


def sleep(root: Root) -> Finding:
    """D51."""
    devices = _devices(root)
    if not devices:
        return absent("no GPU and no RDMA device")
    asleep = [device.address for device in devices if pci.sleeps(root, device.address)]
    if asleep:
        return warning(f"the link of {machine.named(asleep)} may sleep (ASPM): the next transfer waits until it wakes")
    return ok("the links of GPUs and NICs do not sleep")


def slots(root: Root) -> Finding:
    """D56."""
    devices = {device.address for device in _devices(root)}
    if not devices:
        return absent("no GPU and no RDMA device")
    told = [line for line in machine.kernel_messages(root, _SLOT) if any(address in line for address in devices)]
    limited = [line for line in told if "limited by" in line]
    if starved := [line for line in told if line not in limited]:
        return problem(f"{len(starved)} messages about power, heat or cable modules, the last: {starved[-1]}")
    if limited:
        return warning(f"the slot carries less than the card could: {limited[-1]}")
    return ok("the kernel log has no message about power, heat, cable modules or narrow slots of GPUs and NICs")
