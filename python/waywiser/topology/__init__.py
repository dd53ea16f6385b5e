"""Machines from files: our own format, NCCL and hwloc XML, `nvidia-smi topo -m`, and the machines of the package."""

from waywiser.topology.load import load_topology, machine_names, read_topology

__all__ = ["load_topology", "machine_names", "read_topology"]
