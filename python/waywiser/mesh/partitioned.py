"""A rank's part of a mesh: the cells that it owns, its ghosts, and what it exchanges with which rank."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from waywiser.errors import InputError, InputTypeError
from waywiser.group.rank import known_to_all
from waywiser.halo.partition import MeshPartition
from waywiser.mesh.faces import Numbers
from waywiser.mesh.mesh import Mesh
from waywiser.mesh.parts import MeshParts

if TYPE_CHECKING:
    from waywiser.group.group import Group


class PartitionedMesh(MeshPartition):
    """This rank's part of a mesh, for `waywiser.HaloExchange`; all ranks make it together.

    Rank r owns part r. Its arrays hold the cells that it owns, then its ghosts: the cells of other parts that are at
    most `layers` faces away, by the rank that owns them. All ranks take the parts of rank 0.

    `cells`: the global number of each of this rank's cells, ghosts included, in the order of its arrays. `owned`: how
    many of them it owns; these come first. `owners`: the rank that owns each. Values of a whole mesh become those of
    this rank by `values[part.cells]`.

    Raises InputError at all ranks if there are not as many parts as ranks, or if the mesh of a rank has another number
    of cells; InputError for less than one layer.
    """

    def __init__(self, group: Group, mesh: Mesh, parts: MeshParts, *, layers: int = 1) -> None:
        try:
            wide = index(layers)
        except TypeError:
            raise InputTypeError(f"layers= is a whole number, not {type(layers).__name__}") from None
        if wide < 1:
            raise InputError(f"layers={wide}: there is at least one layer of ghosts")
        counts = group.all_gather(np.array([len(mesh), parts.count, wide, len(parts.of_cell)])).reshape(-1, 4)
        with known_to_all(group.barrier):
            _check_alike(counts, group.size)
        of_cell = group.broadcast(np.ascontiguousarray(parts.of_cell.copy()), 0)
        self.mesh = mesh
        rank = group.rank
        owned = np.flatnonzero(of_cell == rank)
        ghosts = ghosts_of(mesh, of_cell, rank, wide)
        self.cells: Numbers = np.concatenate([owned, ghosts])
        self.owned = len(owned)
        self.owners: Numbers = of_cell[self.cells]
        neighbors = []
        for peer in np.unique(_reached(mesh, of_cell, rank, wide)).tolist():
            theirs = ghosts_of(mesh, of_cell, peer, wide)
            given = np.searchsorted(owned, theirs[of_cell[theirs] == rank])
            taken = len(owned) + np.flatnonzero(of_cell[ghosts] == peer)
            neighbors.append((peer, given, taken))
        super().__init__(group, len(self.cells), neighbors)

    def __repr__(self) -> str:
        ghosts = len(self.cells) - self.owned
        return f"<waywiser.mesh.PartitionedMesh: {self.owned} cells and {ghosts} ghosts, neighbours {self.neighbors}>"


def _check_alike(counts: Numbers, ranks: int) -> None:
    for rank, (cells, count, width, numbered) in enumerate(counts.tolist()):
        if count != ranks:
            raise InputError(f"rank {rank}: {count} parts of a mesh for {ranks} ranks")
        if numbered != cells:
            raise InputError(f"rank {rank}: a mesh of {cells} cells, and parts of one of {numbered}")
        if cells != counts[0][0]:
            raise InputError(f"rank {rank} has a mesh of {cells} cells, rank 0 of {counts[0][0]}")
        if width != counts[0][2]:
            raise InputError(f"rank {rank} has layers={width}, rank 0 layers={counts[0][2]}")


def ghosts_of(mesh: Mesh, of_cell: Numbers, part: int, layers: int) -> Numbers:
    """The cells of other parts at most `layers` faces away from a part, by part, then by number."""
    near = of_cell == part
    inside = near.copy()
    for _ in range(layers):
        ends = near[mesh.pairs]
        grown = near.copy()
        grown[mesh.pairs[ends[:, 0], 1]] = True
        grown[mesh.pairs[ends[:, 1], 0]] = True
        near = grown
    found = np.flatnonzero(near & ~inside)
    return found[np.argsort(of_cell[found], kind="stable")]


def _reached(mesh: Mesh, of_cell: Numbers, part: int, layers: int) -> Numbers:
    """The other parts within reach; it is mutual, since faces are."""
    return of_cell[ghosts_of(mesh, of_cell, part, layers)]
