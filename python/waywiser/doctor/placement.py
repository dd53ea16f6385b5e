"""Checks of NUMA and binding."""

from __future__ import annotations

from waywiser.look import machine, pci, rdma
from waywiser.look.finding import Finding, Unknown, absent, ok, problem, warning
from waywiser.look.root import Root
from waywiser.look.visible_gpus import VISIBLE, gpus_on_bus, visible_here


def _placed(root: Root) -> dict[str, pci.Device]:
    """Name -> device, of GPUs and NICs with RDMA."""
    found = {f"gpu{i}": device for i, device in enumerate(pci.gpus(root))}
    for name in rdma.devices(root):
        device = rdma.pci_device(root, name)
        if device:
            found[name] = device
    return found


def numa(root: Root) -> Finding:
    """D28."""
    devices, nodes = _placed(root), machine.numa_nodes(root)
    if not devices:
        return absent("no GPU and no RDMA device")
    if len(nodes) < 2:
        return ok("one NUMA node: nothing can be far")
    lost = [name for name, device in devices.items() if root.number(f"{device.folder}/numa_node") not in nodes]
    if lost:
        return problem(f"{len(nodes)} NUMA nodes, but the kernel does not know the node of {machine.named(lost)}")
    odd = [name for name, device in devices.items() if _contradicts(root, device)]
    if odd:
        return warning(f"NUMA node and local CPUs contradict each other: {machine.named(odd)}")
    return ok(f"the NUMA node of {machine.named(devices)} is known")


def _contradicts(root: Root, device: pci.Device) -> bool:
    node = root.number(f"{device.folder}/numa_node")
    local = machine.cpus(root.text(f"{device.folder}/local_cpulist") or "")
    own = machine.cpus(root.text(f"/sys/devices/system/node/node{node}/cpulist") or "")
    return bool(local and own) and not local & own


def affinity(root: Root) -> Finding:
    """D29."""
    devices, nodes = _placed(root), machine.numa_nodes(root)
    if not devices:
        return absent("no GPU and no RDMA device")
    if len(nodes) < 2:
        return ok("one NUMA node: every CPU is near")
    allowed = machine.cpus(machine.status_field(root, "Cpus_allowed_list"))
    mine, why, unknown = _near(root, list(devices))
    if not mine:
        return absent(f"this process sees no GPU: {why}")
    local = {name: machine.cpus(root.text(f"{devices[name].folder}/local_cpulist") or "") for name in mine}
    far = [name for name, near in local.items() if near and not near & allowed]
    if far and len(far) == len(local):
        return problem(f"bound to CPUs that are all far from {machine.named(far)}")
    if far and unknown:
        raise Unknown(f"{machine.named(far)} are far, but this process may not see them: {why}")
    everywhere = all(near and near < allowed for near in local.values())
    if machine.in_job(root) and everywhere and local:
        return warning(f"this rank is not bound to a NUMA node, although {machine.named(local)} have near CPUs")
    return ok(f"may run on CPUs near to {machine.named(name for name in local if name not in far) or 'all devices'}")


def _near(root: Root, names: list[str]) -> tuple[list[str], str, bool]:
    """The GPUs that this process sees, what is wrong with the variables, and whether it may not see all of them; the
    NICs if there is no GPU."""
    gpus = [name for name in names if name.startswith("gpu")]
    if not gpus:
        return names, "", False
    seen = visible_here(root, gpus_on_bus(root))
    return (gpus if seen.gpus is None else list(seen.gpus)), seen.why, seen.gpus is None


def hidden_peers(root: Root) -> Finding:
    """D17."""
    have = len(root.names("/proc/driver/nvidia/gpus")) or len(pci.gpus(root))
    if have < 2:
        return absent("fewer than two GPUs")
    nodes = [name for name in root.names("/dev") if name.startswith("nvidia") and name[6:].isdecimal()]
    if 0 < len(nodes) < have:
        return problem(f"the machine has {have} GPUs, this process can open {len(nodes)}: no CUDA IPC with the others")
    seen = visible_here(root, gpus_on_bus(root))
    if seen.count is None:
        raise Unknown(seen.why)
    if seen.count == have:
        return ok(f"all {have} GPUs are visible")
    if seen.count == 0:
        return problem(f"every GPU is hidden: {seen.why}")
    finding = problem if machine.in_job(root) and machine.local_size(root) > 1 else warning
    shows = f"{VISIBLE}={root.environment[VISIBLE]} shows" if VISIBLE in root.environment else "CUDA shows"
    said = f"{shows} {seen.count} of {have} GPUs: older libraries then cannot do peer copies"
    return finding(f"{said}; {seen.why}" if seen.why else said)
