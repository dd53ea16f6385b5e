"""Heat spreads over a ring of triangles that is cut into one part for each rank.

waywiser run -n 4 python examples/10_mesh.py
"""

import numpy as np

import waywiser as ww
from waywiser.mesh import Mesh, PartitionedMesh, partition

ROUND, WIDE, STEPS = 96, 12, 400

group = ww.join()

# The mesh: squares between two circles, each in two triangles. read_mesh("ring.msh") would read one.
turn, out = (each.ravel() for each in np.meshgrid(np.arange(ROUND), np.arange(WIDE + 1), indexing="ij"))
angle, radius = 2 * np.pi * turn / ROUND, 1 + out / WIDE
points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
inner = (out < WIDE).nonzero()[0]
beside = (inner + WIDE + 1) % len(points)
mesh = Mesh(points, [("triangle", np.stack([inner, inner + 1, beside], axis=1)),
                     ("triangle", np.stack([beside, inner + 1, beside + 1], axis=1))])  # fmt: skip

parts = partition(mesh, group.size, "bisection")
part = PartitionedMesh(group, mesh, parts)
heat = np.where(part.cells == 0, 1000.0, 0.0)  # all of it in the first triangle of the whole mesh

# Which of this rank's cells share a face: its own ones, and those beside ghosts.
local = np.full(len(mesh), -1)
local[part.cells] = np.arange(len(part.cells))
pairs = local[mesh.pairs]
pairs = pairs[(pairs >= 0).all(axis=1) & (pairs < part.owned).any(axis=1)]

halo = ww.HaloExchange(group, part, [heat])
for _step in range(STEPS):
    halo.exchange()
    flow = 0.2 * (heat[pairs[:, 1]] - heat[pairs[:, 0]])
    np.add.at(heat, pairs[:, 0], flow)
    np.add.at(heat, pairs[:, 1], -flow)

left = group.all_reduce(heat[: part.owned].sum(keepdims=True)).item()
warmest = group.all_reduce(heat[: part.owned].max(initial=0, keepdims=True), op="max").item()
if group.rank == 0:
    print(f"{len(mesh)} triangles after {STEPS} steps: {left:.6f} of 1000, the warmest has {warmest:.6f}", flush=True)
