"""Best settings of GPUDirect RDMA and GDRCopy between two nodes of each type, by message size.

Simulated: nothing here is a measurement. Run: python examples/rdma_settings.py [MACHINE ...]
"""

import sys

from waywiser.simulator.sweep import Sweep, best_settings
from waywiser.topology import load_topology
from waywiser.units import format_range

SIZES = [1 << power for power in range(3, 27)]


def main(machines: list[str]) -> None:
    print("Simulated: not a measurement. Best setting between gpu0 of two nodes, by message size:")
    for machine in machines:
        for operation in ("latency", "bidirectional"):
            sweep = Sweep(load_topology(machine), {"nodes": 2}, operation, SIZES, ["gdr", "gdrcopy"])
            curves = sweep.run(lambda *_: None)
            for first, last, best in best_settings(curves, SIZES):
                within = [size for size in SIZES if first <= size <= last]
                gain = max(curve.points[size] / best.points[size] for curve in curves for size in within)
                print(f"{machine:6} {operation:13} {format_range(first, last):20} {best.label():22} up to {gain:.1f}x")


if __name__ == "__main__":
    main(sys.argv[1:] or ["hse-a", "hse-c", "hse-e"])
