"""Checks of NUMA and binding."""

from __future__ import annotations

from waywiser.look import machine, pci, rdma
from waywiser.look.finding import Finding, absent, ok, problem, warning
from waywiser.look.root import Root


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
    mine = visible_gpus(root, list(devices))
    local = {name: machine.cpus(root.text(f"{devices[name].folder}/local_cpulist") or "") for name in mine}
    far = [name for name, near in local.items() if near and not near & allowed]
    if far and len(far) == len(local):
        return problem(f"bound to CPUs that are all far from {machine.named(far)}")
    everywhere = all(near and near < allowed for near in local.values())
    if machine.in_job(root) and everywhere and local:
        return warning(f"this rank is not bound to a NUMA node, although {machine.named(local)} have near CPUs")
    return ok(f"may run on CPUs near to {machine.named(name for name in local if name not in far) or 'all devices'}")


def visible_gpus(root: Root, names: list[str]) -> list[str]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves visible, in bus order; the NICs if there is no GPU."""
    gpus = [name for name in names if name.startswith("gpu")]
    text = root.environment.get("CUDA_VISIBLE_DEVICES")
    if text is None or not gpus:
        return gpus or names
    wanted = [f"gpu{part.strip()}" for part in text.split(",")]
    return [name for name in gpus if name in wanted] or gpus


def hidden_peers(root: Root) -> Finding:
    """D17."""
    have = len(root.names("/proc/driver/nvidia/gpus")) or len(pci.gpus(root))
    if have < 2:
        return absent("fewer than two GPUs")
    nodes = [name for name in root.names("/dev") if name.startswith("nvidia") and name[6:].isdecimal()]
    if 0 < len(nodes) < have:
        return problem(f"the machine has {have} GPUs, this process can open {len(nodes)}: no CUDA IPC with the others")
    text = root.environment.get("CUDA_VISIBLE_DEVICES")
    shown = have if text is None else len([part for part in text.split(",") if part.strip() not in ("", "-1")])
    if shown == have:
        return ok(f"all {have} GPUs are visible")
    if shown == 0:
        return problem(f"CUDA_VISIBLE_DEVICES={text!r} hides every GPU")
    finding = problem if machine.in_job(root) and machine.local_size(root) > 1 else warning
    return finding(
        f"CUDA_VISIBLE_DEVICES={text} shows {shown} of {have} GPUs: older libraries then cannot do peer copies"
    )
