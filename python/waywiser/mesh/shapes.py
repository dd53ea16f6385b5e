"""Sizes and shapes of cells: volumes, face areas, skewness, angles. A mesh of two dimensions is one unit thick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waywiser.mesh.faces import Numbers
from waywiser.mesh.mesh import Mesh

Floats = NDArray[np.float64]


@dataclass
class Shapes:
    """Of cells: `volume`, negative where a cell lists its corners the other way round, and `center`. Of pairs of cells:
    `pairs`, `opposed` (whether the two run along their face in opposite directions, as two cells listed alike do),
    `skewness`, `angle` in degrees between the line of centres and the face's area vector. `area` is that of each face.
    """

    volume: Floats
    center: Floats
    pairs: Numbers
    opposed: NDArray[np.bool_]
    skewness: Floats
    angle: Floats
    area: Floats


def shapes_of(mesh: Mesh) -> Shapes:
    """Faces are fans of triangles around the mean of their corners; centres are those of gravity. Raises nothing."""
    corners, owners = mesh.each_face()
    with np.errstate(divide="ignore", invalid="ignore"):
        center, area = face_shapes(mesh, corners)
        volume, middle = _cells(mesh, center, area, owners)
        first, second = mesh.shared_faces()
        outward = area[first] * np.sign(volume[owners[first]])[:, None]
        skewness, angle = _quality(middle[owners[first]], middle[owners[second]], center[first], outward)
    opposed = (area[first] * area[second]).sum(axis=1) < 0
    pairs = np.stack([owners[first], owners[second]], 1)
    return Shapes(volume, middle, pairs, opposed, skewness, angle, np.linalg.norm(area, axis=1))


def face_shapes(mesh: Mesh, corners: Numbers) -> tuple[Floats, Floats]:
    """The centres and area vectors of faces, both (faces, 3), of their corners as Mesh.surface() has them. They point
    outwards where the cell lists its corners in the order of VTK. Raises nothing.
    """
    points = np.pad(mesh.points, ((0, 0), (0, 3 - mesh.points.shape[1])))
    if mesh.is_flat:
        start, end = points[corners[:, 0]], points[corners[:, 1]]
        along = end - start
        return (start + end) / 2, np.stack([along[:, 1], -along[:, 0], np.zeros(len(along))], 1)
    kept = np.ones(corners.shape, bool)
    kept[:, 1:] = corners[:, 1:] != corners[:, :-1]
    kept[:, -1] &= corners[:, -1] != corners[:, 0]
    mean = (points[corners] * kept[:, :, None]).sum(axis=1) / kept.sum(axis=1)[:, None]
    area, moment, size = np.zeros_like(mean), np.zeros_like(mean), np.zeros(len(mean))
    for i in range(corners.shape[1]):
        a, b = points[corners[:, i]], points[corners[:, (i + 1) % corners.shape[1]]]
        part = np.cross(a - mean, b - mean) / 2
        part_size = np.linalg.norm(part, axis=1)
        area, size = area + part, size + part_size
        moment += part_size[:, None] * (mean + a + b) / 3
    center = np.where(size[:, None] > 0, moment / size[:, None], mean)
    return center, area


def _cells(mesh: Mesh, center: Floats, area: Floats, owners: Numbers) -> tuple[Floats, Floats]:
    """Volumes and centres of gravity: pyramids from the mean of the corners to faces, in two dimensions triangles."""
    dimensions = 2 if mesh.is_flat else 3
    origin = np.pad(mesh.centres, ((0, 0), (0, 3 - mesh.centres.shape[1])))
    apart = center - origin[owners]
    part = (apart * area).sum(axis=1) / dimensions
    volume: Floats = np.bincount(owners, part, len(mesh)).astype(np.float64)
    weighted = part[:, None] * apart * (dimensions / (dimensions + 1))
    moment = np.stack([np.bincount(owners, weighted[:, i], len(mesh)) for i in range(3)], 1)
    middle: Any = np.where(volume[:, None] != 0, origin + moment / volume[:, None], origin)
    return volume, middle


def _quality(one: Floats, other: Floats, center: Floats, area: Floats) -> tuple[Floats, Floats]:
    """Skewness: how far the line of centres passes the face's centre, over its length. Both as OpenFOAM's checkMesh
    has them (primitiveMeshCheck, OpenFOAM 10)."""
    line = other - one
    length, along = np.linalg.norm(line, axis=1), (line * area).sum(axis=1)
    share = ((center - one) * area).sum(axis=1) / along
    missed = np.linalg.norm(center - one - share[:, None] * line, axis=1)
    cosine = np.clip(along / (length * np.linalg.norm(area, axis=1)), -1, 1)
    return missed / length, np.degrees(np.arccos(cosine))
