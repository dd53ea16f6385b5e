"""Unstructured meshes over ranks: read one, cut it into parts, and get the partition of a halo exchange.

`waywiser.HaloExchange` fills the ghost cells of a `PartitionedMesh`.
"""

from waywiser.mesh.check import MeshCheck, MeshFinding, check_mesh
from waywiser.mesh.mesh import Mesh
from waywiser.mesh.partitioned import PartitionedMesh
from waywiser.mesh.parts import MeshParts, PartQuality, partition
from waywiser.mesh.reading import read_mesh
from waywiser.mesh.shapes import Shapes, face_shapes, shapes_of

__all__ = [
    "Mesh", "MeshCheck", "MeshFinding", "MeshParts", "PartQuality", "PartitionedMesh", "Shapes", "check_mesh",
    "face_shapes", "partition", "read_mesh", "shapes_of",
]  # fmt: skip
