"""A picture of a mesh in parts, each in a colour of its own."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from waywiser.errors import InputError
from waywiser.files import write_bytes_atomically
from waywiser.plot_packages import need_plots

if TYPE_CHECKING:
    from waywiser.mesh.parts import MeshParts

ENDINGS = (".png", ".svg", ".pdf")
_MOST_FACES = 100_000  # of a solid mesh, which a picture of this size can show


def plot_parts(parts: MeshParts, file: Path) -> None:
    """Draws cells, or of a solid mesh the faces of its surface, in the colour of their part."""
    if file.suffix not in ENDINGS:
        raise InputError(f"{file}: write a name that ends with {', '.join(ENDINGS)}")
    if len(parts.mesh) == 0:
        raise InputError(f"{file}: a mesh without cells is not drawn")
    need_plots(str(file))
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), dpi=110, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    if parts.mesh.is_flat and parts.mesh.points.shape[1] == 2:
        _draw_flat(figure, parts)
    else:
        _draw_surface(figure, parts)
    quality = parts.quality()
    figure.suptitle(
        f"{quality.cells} cells in {quality.parts} parts by {parts.method}\n"
        f"{quality.edge_cut} faces cut, imbalance {quality.imbalance:.3f}, {quality.mean_neighbors:.1f} neighbours",
        fontsize=10,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format=file.suffix[1:])
    write_bytes_atomically(file, buffer.getvalue())


def _colours(of_cell: Any, count: int) -> Any:
    """Neighbouring numbers get colours far apart."""
    from matplotlib import colormaps

    turned = np.arange(count) * 0.618033988749895 % 1.0
    return colormaps["turbo"](0.05 + 0.9 * turned)[of_cell]


def _draw_flat(figure: Any, parts: MeshParts) -> None:
    from matplotlib.collections import PolyCollection

    axes, first = figure.add_subplot(), 0
    for _, corners in parts.mesh.blocks:
        of_cell = parts.of_cell[first : first + len(corners)]
        width = 0.3 if len(parts.mesh) < 5000 else 0.0
        axes.add_collection(
            PolyCollection(
                list(parts.mesh.points[corners]),
                facecolors=_colours(of_cell, parts.count),
                edgecolors="white" if width else "face",
                linewidths=width or 0.1,
            )
        )
        first += len(corners)
    axes.autoscale_view()
    axes.set_aspect("equal")
    axes.set_xlabel("x")
    axes.set_ylabel("y")


def _draw_surface(figure: Any, parts: MeshParts) -> None:
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    mesh = parts.mesh
    if mesh.is_flat:
        corners = np.concatenate([np.pad(c, ((0, 0), (0, 4 - c.shape[1])), mode="edge") for _, c in mesh.blocks])
        cells = np.arange(len(mesh))
    else:
        corners, cells = mesh.surface()
    if len(cells) > _MOST_FACES:
        chosen = np.linspace(0, len(cells) - 1, _MOST_FACES).astype(np.int64)
        corners, cells = corners[chosen], cells[chosen]
    axes = figure.add_subplot(projection="3d")
    axes.add_collection3d(
        Poly3DCollection(
            mesh.points[corners],
            facecolors=_colours(parts.of_cell[cells], parts.count),
            edgecolors="white" if len(cells) < 5000 else "none",
            linewidths=0.2,
        )
    )
    low, high = mesh.points.min(axis=0), mesh.points.max(axis=0)
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.set_zlim(low[2], high[2])
    axes.set_box_aspect(np.maximum(high - low, 1e-3 * (high - low).max()))
