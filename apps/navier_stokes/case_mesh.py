"""The mesh of a case: cells as the program takes them, faces of the border with what is given there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from case_file import Boundary, Case
from numpy.typing import NDArray
from profiles import moving, profile
from yaml_table import CaseError, one_line

import waywiser as ww
from waywiser.mesh import Mesh, check_mesh, face_shapes, read_mesh, shapes_of

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
SHAPES = {"triangle": 5, "quad": 9, "tetra": 10, "hexahedron": 12, "wedge": 13, "pyramid": 14}
# The corners of a cell the other way round.
TURNED = {
    "triangle": (0, 2, 1), "quad": (0, 3, 2, 1), "tetra": (0, 2, 1, 3), "pyramid": (0, 3, 2, 1, 4),
    "wedge": (0, 2, 1, 3, 5, 4), "hexahedron": (0, 3, 2, 1, 4, 7, 6, 5),
}  # fmt: skip
GIVEN, OUTLET, SYMMETRY = range(3)
UNNAMED = "unnamed"


@dataclass
class Border:
    """The faces of the border that have a condition."""

    corners: Numbers  # (faces, 4)
    kind: Numbers
    name: Numbers
    body: Numbers
    velocity: Floats  # (faces, 3)
    scalar: Floats  # NaN: none is given


@dataclass
class CaseMesh:
    """What the program needs of a mesh."""

    mesh: Mesh
    volume: Floats
    names: list[str]
    border: Border
    same_as: Numbers | None
    area: dict[str, float]


def case_mesh(case: Case) -> CaseMesh:
    """Reads and checks the mesh. Raises CaseError in one line that names what is wrong, and where."""
    try:
        mesh = read_mesh(case.mesh)
        mesh = Mesh(mesh.points * case.scale, mesh.blocks, mesh.boundaries)
        checked = check_mesh(mesh)
    except ww.Error as error:
        raise CaseError(one_line(error)) from None
    for finding in checked.findings:
        if finding.is_error or finding.name in ("collapsed", "apart"):
            raise CaseError(f"{case.mesh}: {one_line(str(finding).partition(': ')[2])}")
    rows = _rows(case, mesh)
    same_as = _periodic(case, mesh, rows)
    border, area = _border(case, mesh, rows)
    return CaseMesh(mesh, shapes_of(mesh).volume, list(case.boundaries), border, same_as, area)


def _rows(case: Case, mesh: Mesh) -> dict[str, Numbers]:
    """Of each boundary of the case its rows in the surface; together they are all of it."""
    corners, owners = mesh.surface()
    there = {name: rows for name, rows in mesh.named_faces().items() if len(rows)}
    times = np.zeros(len(corners), np.int64)
    rows = {}
    for name, boundary in case.boundaries.items():
        if name != UNNAMED and name not in there:
            boundary.refuse(f"{case.mesh} has no such boundary: it has {', '.join(there) or 'none with a name'}")
        if name != UNNAMED:
            rows[name] = there[name]
            times[rows[name]] += 1
    both = np.flatnonzero(times > 1)
    if len(both):
        names = [name for name, found in rows.items() if both[0] in found]
        raise CaseError(f"{case.file}: a face of cell {owners[both[0]]} is of the boundaries {' and '.join(names)}")
    if UNNAMED in case.boundaries:
        named = np.unique(np.concatenate([np.zeros(0, np.int64), *there.values()]))
        rows[UNNAMED] = np.setdiff1d(np.flatnonzero(times == 0), named)
        times[rows[UNNAMED]] = 1
    left = np.flatnonzero(times == 0)
    if len(left):
        raise CaseError(_without(case, mesh, there, left))
    return {name: rows[name] for name in case.boundaries}


def _without(case: Case, mesh: Mesh, there: Mapping[str, Numbers], left: Numbers) -> str:
    corners, owners = mesh.surface()
    names = [name for name, rows in there.items() if np.isin(rows, left).any()]
    if names:
        return f"{case.file}: no condition for the boundaries {', '.join(names)} of {case.mesh}"
    place = ", ".join(f"{each:.4g}" for each in mesh.points[corners[left[0]]].mean(axis=0))
    return (
        f"{case.file}: {len(left)} faces of {case.mesh} have no name and no condition, for example of cell "
        f"{owners[left[0]]} at ({place}): name them, or give the boundary {UNNAMED!r}"
    )


def _border(case: Case, mesh: Mesh, rows: Mapping[str, Numbers]) -> tuple[Border, dict[str, float]]:
    corners, owners = mesh.surface()
    center, area = face_shapes(mesh, corners)
    area *= np.sign(shapes_of(mesh).volume[owners])[:, None]
    kind, name, body = (np.zeros(len(corners), np.int64) for _ in range(3))
    velocity, scalar = np.zeros((len(corners), 3)), np.full(len(corners), np.nan)
    kept = np.ones(len(corners), bool)
    for number, (each, boundary) in enumerate(case.boundaries.items()):
        mine = rows[each]
        name[mine], body[mine], kept[mine] = number, boundary.forces, boundary.kind != "periodic"
        kind[mine] = {"outlet": OUTLET, "symmetry": SYMMETRY}.get(boundary.kind, GIVEN)
        scalar[mine] = np.nan if boundary.scalar is None else boundary.scalar
        points = np.pad(mesh.points, ((0, 0), (0, 3 - mesh.points.shape[1])))
        if boundary.kind == "inlet":
            velocity[mine] = profile(
                boundary, center[mine], area[mine], points[corners[mine]], case.density, mesh.is_flat
            )
        elif boundary.kind == "moving_wall":
            velocity[mine] = moving(boundary, center[mine], area[mine])
    if mesh.is_flat and (velocity[:, 2] != 0).any():
        raise CaseError(f"{case.file}: a velocity leaves the plane of {case.mesh}")
    _balanced(case, area, velocity, kind)
    sizes = {each: float(np.linalg.norm(area[rows[each]], axis=1).sum()) for each in case.boundaries}
    sets = np.sort(corners, axis=1)
    return Border(_ascending(sets)[kept], kind[kept], name[kept], body[kept], velocity[kept], scalar[kept]), sizes


def _ascending(corners: Numbers) -> Numbers:
    """The distinct corners of each row, the largest one repeated."""
    repeated = np.zeros(corners.shape, bool)
    repeated[:, 1:] = corners[:, 1:] == corners[:, :-1]
    return np.sort(np.where(repeated, corners[:, -1:], corners), axis=1)


def _balanced(case: Case, area: Floats, velocity: Floats, kind: Numbers) -> None:
    flow = (area * velocity).sum(axis=1)
    scale = (np.linalg.norm(area, axis=1) * np.linalg.norm(velocity, axis=1)).sum()
    if not (kind == OUTLET).any() and abs(flow.sum()) > 1e-9 * scale:
        raise CaseError(f"{case.file}: without an outlet as much must leave as enters, not {-flow.sum():.4g} m3/s less")


def _periodic(case: Case, mesh: Mesh, rows: Mapping[str, Numbers]) -> Numbers | None:
    """For each point the one that stands for it."""
    corners, _ = mesh.surface()
    same, done, faces = np.arange(len(mesh.points)), set(), 0
    for name, boundary in case.boundaries.items():
        if boundary.kind != "periodic" or name in done:
            continue
        other = case.boundaries.get(boundary.partner)
        if other is None or other.kind != "periodic" or other.partner != name:
            boundary.refuse(f"its partner {boundary.partner!r} is no periodic boundary with it")
        done |= {name, boundary.partner}
        one, two = (np.unique(corners[rows[each]]) for each in (name, boundary.partner))
        _join(boundary, mesh, one, two, same)
        faces += len(rows[name])
    if not done:
        return None
    while (same[same] != same).any():
        same = same[same]
    _wide_enough(case, mesh, same, faces)
    return same


def _join(boundary: Boundary, mesh: Mesh, one: Numbers, two: Numbers, same: Numbers) -> None:
    """Points of `two` that are those of `one`, moved, take the same number."""
    here, there = mesh.points[one], mesh.points[two]
    extent = float(np.ptp(mesh.points, axis=0).max())
    if len(one) == len(two):
        there = there - (there.mean(axis=0) - here.mean(axis=0))
        order = [np.lexsort(np.round(each / (1e-6 * extent)).T) for each in (here, there)]
        if np.abs(here[order[0]] - there[order[1]]).max() < 1e-5 * extent:
            for a, b in zip(one[order[0]], two[order[1]], strict=True):
                low, high = sorted((int(_root(same, a)), int(_root(same, b))))
                same[high] = low
            return
    boundary.refuse(f"its points are not those of {boundary.partner!r}, moved along")


def _root(same: Numbers, point: int) -> int:
    while same[point] != point:
        point = same[point]
    return point


def _wide_enough(case: Case, mesh: Mesh, same: Numbers, faces: int) -> None:
    try:
        joined = Mesh(mesh.points, [(kind, same[corners]) for kind, corners in mesh.blocks])
        good = len(joined.pairs) == len(mesh.pairs) + faces
    except ww.InputError:
        good = False
    if not good:
        raise CaseError(f"{case.file}: {case.mesh} needs three cells and equal faces between periodic boundaries")
