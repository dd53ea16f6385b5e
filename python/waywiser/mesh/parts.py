"""Which part each cell of a mesh is in, and how good that is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from operator import index
from pathlib import Path
from typing import Any, Literal

import numpy as np

from waywiser.errors import InputError, InputTypeError, UnavailableError
from waywiser.mesh.bisection import bisected
from waywiser.mesh.faces import Numbers
from waywiser.mesh.mesh import Mesh
from waywiser.mesh.metis import find_metis

BISECTION = "recursive coordinate bisection"
MOST_PARTS = 1 << 20


@dataclass(frozen=True)
class PartQuality:
    """`edge_cut`: faces between two parts, which is what an exchange has to carry. `imbalance`: cells of the largest
    part divided by the mean. `most_neighbors`, `mean_neighbors`: parts that a part shares faces with. `empty`: parts
    without a cell.
    """

    cells: int
    parts: int
    edge_cut: int
    imbalance: float
    most_neighbors: int
    mean_neighbors: float
    empty: int

    def __str__(self) -> str:
        return (
            f"{self.cells} cells in {self.parts} parts: {self.edge_cut} faces cut, imbalance {self.imbalance:.3f}, "
            f"{self.mean_neighbors:.1f} neighbours in the mean, {self.most_neighbors} at most"
            + (f", {self.empty} parts are empty" if self.empty else "")
        )


class MeshParts:
    """The part of each cell of a mesh: `of_cell`, from 0 to `count` - 1. `method`: who made it; `why`: why not METIS.

    Raises InputError if there is not one part for each cell.
    """

    def __init__(self, mesh: Mesh, of_cell: Any, count: int, method: str = "given", why: str = "") -> None:
        self.mesh, self.count, self.method, self.why = mesh, checked_count(count), method, why
        numbers = np.asarray(of_cell)
        if numbers.shape != (len(mesh),) or (numbers.size and numbers.dtype.kind not in "iu"):
            raise InputError(f"parts: one whole number for each of {len(mesh)} cells, not an array of {numbers.shape}")
        self.of_cell: Numbers = numbers.astype(np.int64)
        if self.of_cell.size and not 0 <= self.of_cell.min() <= self.of_cell.max() < self.count:
            raise InputError(f"parts: a part is not one of 0 to {self.count - 1}")

    def __repr__(self) -> str:
        return f"<waywiser.mesh.MeshParts by {self.method}: {self.quality()}>"

    def quality(self) -> PartQuality:
        """How good the parts are, in numbers. Raises as Mesh.pairs."""
        sizes = np.bincount(self.of_cell, minlength=self.count)
        ends = self.of_cell[self.mesh.pairs]
        between = ends[ends[:, 0] != ends[:, 1]]
        pairs = np.unique(np.sort(between, axis=1), axis=0)
        neighbors = np.bincount(pairs.ravel(), minlength=self.count)
        mean = len(self.mesh) / self.count
        return PartQuality(
            len(self.mesh), self.count, len(between), float(sizes.max() / mean) if mean else 1.0,
            int(neighbors.max()), float(neighbors.mean()), int((sizes == 0).sum()),
        )  # fmt: skip

    def plot(self, file: str | os.PathLike[str]) -> None:
        """Draws the parts, of a solid mesh its surface, into a .png, .svg or .pdf.

        Raises UnavailableError without matplotlib, InputError for another ending, and as a file that cannot be written.
        """
        from waywiser.mesh.picture import plot_parts

        plot_parts(self, Path(file))


def checked_count(count: Any) -> int:
    """A number of parts. Raises InputError, InputTypeError."""
    try:
        number = index(count)
    except TypeError:
        raise InputTypeError(f"parts is a whole number, not {type(count).__name__}") from None
    if not 1 <= number <= MOST_PARTS:
        raise InputError(f"{number} parts: there can be 1 to {MOST_PARTS}")
    return number


def partition(mesh: Mesh, parts: int, method: Literal["auto", "metis", "bisection"] = "auto") -> MeshParts:
    """Cuts a mesh into parts of as many cells, with few faces between them.

    `method`: "metis" is METIS (k-way, G. Karypis and V. Kumar, 1998) on the dual graph, by pymetis or libmetis;
    "bisection" is recursive coordinate bisection, which needs neither; "auto" takes METIS if it is there, and `why` of
    the answer says why not. The answer is the same in each run.

    Raises InputError for another method or number of parts, and as Mesh.pairs; UnavailableError for "metis" without it.
    """
    count = checked_count(parts)
    if method not in ("auto", "metis", "bisection"):
        raise InputError(f"method={method!r}: write auto, metis or bisection")
    if method == "bisection":
        return MeshParts(mesh, bisected(mesh.centres, count), count, BISECTION)
    cut, name = find_metis()
    if cut is None:
        if method == "metis":
            raise UnavailableError(f"METIS: {name}")
        return MeshParts(mesh, bisected(mesh.centres, count), count, BISECTION, name)
    if count >= len(mesh):  # METIS expects more cells than parts
        return MeshParts(mesh, np.arange(len(mesh)), count, name)
    if count == 1:
        return MeshParts(mesh, np.zeros(len(mesh), np.int64), count, name)
    return MeshParts(mesh, filled(cut(*mesh.graph, count), mesh.pairs, count), count, name)


def filled(of_cell: Numbers, pairs: Numbers, count: int) -> Numbers:
    """The same parts, but none empty, as METIS leaves some on small meshes: each takes a cell of the largest part, one
    that shares the fewest faces with the rest of it. There are at least as many cells as parts."""
    sizes = np.bincount(of_cell, minlength=count)
    for part in np.flatnonzero(sizes == 0):
        largest = int(sizes.argmax())
        inside = pairs[(of_cell[pairs] == largest).all(axis=1)]
        faces = np.bincount(inside.ravel(), minlength=len(of_cell))
        cells = np.flatnonzero(of_cell == largest)
        of_cell[cells[faces[cells].argmin()]] = part
        sizes[largest] -= 1
        sizes[part] = 1
    return of_cell
